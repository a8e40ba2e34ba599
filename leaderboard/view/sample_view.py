"""One sample as its page shows it: media, prompt, response, scores, the other runs' answers, and a stream's rounds."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from medtasks.answers.option_letter import read_stages
from medtasks.benchmarks.documents import prompt_text
from medtasks.benchmarks.streams import timelines
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import MedtasksError, UsageError, first_line
from medtasks.metrics.registry import unit_of
from medtasks.runs.samples import Sample

from ..board.board import Timeline
from ..board.numbers import UNIT_LABELS, number
from ..site.figures import time_axis
from .library import Run
from .media import shown_media
from .parquet import sample_at
from .query import Selection, outcome

_MOST = 40
"""Letters of a response that are tried; each try filters the whole response."""


class Segment(NamedTuple):
    """A piece of a response; ``marked`` if it was extracted."""

    text: str
    marked: bool = False


class Score(NamedTuple):
    """One metric of a sample, or of the answers of a run so far; ``note`` says why there is no value."""

    metric: str
    text: str = ""
    unit: str = ""
    interval: str = ""
    note: str = ""


class Reply(NamedTuple):
    """One response: its segments by stage, of which the last is read; or why it is missing."""

    parts: Sequence[tuple[str, Sequence[Segment]]]
    failed: str = ""


class Answered(NamedTuple):
    """The answer of one run to the question."""

    run: Run
    outcome: int
    sample: Sample
    replies: Sequence[Reply]


def sample_parts(selection: Selection, task: str, sample_id: str) -> dict[str, Any]:
    """What the page shows of a sample of ``task``, one of the selection's tasks, by name.

    ``own`` and ``others`` are the answers, ``unanswered`` the runs without one. ``prompt`` are the texts of the prompt
    by stage, after that of the ``system``; ``text_first`` says that the back-end put the ``media`` behind the text,
    ``blind`` that it got none. ``stream`` are the rounds of its item.

    Raises:
        UsageError: the run has no such sample.
    """
    library, run = selection.library, selection.run
    runs = {one.key: one for one in library.asked[task]}
    own_first = sorted(runs.values(), key=lambda one: one.key != run.key)
    owners = {table.file: (one, table) for one in own_first for table in library.tables(one, task)}
    metric = selection.metric if any(selection.metric in table.metrics for _, table in owners.values()) else ""
    columns = f"filename, start, size, {outcome(metric)}"

    def read(where: str, value: str) -> dict[str, list[tuple[Sample, int]]]:
        """The samples and their outcomes by run, the own run's first, in the order of rounds."""
        query = f"select {columns} from read_parquet($every, filename = true, union_by_name = true) where {where}"
        found: dict[str, list[tuple[Sample, int]]] = {one.key: [] for one in own_first}
        for file, start, size, reached in library.samples.rows(
            f"{query} order by round", every=list(owners), value=value
        ):
            of, table = owners[file]
            found[of.key].append((sample_at(table.samples, start, size), reached))
        return found

    answers = {
        key: _answered(runs[key], *found[0]) for key, found in read("sample_id = $value", sample_id).items() if found
    }
    if run.key not in answers:
        raise UsageError(f"{task}: this run has no sample {sample_id}; choose one of its list.")
    own, *others = answers.values()
    sample, facts = own.sample, run.manifest.tasks[task]
    item = str(sample.document.get("item_id") or "")
    rounds = read("item = $value", item) if item else {}
    return {
        "own": own,
        "others": others,
        "unanswered": [one for key, one in runs.items() if key not in answers],
        "media": shown_media(sample, run.manifest),
        "prompt": _prompt(load_spec(task), sample),
        "system": facts.presentation.get("system_prompt") or str(run.manifest.settings.get("system_instruction") or ""),
        "text_first": facts.presentation.get("order", "").startswith("text"),
        "blind": facts.blind,
        "stream": _stream(sample, [(runs[key].label, [one for one, _ in found]) for key, found in rounds.items()]),
    }


def _answered(run: Run, sample: Sample, reached: int) -> Answered:
    spec, document = load_spec(sample.task), sample.whole_document()
    filtered = [one.filtered for one in sample.repeats] or [sample.filtered]
    failed = sample.failed or (None,) * len(sample.responses)
    replies = []
    for response, reason, text in zip(sample.responses, failed, filtered * len(failed), strict=False):
        first, last = read_stages(response) if spec.stage1_template is not None else ("", response)
        stages = [("Stage 1", [Segment(first)])] if first else []
        stages.append(("Stage 2" if first else "", segments(spec, last, text, document) if reason is None else []))
        replies.append(Reply(stages) if reason is None else Reply((), reason))
    return Answered(run, reached, sample, replies)


