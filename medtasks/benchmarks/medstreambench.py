"""MedStreamBench: time-aware video QA, single-turn and in streaming rounds (paper, section 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.base import Benchmark, Document, SampleView
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.streams import is_mismatch, is_open, join_rounds, table4_value, turn_of
from medtasks.data.media.windows import frame_cap, thin
from medtasks.data.organs import organ_group
from medtasks.data.records import ABSTENTIONS, MedStreamRecord, MedStreamRound
from medtasks.data.store import PREPARE_COMMANDS
from medtasks.filters import UNANSWERABLE

__all__ = ["BENCHMARK", "documents", "process_results"]

ALERT = "alert: "


def documents(record: MedStreamRecord) -> list[Document]:
    """One document per round, each seeing its own window alone; a single-turn item has one.

    ``MEDTASKS_MAX_FRAMES`` thins the frames of every document; the cap stands in the document.
    """
    single = record.task_mode == "single_turn"
    shared = {
        **record.model_dump(mode="json", exclude={"rounds", "media", "judge_rubric", "choices", "sample_id"}),
        "item_id": record.sample_id,
        "subtask": record.subtask,
        "organ_group": organ_group(record.dataset),
        "options": list(record.choices),
        "judge_rubric": json.dumps(record.judge_rubric, sort_keys=True, ensure_ascii=False),
        "rounds": len(record.rounds),
        **_responses(record),
    }
    return [
        {
            **shared,
            "sample_id": record.sample_id if single else f"{record.sample_id}@{number}",
            "round": number,
            **_window(turn),
            "target": _target(record, turn),
        }
        for number, turn in enumerate(record.rounds, start=1)
    ]


def _window(turn: MedStreamRound) -> Document:
    most = frame_cap()
    kept = thin(len(turn.times), most)
    return {
        "time": turn.time,
        "window_start": turn.window[0],
        "window_end": turn.window[1],
        "times": [turn.times[position] for position in kept],
        "frames": [turn.frames[position] for position in kept] if turn.frames else [],
        "media": list(turn.media) if turn.frames else [turn.media[position] for position in kept],
        "max_frames": most,
        "expected": list(turn.expected),
        "answerable": turn.answerable,
    }


def _responses(record: MedStreamRecord) -> Document:
    """What may be answered, as the release's response protocol has it, and what baselines say."""
    if record.temporal_mode == "proactive":
        alert = next((turn.expected for turn in record.rounds if turn.answerable), ("something changed",))
        return {
            "allowed_responses": ["no_alert", "uncertain", "alert: <reason>"],
            "abstention": ABSTENTIONS["proactive"][0],
            "positive_response": _alert("; ".join(alert)),
            "guesses": [*ABSTENTIONS["proactive"], _alert("; ".join(alert))],
        }
    answer = next((turn.expected for turn in record.rounds if turn.answerable), ("yes",))
    return {
        "allowed_responses": [UNANSWERABLE, "<answer>"],
        "abstention": UNANSWERABLE,
        "positive_response": "; ".join(answer),
        "guesses": [*record.choices, *([UNANSWERABLE] if record.choices and record.task_mode == "streaming" else [])],
    }


def _alert(reason: str) -> str:
    return reason if reason.casefold().startswith("alert") else f"{ALERT}{reason}"


def _target(record: MedStreamRecord, turn: MedStreamRound) -> str:
    expected = "; ".join(turn.expected)
    return _alert(expected) if record.temporal_mode == "proactive" and turn.answerable else expected


def _field(name: str) -> Any:
    def keys(view: SampleView) -> tuple[str, ...]:
        return (view.document[name] or "(not stated)",)

    return keys


BENCHMARK = Benchmark(
    name="medstreambench",
    documents=documents,
    record=MedStreamRecord,
    title="MedStreamBench",
    paper="arXiv 2607.01751",
    source="Venn2024/MedStreamBench, media of 22 upstream datasets",
    licence="Apache-2.0 (records); media: upstream terms",
    prepare=PREPARE_COMMANDS["medstreambench"],
    cluster="video",
    visible_fields=frozenset(
        {
            "allowed_responses",
            "medium",
            "multi_select",
            "options",
            "query_time",
            "question",
            "task_mode",
            "temporal_mode",
            "times",
            "window_end",
            "window_start",
        }
    ),
    breakdowns={
        "temporal_mode": _field("temporal_mode"),
        "dataset": _field("dataset"),
        "organ_group": _field("organ_group"),
        "question_type": _field("question_type"),
        "task": _field("source_task"),
        "label_source": _field("label_source"),
    },
    join=join_rounds,
    pooled={"overall_table4": table4_value},
    to_judge={"medstream_rubric": is_open, "medstream_closed_fallback": is_mismatch},
)


def _subtask(name: str) -> Rows:
    return Rows("medstreambench", lambda row: row["subtask"] == name)


retrospective = _subtask("retrospective")
present = _subtask("present")
future = _subtask("future")
future_streaming = _subtask("future_streaming")
proactive = _subtask("proactive")

SINGLE_TURN_METRICS = ("content", "content_closed", "overall")
STREAMING_METRICS = (
    "content",
    "content_closed",
    "responsiveness",
    "stability",
    "overall",
    "false_alarm_rate",
    "miss_rate",
    "signed_delay",
    "invalid_rate",
)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What one filtered response contributes: the same facts for every metric, since items are joined later.

    An open answer has no content of its own here: a judge gives it, as ``content_open``.
    """
    turn = turn_of(doc, results[0])
    facts = {"cluster": doc["cluster"], "turn": turn.payload()}
    names = SINGLE_TURN_METRICS if doc["task_mode"] == "single_turn" else STREAMING_METRICS
    values = {name: dict(facts) for name in names}
    if turn.content is not None:
        values["content"]["score"] = turn.content
    return values
