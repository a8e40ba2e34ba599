"""Documents and samples of MedStreamBench items without any video: scoring never looks at pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from release_rows import single_turn_row, streaming_row

from medtasks.answers import AlertStateFilter, AnswerabilityFilter
from medtasks.benchmarks.medstreambench import documents
from medtasks.benchmarks.medstreambench.records import parse_medstream_row
from medtasks.benchmarks.medstreambench.scoring import process_results
from medtasks.catalog.records import Where
from medtasks.catalog.registry import get_filter
from medtasks.runs.samples import Sample

__all__ = ["documents_of", "open_streaming_row", "samples_of", "single_turn_row", "streaming_row"]


def open_streaming_row(**changes: Any) -> dict[str, Any]:
    """A future stream whose answers need a judge."""
    row = streaming_row(
        question_type="open",
        choices=None,
        answer=None,
        reference_answer="Bleeding from the bed.",
        judge_rubric={"correctness": "0-2", "evidence_grounding": "0-2", "safety": "0-1"},
        **changes,
    )
    for turn in row["rounds"]:
        if turn["answerable"]:
            turn["expected_output"] = "Bleeding from the bed."
    return row


def documents_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents of a record, each with one frame at its window's end."""
    record = parse_medstream_row(row, Where("x.jsonl", 1))
    rounds = [turn.model_copy(update={"media": ("v.mp4",), "frames": (0,), "times": (0.0,)}) for turn in record.rounds]
    made = documents(record.model_copy(update={"rounds": tuple(rounds), "media": ("v.mp4",)}))
    return [{"benchmark": "medstreambench", **document} for document in made]


def samples_of(row: dict[str, Any], responses: Sequence[str]) -> list[Sample]:
    """What a model that says ``responses`` round by round leaves in the sample log."""
    samples = []
    for document, response in zip(documents_of(row), responses, strict=True):
        step = AlertStateFilter if document["temporal_mode"] == "proactive" else AnswerabilityFilter
        (filtered,) = step().apply([[response]], [document])
        assert isinstance(filtered, str)
        values = process_results(document, [filtered])
        rest = {key: value for key, value in document.items() if key not in ("sample_id", "cluster", "media", "target")}
        samples.append(
            Sample(
                sample_id=document["sample_id"],
                task=f"medstreambench_{document['subtask']}",
                cluster=document["cluster"],
                media=("v.mp4",),
                prompt_hash="0",
                prompt="",
                target=document["target"],
                responses=(response,),
                filtered=filtered,
                status=get_filter(step.__name__).status(filtered),
                scores={name: value.get("score") for name, value in values.items()},
                statistics={},
                pending=tuple(name for name, value in values.items() if value.get("pending")),
                document=rest,
            )
        )
    return samples
