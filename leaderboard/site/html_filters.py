"""The filters of HTML templates (the site and `medtasks view`), by name in `HTML_FILTERS`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from medtasks.catalog.statuses import status_counts, status_words
from medtasks.core.files import canonical_json
from medtasks.metrics.facts import Unit
from medtasks.metrics.registry import unit_of
from medtasks.metrics.timelines import Timeline
from medtasks.runs.signature import parse_signature

from ..board.floors import floors_text
from ..board.model_traits import billions_of
from ..board.usage import amount
from ..figures.axes import time_axis
from ..figures.looks import LOOKS, Look
from ..schema.board import Board, BoardModel
from ..schema.numbers import UNIT_LABELS, direction, exact, interval, number
from ..schema.plot_data import LetterCounts
from ..schema.score_tables import BoardColumn
from .downloads import size_text
from .published_tables import is_printed_so
from .sample_filters import age_text, count_words, question_text, sample_scores, shortened
from .tables import ColumnView, coverage_notes, first_click, group_letters, subtitles

_ARXIV = re.compile(r"arXiv[: ]\s*(\d{4}\.\d{4,5}(?:v\d+)?)")
_LINK = re.compile(r"(?i)https?://[a-z0-9\[][!-~]*")
_SIZE_CLASS_ENDS = {"s": 5, "m": 15, "l": 80}
_SIGNATURE_PARTS = {
    "metric": "what is computed",
    "task": "the task",
    "group": "the group, whose items are pooled; the parts of its tasks are combined by hash",
    "version": "version of the task",
    "filters": "how answers are extracted from responses, with versions",
    "prompt": "hash of the prompt template",
    "protocol": "hash of task file, metrics, generation settings and frames",
    "data": "fingerprint of the prepared data",
    "items": "number of samples scored, and a hash of their ids",
    "blind": "run without media",
    "pace": "rounds of streams were sent when they were due",
    "harness": "options of the harness that change the prompts",
    "judge": "hash of rubric, judges, their settings and how verdicts are combined",
}


# --- scores ---


def unit_label(unit: Unit) -> str:
    """The unit of a score, short enough for a heading.

    >>> unit_label("fraction"), unit_label("seconds")
    ('%', 's')
    """
    return UNIT_LABELS[unit]


def difference_unit(unit: Unit) -> str:
    """The unit of a difference of two scores.

    >>> difference_unit("fraction"), difference_unit("seconds")
    ('percentage points', 's')
    """
    return "percentage points" if unit == "fraction" else UNIT_LABELS[unit]


def interval_text(ends: tuple[float | None, float | None], unit: Unit) -> str:
    """A confidence interval; empty without one.

    >>> interval_text((0.581, 0.644), "fraction")
    '58.1–64.4'
    """
    low, high = ends
    return interval(low, high, unit)


def column_view(column: BoardColumn) -> ColumnView:
    """A column of a board as tables show it, on its own.

    >>> column = BoardColumn(key="k", task="t", metric="m", label="Accuracy", unit="fraction",
    ...                      higher_is_better=True)
    >>> column_view(column).column.label
    'Accuracy'
    """
    return ColumnView(column)


class SignaturePart(NamedTuple):
    """A part of a score's signature, and what it means."""

    key: str
    value: str
    meaning: str


def signature_parts(signature: str) -> list[SignaturePart]:
    """The parts of a signature, each with its meaning.

    >>> for part in signature_parts("accuracy|task:pond_vqa|blind|beta:2"):
    ...     print(part.key, part.value, part.meaning, sep=": ")
    metric: accuracy: what is computed
    task: pond_vqa: the task
    blind: yes: run without media
    beta: 2: a setting of the metric
    """
    parts = []
    for key, value in parse_signature(signature).items():
        meaning = _SIGNATURE_PARTS.get(key, "a setting of the metric")
        parts.append(SignaturePart(key, value or "yes", meaning))
    return parts


# --- models ---


def size_class(size: str | None) -> str:
    """The class of a number of parameters, by which tables are filtered.

    It is ``s`` under 5 billion, ``m`` under 15, ``l`` under 80, ``x`` from there, and ``n`` if the
    size is not stated.

    >>> size_class("500M"), size_class("235B-A22B"), size_class(None)
    ('s', 'x', 'n')
    """
    billions = billions_of(size)
    if billions is None:
        return "n"
    for name, end in _SIZE_CLASS_ENDS.items():
        if billions < end:
            return name
    return "x"


def size_order(size: str | None) -> str:
    """The number by which a table sorts a size, in billions of parameters; empty if unknown.

    >>> size_order("500M"), size_order("235B-A22B"), size_order(None)
    ('0.5', '235', '')
    """
    billions = billions_of(size)
    return "" if billions is None else f"{billions:.6g}"


