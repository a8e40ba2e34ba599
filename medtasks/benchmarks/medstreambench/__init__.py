"""MedStreamBench: time-aware video QA, single-turn and in streaming rounds (paper, section 5).

A record is one document per round, which sees its own window and nothing later. Task files refer to
names of this module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.benchmarks.medstreambench.board import MEDSTREAMBENCH
from medtasks.benchmarks.medstreambench.error_kinds import ALERT_DELAY, ERRORS, alert_delay
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.medstreambench.records import (
    ABSTENTIONS,
    MedStreamRecord,
    MedStreamRound,
)
from medtasks.benchmarks.medstreambench.responses import allowed_responses, as_alert
from medtasks.benchmarks.medstreambench.table4 import (
    OVERALL_TABLE4,
    OVERALL_TABLE4_EQ10,
    table4_value,
)
from medtasks.benchmarks.medstreambench.turns import (
    is_mismatch,
    is_open,
    turn_of,
    turn_of_sample,
)
from medtasks.benchmarks.rows import Rows
from medtasks.catalog.benchmark import (
    Benchmark,
    DataSource,
    Document,
    Publication,
    RecordCounts,
    ScoringRules,
    StreamRules,
    shipped,
)
from medtasks.catalog.items import by_fields, round_items
from medtasks.catalog.records import letters_and_digits
from medtasks.catalog.registry import Plugin
from medtasks.core.settings import current_settings
from medtasks.data.media.windows import thin
from medtasks.data.prepare_commands import prepare_command
from medtasks.data.sources import read_table
from medtasks.metrics.stream_values import round_values

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
    """What one filtered response contributes: the same to every metric.

    The rounds of an item are joined later.
    """
    turn = turn_of(doc, results[0])
    facts = {
        "cluster": doc["cluster"],
        "task": f"medstreambench_{doc['subtask']}",
        "turn": asdict(turn),
    }
    names = SINGLE_TURN_METRICS if doc["task_mode"] == "single_turn" else STREAMING_METRICS
    values = {name: dict(facts) for name in names}
    if turn.content is not None:
        values["content"]["score"] = turn.content
    return values


_ORGANS = read_table(__file__, "organs.yaml", dict[str, tuple[str, ...]])


def _dataset_key(dataset: str) -> str:
    """A dataset's name without what differs between its spellings."""
    return letters_and_digits(dataset).removesuffix("dataset")


_GROUP_OF: dict[str, str] = {}
"""The organ or procedure group of each source dataset."""

for _group, _datasets in _ORGANS.items():
    _GROUP_OF.update((_dataset_key(name), _group) for name in _datasets)


def documents(record: MedStreamRecord) -> list[Document]:
    """One document per round, each with its own window only; a single-turn item has one.

    ``MEDTASKS_MAX_FRAMES`` thins the frames of every document; the cap is a field of the document.
    """
    shared = _item_fields(record)
    most = current_settings().max_frames
    rounds = []
    for number, turn in enumerate(record.rounds, start=1):
        rounds.append({**shared, **_round_fields(record, number, turn, most)})
    return rounds


def _item_fields(record: MedStreamRecord) -> Document:
    """The fields that all rounds of an item share."""
    as_recorded = record.model_dump(
        mode="json", exclude={"rounds", "media", "judge_rubric", "choices", "sample_id"}
    )
    responses = allowed_responses(record)
    return {
        **as_recorded,
        "item_id": record.sample_id,
        "subtask": record.subtask,
        "organ_group": _GROUP_OF.get(_dataset_key(record.dataset), "unlisted dataset"),
        "options": list(record.choices),
        "judge_rubric": json.dumps(record.judge_rubric, sort_keys=True, ensure_ascii=False),
        "rounds": len(record.rounds),
        "allowed_responses": responses.allowed,
        "abstention": responses.abstention,
        "positive_response": responses.positive,
        "guesses": responses.guesses,
    }


def _round_fields(
    record: MedStreamRecord, number: int, turn: MedStreamRound, most: int | None
) -> Document:
    """The fields of one round, with at most ``most`` frames of its window."""
    sample_id = record.sample_id
    if record.task_mode == "streaming":
        sample_id = f"{record.sample_id}@{number}"
    target = "; ".join(turn.expected)
    if record.temporal_mode == "proactive" and turn.answerable:
        target = as_alert(target)
    return {
        "sample_id": sample_id,
        "round": number,
        "time": turn.time,
        "window_start": turn.window[0],
        "window_end": turn.window[1],
        **_frame_fields(turn, most),
        "expected": list(turn.expected),
        "answerable": turn.answerable,
        "target": target,
    }


