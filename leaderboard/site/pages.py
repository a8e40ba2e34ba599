"""The pages as text, from autoescaped templates."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medtasks.catalog.statuses import status_words
from medtasks.core.text import visible
from medtasks.runs.replies import RunUsage
from medtasks.runs.signature import parse_signature

from ..board.floors import floors_text
from ..board.model_traits import billions_of
from ..board.usage import amount, measured
from ..figures.plots import figures_of, model_order
from ..figures.shapes import LOOKS, time_axis
from ..schema.board import (
    BenchmarkBoard,
    Board,
    BoardColumn,
    BoardModel,
    LetterCounts,
    Published,
    Timeline,
)
from ..schema.numbers import UNIT_LABELS, direction, exact, interval, number
from .benchmark_tables import benchmark_tables
from .charts import charts, overview_charts
from .downloads import Download, DownloadGroup, downloads_of, size_text
from .model_tables import model_parts
from .overview import all_models, not_comparable
from .published_tables import is_printed_so, published_tables
from .tables import ColumnView, coverage_notes, first_click, group_letters, subtitles

Files = Mapping[tuple[str, str], Mapping[str, str]]
"""Figures as files: paths by format, by benchmark and plot."""

POLICY = (
    "default-src 'none'; script-src 'self' file:; style-src 'self' file:; img-src 'self' file:; "
    "base-uri 'none'; form-action 'none'"
)
"""No inline scripts or styles, no other origins; ``file:`` is for pages opened without a server."""

_ARXIV = re.compile(r"arXiv[: ]\s*(\d{4}\.\d{4,5}(?:v\d+)?)")
_LINK = re.compile(r"(?i)https?://[a-z0-9\[][!-~]*")
_SIZES = {
    "s": "under 5B",
    "m": "5B to 15B",
    "l": "15B to 80B",
    "x": "80B and more",
    "n": "not stated",
}
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
    "harness": "options of the harness that change the prompts",
    "judge": "hash of rubric, judges, their settings and how verdicts are combined",
}


def pages_of(
    board: Board,
    figures: Files,
    downloads: Sequence[Download],
    *,
    samples: bool = False,
    served: bool = False,
) -> dict[str, Callable[[], str]]:
    """Functions that render the pages, by file name.

    Args:
        figures: the paths of figures as files.
        downloads: the exports.
        samples: whether the site has the data of samples.
        served: whether `medtasks view` serves it, which has its own pages of samples.
    """
    environment = page_environment(board, samples=samples, served=served)
    pages: dict[str, Callable[[], str]] = {}

    def add(name: str, template: str, make_views: Callable[[], dict[str, object]]) -> None:
        def render() -> str:
            page = environment.get_template(f"{template}.html.j2")
            return page.render(page=name, **make_views())

        pages[name] = render

    columns, rows = all_models(board)
    overview = {
        "charts": overview_charts(board),
        "columns": columns,
        "rows": rows,
        "apart": not_comparable(board),
        "choices": _choices(board.models.values()),
        "downloads": _downloads_by_benchmark(board, downloads),
    }
    add("index.html", "index", lambda: overview)
    archives = downloads_of(download for download in downloads if download.format == "ZIP")
    for benchmark in board.benchmarks:
        name = benchmark.name
        files = {plot: paths for (owner, plot), paths in figures.items() if owner == name}
        offered = [*archives, *downloads_of(downloads, name)]
        views = partial(_benchmark_views, board, benchmark, files, offered)
        add(f"benchmark-{name}.html", "benchmark", views)
    models = sorted(board.models.values(), key=lambda model: (model.name.casefold(), model.slug))
    for model in models:
        add(f"model-{model.slug}.html", "model", partial(_model_views, board, model))
    # the two models to compare until others are chosen are the first two of the overview
    compared: dict[str, object] = {"chosen": models, "best": [row.model for row in rows[:2]]}
    add("compare.html", "compare", lambda: compared)
    if samples and not served:
        add("samples.html", "samples", dict)
    add("protocol.html", "protocol", dict)
    return pages


def _downloads_by_benchmark(
    board: Board, downloads: Sequence[Download]
) -> dict[str, list[DownloadGroup]]:
    """The downloads of each benchmark, and those of the whole board under an empty name."""
    groups = {"": downloads_of(downloads)}
    for benchmark in board.benchmarks:
        groups[benchmark.name] = downloads_of(downloads, benchmark.name)
    return groups


def _benchmark_views(
    board: Board,
    benchmark: BenchmarkBoard,
    files: Mapping[str, Mapping[str, str]],
    downloads: Sequence[DownloadGroup],
) -> dict[str, object]:
    """What the template of a benchmark's page shows."""
    order = model_order(benchmark)

    def place_of(line: LetterCounts | Timeline) -> tuple[int, str]:
        return order.get(line.model, len(order)), line.model

    split_tables = benchmark_tables(board, benchmark)
    ordered_models = [board.models[slug] for slug in order]
    return {
        "benchmark": benchmark,
        "tables": split_tables.shown,
        "folded_tables": split_tables.folded,
        "charts": list(charts(board, benchmark)),
        "figures": figures_of(board, benchmark),
        "files": files,
        "downloads": downloads,
        "letters": sorted(benchmark.letters, key=place_of),
        "timelines": sorted(benchmark.timelines, key=place_of),
        "usage": measured([(entry.usage, entry.cost) for entry in benchmark.usage]),
        "used_for": _cost_column(benchmark),
        "published": published_tables(benchmark),
        "choices": _choices([*ordered_models, *benchmark.published]),
    }