def trained_on(model: BoardModel, benchmark: str) -> str:
    """Whether a model was trained on a benchmark's data: ``yes``, ``no`` or ``unknown``.

    >>> model = BoardModel(slug="m", name="M", family="M", trained={"pond_vqa": "yes"})
    >>> trained_on(model, "pond_vqa"), trained_on(model, "mi_cxr")
    ('yes', 'unknown')
    """
    return model.trained.get(benchmark, "unknown")


def trained_on_any(model: BoardModel) -> str:
    """Whether a model was trained on any benchmark's data.

    The answer is ``yes``, ``no`` (on none of those listed) or ``unknown``.

    >>> trained_on_any(BoardModel(slug="m", name="M", family="M", trained={"pond_vqa": "no"}))
    'no'
    """
    answers = set(model.trained.values())
    if "yes" in answers:
        return "yes"
    if answers == {"no"}:
        return "no"
    return "unknown"


def training_benchmarks(model: BoardModel, board: Board) -> list[str]:
    """The titles of the benchmarks on whose data a model was trained.

    >>> from types import SimpleNamespace
    >>> model = BoardModel(slug="m", name="M", family="M", trained={"pond_vqa": "yes"})
    >>> pond = SimpleNamespace(name="pond_vqa", title="PondVQA")
    >>> training_benchmarks(model, SimpleNamespace(benchmarks=[pond]))
    ['PondVQA']
    """
    titles = []
    for benchmark in board.benchmarks:
        if model.trained.get(benchmark.name) == "yes":
            titles.append(benchmark.title)
    return titles


# --- links ---


def safe_link(text: str | None) -> str | None:
    """``text`` if it is a complete http or https address, else None: other schemes can run scripts.

    >>> safe_link("https://example.org/paper"), safe_link("javascript:alert(1)")
    ('https://example.org/paper', None)
    """
    if text is None or not _LINK.fullmatch(text):
        return None
    return text


def paper_link(text: str) -> str | None:
    """The address of a citation: an address itself, or the arXiv page of an arXiv number.

    >>> paper_link("arXiv:2401.01234"), paper_link("Pond et al., 2024")
    ('https://arxiv.org/abs/2401.01234', None)
    """
    arxiv = _ARXIV.fullmatch(text)
    if arxiv is None:
        return safe_link(text)
    return f"https://arxiv.org/abs/{arxiv[1]}"


# --- figures ---


def look_number(look: Look) -> int:
    """The number of a series' look, which the style sheet's classes have.

    >>> look_number(LOOKS[2])
    2
    """
    return LOOKS.index(look)


def option_letters(counts: Iterable[LetterCounts]) -> list[str]:
    """The letters of a task's options, then everything else that was chosen.

    >>> counts = LetterCounts(task="t", model="m", gold={"B": 2, "A": 1}, chosen={"[none]": 3})
    >>> option_letters([counts])
    ['A', 'B', '[none]']
    """
    gold: set[str] = set()
    chosen: set[str] = set()
    for letters in counts:
        gold.update(letters.gold)
        chosen.update(letters.chosen)
    return [*sorted(gold), *sorted(chosen - gold)]


def round_times(timelines: Iterable[Timeline]) -> list[float]:
    """The times of all rounds of these timelines, in order, each once.

    >>> from types import SimpleNamespace
    >>> first = SimpleNamespace(rounds=[SimpleNamespace(time=4.0), SimpleNamespace(time=2.0)])
    >>> second = SimpleNamespace(rounds=[SimpleNamespace(time=4.0)])
    >>> round_times([first, second])
    [2.0, 4.0]
    """
    times: set[float] = set()
    for timeline in timelines:
        times.update(streaming_round.time for streaming_round in timeline.rounds)
    return sorted(times)


_FILTERS: Sequence[Callable[..., Any]] = (
    age_text,
    amount,
    canonical_json,
    column_view,
    count_words,
    coverage_notes,
    difference_unit,
    direction,
    exact,
    first_click,
    floors_text,
    group_letters,
    interval_text,
    is_printed_so,
    look_number,
    number,
    option_letters,
    paper_link,
    question_text,
    round_times,
    safe_link,
    sample_scores,
    shortened,
    signature_parts,
    size_class,
    size_order,
    size_text,
    status_counts,
    status_words,
    subtitles,
    time_axis,
    trained_on,
    trained_on_any,
    training_benchmarks,
    unit_label,
    unit_of,
)
HTML_FILTERS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in _FILTERS
}
"""The filters by the names of their functions."""
