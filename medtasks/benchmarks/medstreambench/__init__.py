"""MedStreamBench: time-aware video QA, single-turn and in streaming rounds (paper, section 5).

A record is one document per round, which sees its own window and nothing later. Task files refer to names of this
module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.medstreambench.board import MEDSTREAMBENCH
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.medstreambench.records import ABSTENTIONS, MedStreamRecord
from medtasks.benchmarks.medstreambench.scoring import (
    ALERT_DELAY,
    ERRORS,
    OVERALL_TABLE4,
    OVERALL_TABLE4_EQ10,
    alert_delay,
    is_mismatch,
    is_open,
    join_rounds,
    process_results,
    table4_value,
    turn_of_sample,
)
from medtasks.catalog.benchmark import Benchmark, Document, by_field, by_fields, shipped
from medtasks.catalog.records import plain
from medtasks.catalog.registry import Plugin
from medtasks.core.settings import current_settings
from medtasks.data.media.windows import thin
from medtasks.data.preparation import prepare_command
from medtasks.data.sources import read_table

_GROUP_OF = {
    plain(dataset).removesuffix("dataset"): group
    for group, datasets in read_table(__file__, "organs.yaml", dict[str, tuple[str, ...]]).items()
    for dataset in datasets
}
"""The organ or procedure group of each source dataset."""


def documents(record: MedStreamRecord) -> list[Document]:
    """One document per round, each with its own window only; a single-turn item has one.

    ``MEDTASKS_MAX_FRAMES`` thins the frames of every document; the cap is a field of the document.
    """
    alerts = record.temporal_mode == "proactive"
    answer = "; ".join(next((turn.expected for turn in record.rounds if turn.answerable), ()))
    abstentions = ABSTENTIONS["proactive" if alerts else "future"]
    if alerts:
        positive = _alert(answer or "something changed")
        allowed, guesses = [*abstentions, "alert: <reason>"], [*abstentions, positive]
    else:
        positive = answer or "yes"
        allowed = [*abstentions, "<answer>"]
        guesses = [*record.choices, *(abstentions if record.choices and record.task_mode == "streaming" else ())]
    shared = {
        **record.model_dump(mode="json", exclude={"rounds", "media", "judge_rubric", "choices", "sample_id"}),
        "item_id": record.sample_id,
        "subtask": record.subtask,
        "organ_group": _GROUP_OF.get(plain(record.dataset).removesuffix("dataset"), "unlisted dataset"),
        "options": list(record.choices),
        "judge_rubric": json.dumps(record.judge_rubric, sort_keys=True, ensure_ascii=False),
        "rounds": len(record.rounds),
        "allowed_responses": allowed,
        "abstention": abstentions[0],
        "positive_response": positive,
        "guesses": guesses,
    }
    most = current_settings().max_frames
    found = []
    for number, turn in enumerate(record.rounds, start=1):
        kept = thin(len(turn.times), most)
        target = "; ".join(turn.expected)
        window = {
            "sample_id": record.sample_id if record.task_mode == "single_turn" else f"{record.sample_id}@{number}",
            "round": number,
            "time": turn.time,
            "window_start": turn.window[0],
            "window_end": turn.window[1],
            "times": [turn.times[position] for position in kept],
            "frames": [turn.frames[position] for position in kept] if turn.frames else [],
            "media": list(turn.media) if turn.frames else [turn.media[position] for position in kept],
            "max_frames": most,
            "expected": list(turn.expected),
            "answerable": turn.answerable,
            "target": _alert(target) if alerts and turn.answerable else target,
        }
        found.append({**shared, **window})
    return found


def _alert(reason: str) -> str:
    return reason if reason.casefold().startswith("alert") else f"alert: {reason}"


retrospective, present, future, future_streaming, proactive = (
    Rows.where("medstreambench", subtask=name)
    for name in ("retrospective", "present", "future", "future_streaming", "proactive")
)
retrospective_choices, present_choices, future_choices = (  # open answers are scored by a judge
    replace(rows, unusable=lambda document: "" if document["options"] else "no_options")
    for rows in (retrospective, present, future)
)


def _kinds(record: MedStreamRecord) -> Iterator[str]:
    yield record.task_mode
    yield record.subtask
    if record.task_mode == "streaming":
        yield from ["rounds"] * len(record.rounds)


_TABLE4 = (OVERALL_TABLE4, OVERALL_TABLE4_EQ10)

BENCHMARK = Benchmark(
    name="medstreambench",
    title="MedStreamBench",
    paper="arXiv 2607.01751",
    source="Venn2024/MedStreamBench, media of 22 upstream datasets",
    licence="Apache-2.0 (records); media: upstream terms",
    prepare="medtasks prepare medstreambench --source hub --media DIR",
    cluster="video",
    visible_fields=frozenset(
        (
            *("question", "options", "multi_select", "allowed_responses"),
            *("task_mode", "temporal_mode", "medium", "query_time", "window_start", "window_end", "times"),
        )
    ),
    breakdowns={
        **by_fields("temporal_mode", "dataset", "organ_group", "question_type", "label_source"),
        "task": by_field("source_task"),
    },
    join=join_rounds,
    timeline=turn_of_sample,
    sampled_frames=True,
    pooled={
        **{metric.name: table4_value for metric in _TABLE4},
        "content_fallback": lambda item: item.values.get("content_fallback"),
        "responsiveness_stream_length": lambda item: item.values.get("responsiveness_stream_length"),
        "overall_stream_length": lambda item: item.values.get("overall_stream_length"),
        ALERT_DELAY.name: alert_delay,
    },
    errors=ERRORS,
    to_judge={"medstream_rubric": is_open, "medstream_closed_fallback": is_mismatch},
    documents=documents,
    record=MedStreamRecord,
    coverage=lambda record: None if record.degenerate else (record.dataset, f"medstreambench_{record.subtask}"),
    mini=shipped(__file__),
    prepare_mini=lambda source, out: prepare_medstream(str(source / "records"), source / "media", out, mini=True),
    command=prepare_command(
        prepare_medstream, "verifying media", "medtasks prepare medstreambench --source hub --media /data/media"
    ),
    kinds=_kinds,
    published={"rows": 5419, "single_turn": 4663, "streaming": 756, "rounds": 3369},
    figures=Path(__file__).with_name("published.csv"),
)

PLUGIN = Plugin(benchmarks=(BENCHMARK,), metrics=(*_TABLE4, ALERT_DELAY, *ERRORS.rates), layouts=(MEDSTREAMBENCH,))