def _cost_column(benchmark: BenchmarkBoard) -> BoardColumn | None:
    """The score that a figure plots against cost; None without such a figure."""
    plotted_keys: set[str] = set()
    for plot in benchmark.plots:
        if plot.kind == "cost":
            plotted_keys.update(plot.columns)
    for table in benchmark.tables:
        for column in table.columns:
            if column.key in plotted_keys:
                return column
    return None


def _model_views(board: Board, model: BoardModel) -> dict[str, object]:
    """What the template of a model's page shows."""
    parts = model_parts(board, model.slug)
    keys: set[str] = set()
    for part in parts:
        keys |= part.runs
    runs = [board.runs[key] for key in keys]
    runs.sort(key=lambda run: (run.created, run.key), reverse=True)
    used = [run for run in runs if run.usage != RunUsage()]
    usage = measured([(run.usage, run.cost) for run in used])
    return {"model": model, "results": parts, "runs": runs, "used": used, "usage": usage}


def _choices(rows: Iterable[BoardModel | Published]) -> dict[str, list[tuple[str, str]]]:
    """The choices of the filters above a table: values and their labels."""
    models = list(rows)
    families = {model.family for model in models}
    types = {model.type for model in models}
    sizes = {size_class(model.size) for model in models}
    return {
        "families": [(family, family) for family in sorted(families, key=str.casefold)],
        "sizes": [(name, label) for name, label in _SIZES.items() if name in sizes],
        "types": [(text, text) for text in sorted(types)],
        "trained": [(text, text) for text in ("yes", "no", "unknown")],
    }


