"""MedStreamBench: time-aware video QA, single-turn and in streaming rounds (paper, section 5).

Task files refer to names of this module, and names are part of a task's hash: do not rename them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from medtasks.benchmarks.medstreambench.board import MEDSTREAMBENCH
from medtasks.benchmarks.medstreambench.documents import *
from medtasks.benchmarks.medstreambench.documents import documents as documents_of
from medtasks.benchmarks.medstreambench.errors import ALERT_DELAY, ERRORS, alert_delay
from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.benchmarks.medstreambench.records import MedStreamRecord
from medtasks.benchmarks.medstreambench.scoring import (
    BREAKDOWNS,
    OVERALL_TABLE4,
    OVERALL_TABLE4_EQ10,
    is_mismatch,
    is_open,
    join_rounds,
    process_results,
    table4_value,
    turn_of_sample,
)
from medtasks.catalog.benchmark import Benchmark, Item, Value, shipped
from medtasks.catalog.registry import Plugin
from medtasks.data.preparation import prepare_command


def _kinds(record: MedStreamRecord) -> Iterator[str]:
    yield record.task_mode
    yield record.subtask
    if record.task_mode == "streaming":
        yield from ["rounds"] * len(record.rounds)


def _of_item(name: str) -> Callable[[Item], Value | None]:
    return lambda item: item.values.get(name)


_OF_ITEMS = ("content_fallback", "responsiveness_stream_length", "overall_stream_length")
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
    breakdowns=BREAKDOWNS,
    join=join_rounds,
    timeline=turn_of_sample,
    sampled_frames=True,
    pooled={
        **{metric.name: table4_value for metric in _TABLE4},
        **{name: _of_item(name) for name in _OF_ITEMS},
        ALERT_DELAY.name: alert_delay,
    },
    errors=ERRORS,
    to_judge={"medstream_rubric": is_open, "medstream_closed_fallback": is_mismatch},
    documents=documents_of,
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