def _frame_fields(turn: MedStreamRound, most: int | None) -> Document:
    """The frames of a round's window, at most ``most`` of them.

    Frames of a video are timestamps in its one file; in a sequence each frame is a file.
    """
    kept = thin(len(turn.times), most)
    frames: list[int] = []
    media = list(turn.media)
    if turn.frames:
        frames = [turn.frames[position] for position in kept]
    else:
        media = [media[position] for position in kept]
    return {
        "times": [turn.times[position] for position in kept],
        "frames": frames,
        "media": media,
        "max_frames": most,
    }


retrospective, present, future, future_streaming, proactive = (
    Rows.where("medstreambench", subtask=name)
    for name in ("retrospective", "present", "future", "future_streaming", "proactive")
)


def _without_options(document: Document) -> str:
    """Why an open question is left out: only a judge can score its answer."""
    return "" if document["options"] else "no_options"


retrospective_choices, present_choices, future_choices = (
    replace(rows, unusable=_without_options) for rows in (retrospective, present, future)
)


def _kinds(record: MedStreamRecord) -> Iterator[str]:
    yield record.task_mode
    yield record.subtask
    if record.task_mode == "streaming":
        yield from ["rounds"] * len(record.rounds)


BENCHMARK = Benchmark(
    name="medstreambench",
    title="MedStreamBench",
    publication=Publication(
        paper="arXiv 2607.01751",
        source="Venn2024/MedStreamBench, media of 22 upstream datasets",
        licence="Apache-2.0 (records); media: upstream terms",
        bibliography=Path(__file__).with_name("paper.bib"),
        figures=Path(__file__).with_name("published.csv"),
    ),
    data=DataSource(
        prepare="medtasks prepare medstreambench --source hub --media DIR",
        record=MedStreamRecord,
        documents=documents,
        command=prepare_command(
            prepare_medstream,
            "verifying media",
            "medtasks prepare medstreambench --source hub --media /data/media",
        ),
        mini=shipped(__file__),
        prepare_mini=lambda source, out: prepare_medstream(
            str(source / "records"), source / "media", out, mini=True
        ),
    ),
    cluster="video",
    visible_fields=frozenset(
        {
            "question",
            "options",
            "multi_select",
            "allowed_responses",
            "task_mode",
            "temporal_mode",
            "medium",
            "query_time",
            "window_start",
            "window_end",
            "times",
        }
    ),
    breakdowns=by_fields(
        "temporal_mode",
        "dataset",
        "organ_group",
        "question_type",
        "label_source",
        task="source_task",
    ),
    scoring=ScoringRules(
        join=lambda samples: round_items(
            samples, lambda rounds: round_values(rounds, turn_of_sample)
        ),
        pooled={
            OVERALL_TABLE4.name: table4_value,
            OVERALL_TABLE4_EQ10.name: table4_value,
            "content_fallback": lambda item: item.values.get("content_fallback"),
            "responsiveness_stream_length": lambda item: item.values.get(
                "responsiveness_stream_length"
            ),
            "overall_stream_length": lambda item: item.values.get("overall_stream_length"),
            ALERT_DELAY.name: alert_delay,
        },
        errors=ERRORS,
        to_judge={"medstream_rubric": is_open, "medstream_closed_fallback": is_mismatch},
    ),
    counts=RecordCounts(
        kinds=_kinds,
        published={"rows": 5419, "single_turn": 4663, "streaming": 756, "rounds": 3369},
        coverage=lambda record: (
            None if record.degenerate else (record.dataset, f"medstreambench_{record.subtask}")
        ),
    ),
    stream=StreamRules(
        timeline=turn_of_sample,
        sampled_frames=True,
    ),
)

PLUGIN = Plugin(
    benchmarks=(BENCHMARK,),
    metrics=(OVERALL_TABLE4, OVERALL_TABLE4_EQ10, ALERT_DELAY, *ERRORS.rates),
    layouts=(MEDSTREAMBENCH,),
)