def page_environment(
    board: Board, *, samples: bool = True, served: bool = False, further: Sequence[Path] = ()
) -> Environment:
    """The templates of the site, and of the directories ``further``, with what every page shows."""
    environment = Environment(
        loader=FileSystemLoader([Path(__file__).parent / "pages", *further]),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals.update(
        board=board,
        models=board.models,
        policy=POLICY,
        served=served,
        navigation=_navigation(board, samples=samples, served=served),
        count=_counted,
    )
    environment.filters.update(
        amount=amount,
        count_words=_count_words,
        coverage_notes=coverage_notes,
        difference_unit={**UNIT_LABELS, "fraction": "percentage points"}.__getitem__,
        direction=direction,
        exact=exact,
        first_click=first_click,
        floors=floors_text,
        group_letters=group_letters,
        interval=lambda ends, unit: interval(ends[0], ends[1], unit),
        is_printed_so=is_printed_so,
        letters=letters_of,
        look=LOOKS.index,
        number=number,
        paper_link=paper_link,
        safe_link=safe_link,
        signature_parts=_signature_parts,
        size_class=size_class,
        size_order=_size_order,
        size_text=size_text,
        subtitles=subtitles,
        time_axis=time_axis,
        times=_round_times,
        trained=lambda model, benchmark: model.trained.get(benchmark, "unknown"),
        trained_any=trained_any,
        trained_on=partial(_trained_on, board),
        unit=UNIT_LABELS.__getitem__,
        view=ColumnView,
    )
    return environment


_FINISH_WORDS = {
    "stop": "ended by the model",
    "length": "cut off at the token limit",
    "unknown": "with an unknown end",
}
"""What is said of responses by how they ended (`Reply.finish`)."""


def _count_words(key: str) -> str:
    """What a count of `BoardRun.counts` is of, in words; a key without words stays as it is.

    >>> _count_words("finish length"), _count_words("asked")
    ('cut off at the token limit', 'asked')
    """
    kind, _, value = key.partition(" ")
    if kind == "status":
        return status_words(value)
    if kind == "finish":
        return _FINISH_WORDS.get(value, key)
    return key


def _shown(value: Any) -> Any:
    """What an expression of a template shows: of texts, also what a page would not. The filter
    ``forceescape`` leaves the values of a form's fields unchanged, which are sent back."""
    return visible(value) if type(value) is str else value


def safe_link(text: str | None) -> str | None:
    """``text`` if it is a complete http or https address, else None: other schemes can run
    scripts.
    """
    return text if text is not None and _LINK.fullmatch(text) else None


def _navigation(board: Board, *, samples: bool, served: bool) -> list[tuple[str, str]]:
    """The links of every page's navigation, with their labels."""
    links = [("index.html", "Overview")]
    for benchmark in board.benchmarks:
        links.append((f"benchmark-{benchmark.name}.html", benchmark.title))
    if len(board.models) > 1:
        links.append(("compare.html", "Compare"))
    if samples or served:
        links.append(("samples.html", "Samples"))
    if served:
        links.append(("live.html", "Live run"))
    links.append(("protocol.html", "Protocol"))
    return links


def _counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless the number is 1."""
    plural = "" if number == 1 else "s"
    return f"{number:,} {noun}{plural}"


def _signature_parts(text: str) -> list[tuple[str, str, str]]:
    """The parts of a signature: key, value and what the part means."""
    parts = []
    for key, value in parse_signature(text).items():
        meaning = _SIGNATURE_PARTS.get(key, "a setting of the metric")
        parts.append((key, value or "yes", meaning))
    return parts


def _size_order(size: str | None) -> str:
    """The number that a table sorts a size by, in billions of parameters; empty if unknown."""
    billions = billions_of(size)
    if billions is None:
        return ""
    return f"{billions:.6g}"


def _round_times(timelines: Iterable[Timeline]) -> list[float]:
    """The times of all rounds, in order."""
    times: set[float] = set()
    for timeline in timelines:
        times.update(streaming_round.time for streaming_round in timeline.rounds)
    return sorted(times)


def _trained_on(board: Board, model: BoardModel) -> list[str]:
    """The titles of the benchmarks that the model was trained on."""
    titles = []
    for benchmark in board.benchmarks:
        if model.trained.get(benchmark.name) == "yes":
            titles.append(benchmark.title)
    return titles


def paper_link(text: str) -> str | None:
    """The address of a citation: an address itself, or the arXiv page of an arXiv number."""
    arxiv = _ARXIV.fullmatch(text)
    if arxiv is None:
        return safe_link(text)
    return f"https://arxiv.org/abs/{arxiv[1]}"


def size_class(size: str | None) -> str:
    """The range of parameters of a size such as ``235B-A22B``: ``s`` under 5, ``m`` under 15, ``l``
    under 80 billion, ``x`` above, ``n`` if it is not stated.
    """
    billions = billions_of(size)
    if billions is None:
        return "n"
    for name, end in (("s", 5), ("m", 15), ("l", 80)):
        if billions < end:
            return name
    return "x"


def trained_any(model: BoardModel) -> str:
    """Whether a model was trained on any benchmark: ``yes``, ``no`` (on none of those listed) or
    ``unknown``.
    """
    answers = set(model.trained.values())
    if "yes" in answers:
        return "yes"
    if answers == {"no"}:
        return "no"
    return "unknown"


def letters_of(counts: Sequence[LetterCounts]) -> list[str]:
    """The letters of a task's options, then everything else that was chosen."""
    gold: set[str] = set()
    chosen: set[str] = set()
    for letters in counts:
        gold.update(letters.gold)
        chosen.update(letters.chosen)
    return [*sorted(gold), *sorted(chosen - gold)]
