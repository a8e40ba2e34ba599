"""How a model keeps up with streams, from the times of a run: values worked out by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medtasks.cli.stream_latency_tables import show_stream_latency
from medtasks.harness import run_tasks
from medtasks.runs.replies import PacedRound
from medtasks.runs.times import RequestTime
from medtasks.scoring.latency import LATENCY, run_latency
from medtasks.scoring.run_folder import read_run, replace_run, write_run
from medtasks.scoring.run_record import RunRecord

pytestmark = pytest.mark.slow

FUTURE = "medstreambench_future_streaming"
GROUP = "medstreambench"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The result directory of `run`."""
    output = tmp_path_factory.mktemp("streams")
    return run_tasks("medtasks_baseline", "policy=oracle", [GROUP], output)


@pytest.fixture(scope="module")
def run(folder: Path) -> RunRecord:
    """The reference answers to three streams, with rounds at

    - 5, 8 and 11 s, due at 11 s with a tolerance of 2 s,
    - 4, 6, 8, 9.5, 11 and 12 s, due at 9 s, answered at 9.5 s, with a tolerance of half a second,
    - 10, 12, 14, 16 and 18 s, due at 13.5 s, answered at 14 s, with a tolerance of 1 s.
    """
    return RunRecord.scored(*read_run(folder))


def times_of(
    run: RunRecord, task: str, seconds: Callable[[str], float | None], **fields: int
) -> list[RequestTime]:
    times = []
    for sample in run.samples[task]:
        name = sample.sample_id
        times.append(RequestTime(sample_id=name, seconds=seconds(name), sent=0.0, **fields))
    return times


def stream_of(
    run: RunRecord, times: Mapping[str, Sequence[RequestTime]], name: str = FUTURE
) -> Any:
    stream = run_latency(run, times).entries[name].stream
    assert stream is not None
    return stream


def test_the_figures_of_a_task_follow_from_its_seconds(run: RunRecord) -> None:
    stream = stream_of(run, {FUTURE: times_of(run, FUTURE, lambda _: 0.5)})
    assert (stream.streams, stream.measured, stream.without) == (3, 3, {})
    assert (stream.rounds, stream.missed, stream.batched, stream.pace) == (14, 0, 0, "")
    # 0.5 s by gaps of 3, 3 | 2, 2, 1.5, 1.5, 1 | 2, 2, 2, 2 s
    assert stream.real_time_factor_median.value == 0.25
    assert stream.real_time_factor_p95.value == 0.5
    assert [(entry.number, entry.rounds) for entry in stream.by_round] == [
        (1, 3), (2, 3), (3, 2), (4, 2), (5, 1)
    ]  # fmt: skip
    assert stream.by_round[4].real_time_factor_median.value == 0.5
    assert stream.answered_in_time.value == 1
    # there at 11.5, 10 and 14.5 s: the second one is 1 s late, twice its tolerance
    assert stream.responsiveness.value == 1
    assert stream.responsiveness_with_computing.value == pytest.approx(2 / 3, rel=1e-5)


def test_slow_rounds_are_not_in_time_and_batched_ones_are_counted(run: RunRecord) -> None:
    stream = stream_of(run, {FUTURE: times_of(run, FUTURE, lambda _: 2.0, batch=4)})
    assert stream.batched == 14
    # 2 s are more than the gaps of 1.5, 1.5 and 1 s, of eleven
    assert stream.answered_in_time.value == pytest.approx(8 / 11, rel=1e-5)
    low, high = stream.answered_in_time.interval
    assert low is not None
    assert high is not None
    assert low < 8 / 11 < high


def test_a_stream_with_an_unknown_round_is_left_out_and_counted(run: RunRecord) -> None:
    times = times_of(run, FUTURE, lambda name: None if name.endswith("chole04_stream@2") else 0.5)
    stream = stream_of(run, {FUTURE: times})
    assert (stream.streams, stream.measured) == (3, 2)
    assert stream.without == {"not measured": 1}
    assert stream.responsiveness_with_computing.value == 0.5


def test_a_group_has_its_single_turn_items_in_the_overall_score(run: RunRecord) -> None:
    slow = {task: times_of(run, task, lambda _: 60.0) for task in run.tasks}
    stream = stream_of(run, slow, GROUP)
    assert stream.streams == 7
    overall = run.groups[GROUP].metrics["overall"]
    assert stream.scored < overall.samples  # open answers await a judge
    assert stream.responsiveness_with_computing.value == pytest.approx(1 / 7, rel=1e-5)
    assert stream.overall.value == 1
    # two of the six streams in which an answer is due are open, and await a judge
    expected = 1 - 0.3 * 4 / stream.scored
    assert stream.overall_with_computing.value == pytest.approx(expected, rel=1e-5)


def test_a_missed_round_has_no_seconds_and_is_not_in_time(run: RunRecord) -> None:
    times = []
    for time in times_of(run, FUTURE, lambda _: 0.5):
        item, _, number = time.sample_id.partition("@")
        due = {"1": 0.0, "2": 3.0, "3": 6.0}.get(number, 0.0)
        if "hei03" not in item:
            times.append(time)
        elif number == "2":
            update = {"seconds": None, "paced": PacedRound(1, due)}
            times.append(time.model_copy(update=update))
        else:
            late = PacedRound(1, due, due + 1, due + 3.5)
            times.append(time.model_copy(update={"paced": late}))
    latency = run_latency(run, {FUTURE: times}).tasks[FUTURE]
    assert latency.without == {"missed": 1}
    assert latency.stream is not None
    assert latency.stream.missed == 1
    # of hei03 the first round was late, the second missed
    assert latency.stream.answered_in_time.value == pytest.approx(9 / 11, rel=1e-5)
    # the alert at 11 s is there at 14.5 s: 1 - (3.5 - 2) / 2; those of the others at 10 and 14.5 s
    expected = (0.25 + 0 + 1) / 3
    assert latency.stream.responsiveness_with_computing.value == pytest.approx(expected, rel=1e-5)


def test_a_run_without_its_samples_takes_them_from_its_directory(
    run: RunRecord, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = {FUTURE: times_of(run, FUTURE, lambda _: 0.5, batch=2)}
    without_samples = replace(run, samples={}, made=run.tables)
    assert run_latency(without_samples, times).tasks[FUTURE].stream is None
    latency = run_latency(without_samples, times, folder)
    assert latency == run_latency(run, times)
    show_stream_latency(latency)
    printed = capsys.readouterr().out
    assert f"{FUTURE}: 14 of 14 rounds batched" in printed
    assert "0.667" in printed


def test_the_latency_of_a_run_that_is_judged_later_is_computed_again(
    run: RunRecord, tmp_path: Path
) -> None:
    times = {FUTURE: times_of(run, FUTURE, lambda _: 0.5)}
    directory = write_run(tmp_path / "run_medtasks", run, times)
    before = (directory / LATENCY).read_text(encoding="utf-8")
    # as it may be while verdicts are open
    (directory / LATENCY).write_text("{}", encoding="utf-8")
    replace_run(directory, run)
    assert (directory / LATENCY).read_text(encoding="utf-8") == before


def test_other_tasks_have_no_stream_figures(run: RunRecord) -> None:
    task = "medstreambench_present"
    latency = run_latency(run, {task: times_of(run, task, lambda _: 0.5)})
    assert latency.tasks[task].stream is None
    assert '"stream"' not in latency.model_dump_json()
