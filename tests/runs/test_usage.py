"""What a run used: sums over processes and parts of a run, and nothing that was not counted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks.runs.replies import Answer, Reply, Slot, Work
from medtasks.runs.usage import RunUsage, Usage, run_usage, usage_of


def asked(
    number: int, start: float, end: float, seconds: float, task: str = "t", **reply: Any
) -> Answer:
    """One reply to document ``number``, whose batch took from ``start`` to ``end``."""
    known = {
        "input_tokens": 100,
        "output_tokens": 7,
        "vision_tokens": 60,
        "reused_tokens": 40,
        "media_seconds": 0.5,
    }
    work = Work(start, end, seconds, None, 1000 + number)
    return Answer(Slot(task, number, 0, ""), Reply("", **{**known, **reply}, work=work))


def round_of(answer: Answer) -> Answer:
    return replace(answer, slot=replace(answer.slot, outcome=False))


def test_counts_are_summed_and_the_slowest_process_has_the_time() -> None:
    first = [asked(0, 0.0, 4.0, 2.0), asked(1, 0.0, 4.0, 2.0), asked(2, 4.0, 5.0, 1.0)]
    second = [asked(3, 0.0, 3.0, 3.0)]
    usage = usage_of([first, second], devices=2)
    assert (usage.samples, usage.seconds, usage.process_seconds, usage.devices) == (4, 5.0, 8.0, 2)
    assert (usage.prompt_tokens, usage.output_tokens, usage.vision_tokens, usage.reused_tokens) == (
        400,
        28,
        240,
        160,
    )
    assert usage.time_to_first_answer == 3.0
    assert usage.samples_per_second == 4 / 5
    assert usage.media_share == 2.0 / 8.0
    assert (usage.peak_rss, usage.peak_device_memory) == (1003, None)


def test_what_is_not_counted_is_absent_and_never_zero() -> None:
    unknown = {"input_tokens": None, "media_seconds": None}
    some = [
        asked(0, 0.0, 1.0, 1.0, reused_tokens=0),
        asked(1, 1.0, 2.0, 1.0, reused_tokens=0, **unknown),
    ]
    written = json.loads(usage_of([some]).model_dump_json())
    assert written.keys().isdisjoint(
        {"prompt_tokens", "media_seconds", "media_share", "peak_device_memory"}
    )
    assert (written["output_tokens"], written["reused_tokens"]) == (14, 0)
    assert RunUsage().model_dump(mode="json") == {}
    assert run_usage([[]]).model_dump(mode="json") == {}


def test_a_failed_request_takes_time_and_has_no_tokens() -> None:
    usage = usage_of(
        [[asked(0, 0.0, 1.0, 1.0, failed="HTTP 500", input_tokens=None), asked(1, 1.0, 3.0, 2.0)]]
    )
    assert (usage.samples, usage.seconds, usage.prompt_tokens, usage.time_to_first_answer) == (
        1,
        3.0,
        100,
        3.0,
    )


def test_rounds_are_one_sample_with_the_tokens_of_all_rounds() -> None:
    rounds = [round_of(asked(0, 0.0, 1.0, 1.0)), round_of(asked(0, 1.0, 2.0, 1.0))]
    joint = Answer(Slot("t", 0, 0, ""), Reply("", input_tokens=200, output_tokens=14))
    usage = usage_of([[*rounds, joint]])
    assert (usage.samples, usage.seconds, usage.prompt_tokens, usage.output_tokens) == (
        1,
        2.0,
        200,
        14,
    )


@given(st.lists(st.integers(0, 2), min_size=1, max_size=12))
@settings(derandomize=True, max_examples=30, deadline=None)
def test_however_answers_are_spread_over_processes_the_sums_are_the_same(ranks: list[int]) -> None:
    entries = [asked(number, 0.0, 1.0, 0.25, task=f"t{number % 2}") for number in range(len(ranks))]
    spread = [
        [one for one, rank in zip(entries, ranks, strict=True) if rank == number]
        for number in range(3)
    ]
    together, apart = run_usage([entries]), run_usage(spread)
    alike = (
        "samples",
        "process_seconds",
        "prompt_tokens",
        "output_tokens",
        "vision_tokens",
        "reused_tokens",
    )
    for name in alike:
        assert getattr(apart, name) == getattr(together, name)
        assert getattr(apart, name) == sum(getattr(task, name) for task in apart.tasks.values())
    assert apart.seconds == max(0.25 * ranks.count(rank) for rank in range(3))


def test_the_usage_of_a_group_is_that_of_its_tasks() -> None:
    entries = [
        asked(number, 0.0, 1.0, 0.5, task=task) for number, task in enumerate(("a", "a", "b", "c"))
    ]
    run = run_usage([entries])
    assert run.of(["a"]) == run.tasks["a"]
    assert run.of(["a", "b", "c"]).samples == 4
    pair = run.of(["a", "b"])
    assert (pair.samples, pair.prompt_tokens, pair.seconds) == (3, 300, 1.5)
    assert (pair.time_to_first_answer, pair.peak_rss) == (None, 1002)
    assert run.of(["a", "elsewhere"]) == run.of([]) == Usage()


def test_a_manifest_with_forged_numbers_is_refused() -> None:
    for forged in (
        {"samples": -1},
        {"seconds": float("inf")},
        {"tasks": {"t": {"prompt_tokens": 10**30}}},
    ):
        with pytest.raises(ValueError, match=r"greater|less|finite"):
            RunUsage.model_validate(forged)


def test_written_usage_is_read_back() -> None:
    found = run_usage(
        [[asked(0, 0.0, 1.0, 1.0), asked(1, 0.0, 1.0, 1.0, task="u")]],
        counters={"media_encoded": 3},
    )
    assert RunUsage.model_validate_json(found.model_dump_json()) == found
