"""The times of a run's requests: one line per request or round, in order, of all its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks.core.errors import DataError
from medtasks.runs.replies import Answer, Reply, ReplyTiming, Slot
from medtasks.runs.times import FoundTimes, RequestTime, read_times, request_times, write_times

TASK = "med_cmr_mcq_ltg"
SAMPLES = ["b", "a"]


def answer(
    doc_id: int, seconds: float | None, repeat: int = 0, number: int | None = None
) -> Answer:
    """A reply that took so many seconds; None if the request failed."""
    slot = Slot(TASK, doc_id, repeat, "", number is None, number)
    if seconds is None:
        return Answer(slot, Reply.failure("gone"))
    return Answer(slot, Reply("A", output_tokens=3, timing=ReplyTiming(seconds)))


def test_lines_are_sorted_by_sample_repeat_and_round() -> None:
    answers = [answer(0, 4.0, 1), answer(0, 3.0), answer(1, 2.0, 0, 1), answer(1, 1.0, 0, 0)]
    times = request_times(answers, SAMPLES)
    assert [(time.sample_id, time.repeat, time.round, time.seconds) for time in times] == [
        ("a", 0, 0, 1.0),
        ("a", 0, 1, 2.0),
        ("b", 0, None, 3.0),
        ("b", 1, None, 4.0),
    ]


def test_of_several_replies_the_last_response_counts_and_failures_have_no_seconds() -> None:
    answers = [answer(0, 1.0), answer(0, None), answer(1, 5.0), answer(1, 2.0)]
    times = request_times([*answers, answer(0, None, 1)], SAMPLES)
    assert [(time.seconds, time.failed) for time in times] == [
        (2.0, False),
        (1.0, False),
        (None, True),
    ]


def test_the_joint_result_of_rounds_is_no_request() -> None:
    joint = Answer(Slot(TASK, 0, 0, ""), Reply("all", output_tokens=6))
    times = request_times([answer(0, 1.0, 0, 0), answer(0, 2.0, 0, 1), joint], SAMPLES)
    assert [time.seconds for time in times] == [1.0, 2.0]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    whole = RequestTime(
        sample_id="Ä", repeat=1, round=2, seconds=1.5, sent=-0.5, queued=0.0, first_token=0.25,
        batch=8, in_flight=16, attempts=2, hardware="2 × GPU", output_tokens=0,
    )  # fmt: skip
    times = {TASK: [RequestTime(sample_id="b", failed=True), whole]}
    write_times(tmp_path, times)
    assert read_times(tmp_path) == times
    lines = (tmp_path / "times" / f"{TASK}.jsonl").read_text(encoding="utf-8").splitlines()
    assert lines[0] == '{"failed": true, "sample_id": "b"}'


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ('{"sample_id": "a", "seconds": -1}', "seconds"),
        ('{"sample_id": "a", "seconds": "1"}', "seconds"),
        ('{"seconds": 1}', "sample_id"),
        ('{"sample_id": "a", "batch": 0}', "batch"),
        ('{"sample_id": "a"', "JSON"),
        ('{"sample_id": "a", "seconds": 2}', "sample a is duplicated, expected once"),
        ('{"sample_id": "b", "paced": {"attempt": 1, "due": 1e999}}', "due"),
    ],
)
def test_a_damaged_line_is_named(line: str, problem: str, tmp_path: Path) -> None:
    write_times(tmp_path, {TASK: [RequestTime(sample_id="a", seconds=1.0)]})
    path = tmp_path / "times" / f"{TASK}.jsonl"
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(DataError, match=f"{TASK}.jsonl, line 2: .*{problem}") as caught:
        read_times(tmp_path)
    stored = FoundTimes.of(tmp_path)
    assert stored.times == {}
    assert stored.problem == f"no latency: {caught.value}"
