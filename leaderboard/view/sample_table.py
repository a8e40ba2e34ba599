"""The samples of a task as an Arrow table, a row each.

A table has what `medtasks.Run.samples` gives, and what lists filter, sort and search.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.items import SampleView
from medtasks.catalog.spec import load_spec
from medtasks.core.files import canonical_json
from medtasks.core.text import well_formed
from medtasks.runs.samples import JudgedResponse, Sample
from medtasks.scoring.verification_outcome import VERIFIED, Verification

SAMPLES: Mapping[str, str] = {
    "sample_id": "id of the sample, unique within a task",
    "cluster": "patient, image or video: samples of one cluster are not independent",
    "media": "names of its images or videos",
    "question": "the question, if the document has one",
    "prompt": "text of the prompt",
    "target": "reference answer",
    "response": "the first response; empty if the request failed",
    "responses": "all responses, one per repeat",
    "filtered": "the extracted answer",
    "reading": "how an option was given: letter, text or named; empty for other answers",
    "status": "ok, or the reason why no answer was extracted",
    "failed": "why the request has no response; null if it has one",
    "document": "the document as JSON text",
    "verdicts": "the judges' verdicts by rubric, as JSON text",
    "unverified": "what could not be verified here, and why; empty if everything was",
    "score_": (
        "the sample's value of a metric, in the metric's unit; null if it has none or is not "
        "judged yet"
    ),
}
"""Columns of `medtasks.Run.samples`.

Responses and verdicts are the run's; all else is computed from the data prepared here, by today's
rules.
"""

_COPIED = ("sample_id", "cluster", "prompt", "target", "filtered", "reading", "status")
_LIST = pa.list_(pa.string())
_TYPES = {
    **{name: pa.string() for name in SAMPLES if name != "score_"},
    **dict.fromkeys(("task", "choice", "item", "words"), pa.string()),
    **dict.fromkeys(("media", "responses", "decided"), _LIST),
    **dict.fromkeys(("start", "size", "round"), pa.int64()),
}
"""Types of the columns that every table has.

``start`` and ``size`` are the place of the sample's line, ``choice`` is the extracted option (empty
for open answers), ``item`` the streaming item of which the sample is a ``round``, ``decided`` what
judges decided (``rubric, aspect: score``), ``words`` everything that is searched, casefolded.
Further columns are ``score_METRIC``, the sample's own values, and ``group_BREAKDOWN``, the sample's
keys.
"""

Row: TypeAlias = dict[str, Any]


def table_of(
    lines: Iterable[tuple[int, int, Sample]], task: str, verification: Verification = VERIFIED
) -> pa.Table:
    """The table of the samples of ``task``.

    Args:
        lines: the place of each sample's line (start and size), and the sample.
        task: the name of the task.
        verification: what could not be verified of the samples.
    """
    benchmark = load_spec(task).benchmark
    rows: list[Row] = []
    for start, size, sample in lines:
        doubts = verification.doubts(sample.sample_id)
        rows.append(
            {
                **_texts(sample, benchmark, doubts),
                "task": task,
                "start": start,
                "size": size,
                "media": list(map(well_formed, sample.media)),
                "responses": list(map(well_formed, sample.responses)),
                "round": int(sample.document.get("round") or 0),
                "decided": _decisions(sample),
                **{f"score_{metric}": value for metric, value in sample.scores.items()},
                **_breakdown_keys(sample, benchmark),
            }
        )
    return pa.Table.from_pylist(rows, _table_schema(rows))


def _table_schema(rows: Sequence[Row]) -> pa.Schema:
    """The types of all columns; breakdowns with one value in all rows are left out.

    The metadata name the metrics with a value in some row.
    """
    first_row = rows[0] if rows else {}
    types = dict(_TYPES)
    metrics = []
    for name in first_row:
        if name.startswith("score_"):
            types[name] = pa.float64()
            if any(row.get(name) is not None for row in rows):
                metrics.append(name.removeprefix("score_"))
    for name, keys in first_row.items():
        if name.startswith("group_") and any(row.get(name) != keys for row in rows):
            types[name] = _LIST
    return pa.schema(list(types.items()), {"metrics": json.dumps(metrics)})


def _texts(sample: Sample, benchmark: Benchmark, doubts: str) -> dict[str, str | None]:
    """The columns with one text, without halves of surrogate pairs, which JSON may have."""
    document = sample.document
    question = document.get("question")
    texts = {
        **{name: getattr(sample, name) for name in _COPIED},
        "failed": sample.failure,
        "question": question if isinstance(question, str) else None,
        "response": next(iter(sample.responses), None),
        "document": canonical_json(document),
        "verdicts": _verdicts_json(sample),
        "unverified": doubts,
        "choice": sample.filtered if sample.filtered in benchmark.options else "",
        "item": str(document.get("item_id") or ""),
        "words": _searched_text(sample),
    }
    for name, text in texts.items():
        if text is not None:
            texts[name] = well_formed(text)
    return texts


def _verdicts_json(sample: Sample) -> str:
    """The judges' verdicts as JSON."""
    if not sample.verdicts:  # most samples: a dump takes long
        return "{}"
    fields = sample.model_dump(mode="json", include={"verdicts"})
    return canonical_json(fields["verdicts"])


def _searched_text(sample: Sample) -> str:
    """The text in which a list's search looks, casefolded."""
    document = sample.document
    parts = [sample.sample_id, sample.target, *sample.responses]
    parts.append(str(document.get("question") or sample.prompt))
    choices = document.get("choices")
    if isinstance(choices, dict):
        parts += map(str, choices.values())
    return "\n".join(parts).casefold()


def _breakdown_keys(sample: Sample, benchmark: Benchmark) -> dict[str, list[str]]:
    """The sample's keys by breakdown, in columns named ``group_BREAKDOWN``."""
    # without values, which breakdowns do not read
    view = SampleView(
        sample.sample_id,
        sample.cluster,
        {**sample.document, "target": sample.target},
        sample.filtered,
        sample.status,
    )
    columns = {}
    for name, keys_of in benchmark.breakdowns.items():
        try:
            keys = [well_formed(str(key)) for key in keys_of(view)]
        except Exception:  # of any package, if a stripped document lacks what its breakdown reads
            keys = []
        columns[f"group_{name}"] = keys
    return columns


def _decisions(sample: Sample) -> list[str]:
    """What the judges decided: scores, and whether judges differ or could not decide."""
    decisions: set[str] = set()
    for rubric, responses in sample.verdicts.items():
        for response in responses:
            scores = _distinct_scores(response)
            decisions.update(f"{rubric}, {aspect}: {score}" for aspect, score in scores)
            aspects = {aspect for aspect, _ in scores}
            if len(aspects) < len(scores):
                decisions.add(f"{rubric}: judges differ")
            if response.open:
                decisions.add(f"{rubric}: undecided")
            elif not response.judges:
                decisions.add(f"{rubric}: no judge asked")
    return sorted(decisions)


def _distinct_scores(response: JudgedResponse) -> set[tuple[str, Any]]:
    """The aspects of a response with the scores that judges gave them."""
    scores: set[tuple[str, Any]] = set()
    for verdict in response.judges.values():
        scores.update((verdict.scores or {}).items())
    return scores
