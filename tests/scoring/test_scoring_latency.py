"""The figures of a run's latency, worked out by hand, and what they are of."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from made_samples import made_manifest, made_sample

from medtasks.cli.latency_tables import figure_text
from medtasks.runs.times import RequestTime
from medtasks.scoring.latency import (
    Observed,
    RoundedEstimate,
    latency_of,
    run_latency,
    why_no_seconds,
)
from medtasks.scoring.run_record import RunRecord

TASK, OTHER = "mi_cxr_tel_single", "mi_cxr_tel_multiple"


def observed(number: int, seconds: float | None, **fields: Any) -> Observed:
    """A request of a cluster of its own."""
    name = f"s{number:03d}"
    return Observed(RequestTime(sample_id=name, seconds=seconds, **fields), f"p{number}")


def test_percentiles_are_of_the_requests_with_seconds() -> None:
    requests = [observed(number, number / 10) for number in range(1, 101)]
    latency = latency_of([*requests, observed(101, None), observed(102, None, failed=True)])
    assert (latency.requests, latency.measured, latency.clusters) == (102, 100, 100)
    assert latency.without == {"failed": 1, "not measured": 1}
    assert latency.median is not None
    assert latency.p95 is not None
    assert (latency.median.value, latency.p95.value) == (5.0, 9.5)
    # 50 ± 1.984 · 5 and 95 ± 1.984 · 2.179 of 100, rounded up to the next request
    assert latency.median.interval == (4.1, 6.0)
    assert latency.p95.interval == (9.1, 10.0)


def test_the_seconds_of_a_batch_count_once_for_tokens_and_in_full_for_a_request() -> None:
    batch = [observed(number, 8.0, batch=4, output_tokens=10) for number in range(4)]
    latency = latency_of([*batch, observed(4, 2.0, output_tokens=10)])
    assert latency.batched == 4
    assert latency.median is not None
    assert latency.median.value == 8.0
    assert latency.output_tokens_per_second is not None
    assert latency.output_tokens_per_second.value == 50 / (8 + 2)


def test_requests_of_one_cluster_have_no_interval() -> None:
    latency = latency_of([Observed(RequestTime(sample_id="a", seconds=1.0), "p") for _ in range(9)])
    assert latency.median == RoundedEstimate(value=1.0, interval=(None, None))
    assert (figure_text(latency.median), figure_text(latency.first_token_median)) == ("1.00", "")


def test_hardware_attempts_and_queues_are_stated() -> None:
    requests = [
        observed(0, 1.0, hardware="1 × GPU", queued=4.0, in_flight=8, attempts=3, first_token=0.25),
        observed(1, 1.0, hardware="1 × GPU", queued=6.0),
        observed(2, 1.0),
    ]
    latency = latency_of(requests)
    assert latency.hardware == {"1 × GPU": 2, "unknown": 1}
    assert (latency.queued_median, latency.in_flight, latency.repeated) == (4.0, 8, 1)
    assert latency.first_tokens == 1
    assert latency.first_token_p95 == RoundedEstimate(value=0.25, interval=(None, None))
    assert figure_text(RoundedEstimate(value=123.4, interval=(0.5, None))) == "123 [0.500, ?]"
    assert figure_text(RoundedEstimate(value=99.96, interval=(9.996, None))) == "100 [10.0, ?]"


def test_a_group_has_the_requests_of_its_tasks_in_the_clusters_of_their_samples() -> None:
    samples = {
        task: [made_sample(task, number, True) for number in range(3)] for task in (TASK, OTHER)
    }
    manifest = made_manifest(processes=2, groups={"mi_cxr": (TASK, OTHER)})
    run = RunRecord.scored(manifest, samples)
    facts = dict.fromkeys(samples)
    run = dataclasses.replace(run, manifest=manifest.model_copy(update={"tasks": facts}))
    times = {
        task: [RequestTime(sample_id=f"s{number:03d}", seconds=seconds) for number in range(3)]
        for task, seconds in ((TASK, 1.0), (OTHER, 3.0))
    }
    latency = run_latency(run, times)
    assert latency.processes == 2
    assert [latency.tasks[task].median.value for task in (TASK, OTHER)] == [1.0, 3.0]  # type: ignore[union-attr]
    group = latency.groups["mi_cxr"]
    # patients are in both tasks
    assert (group.measured, group.clusters) == (6, 3)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"model": {"layout": "jsonl"}}, "the responses were made elsewhere"),
        ({}, "the back-end runs no model"),
        ({"usage": {"seconds": 3.0}}, "the run was made with a version of medtasks that did not"),
    ],
)
def test_a_run_without_seconds_says_why(fields: dict[str, Any], reason: str) -> None:
    assert why_no_seconds(made_manifest(**fields)).startswith(f"no seconds: {reason}")
