"""One sample as its page shows it: media, prompt, response, options, scores, verdicts, and the other runs' answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks.documents import prompt_text
from medtasks.errors import MedtasksError, UsageError, first_line
from medtasks.filters.option_letter import read_stages
from medtasks.results.samples import Sample
from medtasks.spec import TaskSpec, load_spec

from ..columns import unit_of
from ..local_data import document_of
from ..numbers import UNIT_LABELS, number
from .highlight import Segment, response_parts, segments
from .index import SampleIndex
from .library import Library, Run
from .media import Media, Shown
from .query import Selection
from .stream_view import StreamView, stream_view


@dataclass(frozen=True)
class Score:
    """One metric of a sample, or of the answers of a run so far; ``note`` says why there is no value."""

    metric: str
    text: str = ""
    unit: str = ""
    interval: str = ""
    note: str = ""


@dataclass(frozen=True)
class Verdict:
    """One judge's verdict on one response: aspects with scores and reasons, or why there is none."""

    rubric: str
    judge: str
    response: int
    aspects: tuple[tuple[str, str, str], ...]
    unjudged: str = ""


@dataclass(frozen=True)
class Reply:
    """One response: its parts by stage, the last with the extracted segment; or why it is missing."""

    parts: tuple[tuple[str, tuple[Segment, ...]], ...]
    failed: str = ""


@dataclass(frozen=True)
class Answered:
    """The answer of one run to the question."""

    run: Run
    outcome: int
    sample: Sample
    replies: tuple[Reply, ...]
    scores: tuple[Score, ...]
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class SampleParts:
    """Everything that the page of one sample shows; ``prompt`` are the texts of the prompt, by stage.

    ``text_first`` says that the back-end put the media behind the text, ``blind`` that it got none. ``facts`` are the
    other fields of the document.
    """

    own: Answered
    others: tuple[Answered, ...]
    unanswered: tuple[Run, ...]
    media: Shown
    prompt: tuple[tuple[str, str], ...]
    system: str
    text_first: bool
    blind: bool
    options: tuple[tuple[str, Any], ...]
    facts: Mapping[str, Any]
    stream: StreamView | None


def sample_parts(library: Library, selection: Selection, sample_id: str, media: Media) -> SampleParts:
    run, task = selection.run, selection.query.task
    if sample_id not in selection.index.rows:
        raise UsageError(f"{task}: this run has no sample {sample_id}; choose one of its list.")
    own = _answered(run, selection.index, sample_id, selection.metric)
    indexes = {one: library.index(one, task) for one in library.tasks[task] if one.key != run.key}
    others = [
        _answered(one, index, sample_id, selection.metric) for one, index in indexes.items() if sample_id in index.rows
    ]
    sample, facts = own.sample, run.manifest.tasks[task]
    choices = sample.document.get("choices")
    presentation = facts.presentation
    return SampleParts(
        own=own,
        others=tuple(others),
        unanswered=tuple(one for one, index in indexes.items() if sample_id not in index.rows),
        media=media.shown(sample, run.manifest),
        prompt=tuple(_prompt(load_spec(task), sample)),
        system=presentation.get("system_prompt") or str(run.manifest.settings.get("system_instruction") or ""),
        text_first=presentation.get("order", "").startswith("text"),
        blind=facts.blind,
        options=tuple(sorted(choices.items())) if isinstance(choices, Mapping) else (),
        facts={name: value for name, value in sorted(sample.document.items()) if value not in (None, "", [], {})},
        stream=_stream(sample, run, selection.index, indexes),
    )


def _answered(run: Run, index: SampleIndex, sample_id: str, metric: str) -> Answered:
    row = index.rows[sample_id]
    (sample,) = index.read([row])
    spec = load_spec(sample.task)
    document = document_of(sample)
    filtered = [one.filtered for one in sample.repeats] or [sample.filtered]
    failed = sample.failed or (None,) * len(sample.responses)
    replies = [
        Reply((), reason) if reason is not None else _reply(spec, response, text, document)
        for response, reason, text in zip(sample.responses, failed, filtered * len(failed), strict=False)
    ]
    outcome = int(index.outcomes(metric)[row])
    return Answered(run, outcome, sample, tuple(replies), tuple(_scores(sample)), tuple(_verdicts(sample)))


def _reply(spec: TaskSpec, response: str, filtered: str, document: Mapping[str, Any]) -> Reply:
    *earlier, (name, last) = response_parts(spec, response)
    marked = tuple(segments(spec, last, filtered, document))
    return Reply((*((stage, (Segment(text),)) for stage, text in earlier), (name, marked)))


def _prompt(spec: TaskSpec, sample: Sample) -> list[tuple[str, str]]:
    """The prompt as it was sent; the second stage is rendered again from the first one's output."""
    if spec.stage1_template is None or not sample.responses:
        return [("", sample.prompt)]
    first = [("Stage 1", sample.prompt)]
    observations = read_stages(sample.responses[0])[0]
    if not observations or sample.prompt_hash != spec.prompt_hash:
        return first
    try:
        text = prompt_text(document_of(sample), spec.template or "", observations=observations.strip())
    except (MedtasksError, KeyError) as error:
        text = f"It cannot be rendered again ({first_line(error)})."
    return [*first, ("Stage 2, without media", text)]


def _scores(sample: Sample) -> list[Score]:
    found = []
    for metric, value in sample.scores.items():
        unit = unit_of(metric)
        if value is not None:
            found.append(Score(metric, number(value, unit), UNIT_LABELS[unit]))
        elif metric in sample.pending or (metric in sample.judged and sample.judged[metric].value().pending):
            found.append(Score(metric, note="awaits a judge"))
        elif metric in sample.limits:
            found.append(Score(metric, note="no response"))
    return found


def _verdicts(sample: Sample) -> list[Verdict]:
    found = []
    for rubric, responses in sample.verdicts.items():
        for place, response in enumerate(responses, 1):
            for judge, entry in response.judges.items():
                scores, reasons = entry.scores or {}, entry.reasons
                aspects = tuple((name, str(score), reasons.get(name, "")) for name, score in scores.items())
                found.append(Verdict(rubric, judge, place, aspects, entry.unjudged or ""))
            if response.open:
                aspects = tuple((name, "undecided", why) for name, why in response.open.items())
                found.append(Verdict(rubric, "all judges", place, aspects))
    return found


def _stream(sample: Sample, run: Run, index: SampleIndex, indexes: Mapping[Run, SampleIndex]) -> StreamView | None:
    item = str(sample.document.get("item_id") or "")
    if not item:
        return None
    rounds = {(one.key, one.label): held.read(held.of_item(item)) for one, held in {run: index, **indexes}.items()}
    return stream_view(sample, rounds)