def _prompt(spec: TaskSpec, sample: Sample) -> list[tuple[str, str]]:
    """The prompt as it was sent; the second stage is rendered again from the first one's output."""
    if spec.stage1_template is None or not sample.responses:
        return [("", sample.prompt)]
    first = [("Stage 1", sample.prompt)]
    observations = read_stages(sample.responses[0])[0]
    if not observations or sample.prompt_hash != spec.prompt_hash:
        return first
    try:
        text = prompt_text(sample.whole_document(), spec.template or "", observations=observations.strip())
    except (MedtasksError, KeyError) as error:
        text = f"It cannot be rendered again ({first_line(error)})."
    return [*first, ("Stage 2, without media", text)]


def sample_scores(sample: Sample) -> list[Score]:
    """The sample's own values, and why some are missing."""
    found = []
    for metric, value in sample.scores.items():
        unit = unit_of(metric)
        if value is not None:
            found.append(Score(metric, number(value, unit), UNIT_LABELS[unit]))
        elif metric in sample.pending or (metric in sample.judged and sample.judged[metric].value.pending):
            found.append(Score(metric, note="awaits a judge"))
        elif metric in sample.limits:
            found.append(Score(metric, note="no response"))
    return found


def _stream(sample: Sample, rounds: Sequence[tuple[str, Sequence[Sample]]]) -> dict[str, Any] | None:
    """The timelines of the sample's item by run, the own run first, on one axis, and the ids of the own rounds; None if
    the item is not a stream."""
    benchmark = load_spec(sample.task).benchmark
    if benchmark.timeline is None or not rounds:
        return None
    lines: list[tuple[str, Timeline]] = []
    for place, (label, samples) in enumerate(rounds):
        items = joined_items(benchmark, [one.view() for one in samples]).items
        found = timelines(sample.task, items, benchmark.timeline)
        if place == 0 and not found:  # a round is missing
            return None
        lines += [(label, line) for line in found[:1]]
    document, ids = sample.document, [one.sample_id for one in rounds[0][1]]
    window = [document.get("window_start"), document.get("window_end"), *(document.get("times") or ())]
    axis = time_axis([line for _, line in lines], [float(time) for time in window if time is not None])
    return {"axis": axis, "lines": lines, "ids": ids, "here": ids.index(sample.sample_id)}


def segments(spec: TaskSpec, response: str, filtered: str, document: Mapping[str, Any]) -> list[Segment]:
    """``response``, with the part marked that became ``filtered``; unmarked if that cannot be told."""

    def read(text: str) -> str:
        (found,) = spec.filter.kind().apply([[text]], [document])
        return found.strip() if isinstance(found, str) else ""

    try:
        spans = _verbatim(response, filtered) if len(filtered) > 1 else _deciding(response, filtered, read)
    except Exception:  # filters of other packages
        spans = []
    found, end = [], 0
    for start, stop in sorted(spans):
        found += [Segment(response[end:start]), Segment(response[start:stop], marked=True)]
        end = stop
    return [one for one in (*found, Segment(response[end:])) if one.text]


def _verbatim(response: str, filtered: str) -> list[tuple[int, int]]:
    words = filtered.split()
    if not words:
        return []
    found = list(re.finditer(r"\s+".join(map(re.escape, words)), response, re.IGNORECASE))
    return [found[-1].span()] if found else []


def _deciding(response: str, letter: str, read: Callable[[str], str]) -> list[tuple[int, int]]:
    """The last mention of ``letter`` without which the extraction changes; else the last ones that do so together."""
    if not letter:
        return []
    pattern = rf"(?<![^\W\d_]){re.escape(letter)}(?![^\W\d_])"
    spans = [found.span() for found in re.finditer(pattern, response, re.IGNORECASE)][-_MOST:][::-1]
    tries = [*([span] for span in spans), *(spans[:count] for count in range(2, len(spans) + 1))]
    for chosen in tries:
        text = response
        for start, stop in chosen:
            text = f"{text[:start]}{' ' * (stop - start)}{text[stop:]}"
        if read(text) != letter:
            return chosen
    return []
