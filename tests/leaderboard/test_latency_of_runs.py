"""From the times in result directories to what ``medtasks compare`` and a board say of latency."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from invented_runs import Invented, write_runs
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.schema.score_tables import BoardTable
from medtasks.leaderboard.verify.scored_run import scored_run
from typer.testing import CliRunner

import medtasks
from medtasks.cli.app import app
from medtasks.runs.times import TIMES, RequestTime, write_times
from medtasks.scoring.run_cache import RunStore

pytestmark = pytest.mark.slow

GROUP, TASK = "med_cmr_mcq", "med_cmr_mcq_cr"
MODELS = [
    Invented("invented/Quick-7B", "noisy_oracle", seed=1, accuracy=0.8),
    Invented("invented/Slow-7B", "noisy_oracle", seed=2, accuracy=0.6),
]
Seconds = Callable[[int], float]


def untimed_runs(root: Path, group: str = GROUP, *, judged: bool = False) -> list[Path]:
    """Two models' runs, as a version without times writes them."""
    return [*write_runs(root, MODELS, [group], judged=judged).values()]


def sample_ids(folder: Path) -> dict[str, list[str]]:
    """The ids of the samples by task."""
    ids = {}
    for path in sorted((folder / "samples").glob("*.jsonl")):
        lines = path.read_text(encoding="utf-8").splitlines()
        ids[path.stem] = sorted(json.loads(line)["sample_id"] for line in lines)
    return ids


def time_requests(
    folder: Path, seconds: Seconds, hardware: str = "1 × GPU", batch: int = 1
) -> None:
    """Write the times of a run's requests, by the number of the sample."""
    times: dict[str, list[RequestTime]] = {}
    number = 0
    for task, ids in sample_ids(folder).items():
        times[task] = []
        for sample_id in ids:
            time = RequestTime(
                sample_id=sample_id, seconds=seconds(number), hardware=hardware, batch=batch,
                output_tokens=10,
            )  # fmt: skip
            times[task].append(time)
            number += 1
    write_times(folder, times)


def compared(*arguments: Path | str) -> str:
    result = CliRunner().invoke(app, ["compare", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return " ".join(result.output.split())


def latency_tables(*folders: Path) -> list[BoardTable]:
    (page,) = medtasks.board(folders).benchmarks
    return [table for table in page.tables if table.name.startswith("latency")]


def test_two_runs_on_the_same_hardware_are_compared_request_by_request(tmp_path: Path) -> None:
    quick, slow = untimed_runs(tmp_path)
    count = sum(map(len, sample_ids(quick).values()))
    time_requests(quick, lambda number: 0.1 + 0.1 * number)
    time_requests(slow, lambda number: 0.5 + 0.1 * number)
    text = compared(quick, slow, "--task", GROUP)
    median = float(np.quantile(0.1 + 0.1 * np.arange(count), 0.5, method="inverted_cdf"))
    assert f"Median latency s {median:.2f} (" in text
    assert "Both ran on 1 × GPU, one request at a time." in text
    assert (
        f"Median of A - B by request: −0.400 s (95 % interval −0.400 to −0.400); {count} " in text
    )
    found = json.loads(CliRunner().invoke(app, ["compare", str(quick), str(slow), "--json"]).output)
    assert found["latency"]["difference"][0] == pytest.approx(-0.4)
    assert found["latency"]["first"]["measured"] == count
    (table,) = latency_tables(quick, slow)
    cells = [row.cells[table.columns[1].key].value for row in table.rows]
    assert cells == pytest.approx([median, median + 0.4])


def test_runs_on_other_hardware_are_not_compared(tmp_path: Path) -> None:
    quick, slow = untimed_runs(tmp_path)
    assert "atency" not in compared(quick, slow)
    time_requests(quick, lambda _: 0.2)
    assert f"Latency of {GROUP} is not compared: B: no seconds: " in compared(quick, slow)
    time_requests(slow, lambda _: 0.2, "1 × older GPU")
    not_compared = "is not compared: A ran on 1 × GPU, one request at a time, B on 1 × older GPU, "
    assert not_compared in compared(quick, slow)
    (table,) = latency_tables(quick, slow)
    assert table.name == "latency-alone"
    for folder in (quick, slow):
        time_requests(folder, lambda _: 0.2, batch=4)
    assert "No paired difference: requests of a batch have the seconds" in compared(quick, slow)


def test_damaged_times_change_no_score_and_are_named(tmp_path: Path) -> None:
    quick, slow = untimed_runs(tmp_path)
    for folder in (quick, slow):
        time_requests(folder, lambda _: 0.2)
    before = medtasks.board([quick, slow])
    path = slow / TIMES / f"{TASK}.jsonl"
    path.write_text(path.read_text(encoding="utf-8").replace('"seconds": 0.2', '"seconds": -1', 1))
    damaged = medtasks.board([quick, slow])
    assert damaged.benchmarks[0].tables[0] == before.benchmarks[0].tables[0]
    (table,) = (one for one in damaged.benchmarks[0].tables if one.name.startswith("latency"))
    problem = f"no seconds: {TIMES}/{TASK}.jsonl, line 1: field `seconds` is -1"
    assert problem in table.note
    assert str(tmp_path) not in damaged.model_dump_json()
    assert problem in compared(quick, slow)


def test_times_that_are_no_file_change_no_score_and_are_named(tmp_path: Path) -> None:
    quick, slow = untimed_runs(tmp_path)
    for folder in (quick, slow):
        time_requests(folder, lambda _: 0.2)
    path = slow / TIMES / f"{TASK}.jsonl"
    path.unlink()
    path.mkdir()
    reason = f"is not compared: B: no seconds: {TIMES}/{TASK}.jsonl: cannot be read"
    assert reason in compared(quick, slow)
    result = CliRunner().invoke(app, ["score", str(slow)])
    assert result.exit_code == 0, result.output
    assert "no latency: " in result.output
    result = CliRunner().invoke(app, ["score", str(slow), "--json"])
    assert json.loads(result.output)["latency"]["reason"].startswith("no latency: ")


def test_a_submission_may_have_times_of_its_own_tasks(tmp_path: Path) -> None:
    quick, _ = untimed_runs(tmp_path)
    time_requests(quick, lambda _: 0.2)
    (quick / "latency.json").write_text("{}", encoding="utf-8")

    def checked() -> str:
        command = ["leaderboard", "check", str(tmp_path), "--demonstration", "--verbose"]
        return CliRunner().invoke(app, command).output

    assert "LB103" not in checked()
    (quick / TIMES / "another_task.jsonl").touch()
    assert f"{TIMES}/another_task.jsonl is a .jsonl file of 0 bytes" in " ".join(checked().split())


def test_a_board_is_built_anew_if_only_the_times_changed(tmp_path: Path) -> None:
    runs = untimed_runs(tmp_path / "results")
    site = tmp_path / "site"

    def built() -> str:
        shutil.rmtree(site, ignore_errors=True)
        command = ["leaderboard", "build", str(tmp_path / "results"), "--out", str(site)]
        result = CliRunner().invoke(app, [*command, "--demonstration"])
        assert result.exit_code == 0, result.output
        return (site / "benchmark-med_cmr.html").read_text(encoding="utf-8")

    assert "Median latency" not in built()
    for folder in runs:
        time_requests(folder, lambda _: 0.25)
    page = built()
    assert "Latency: 1 × GPU, one request at a time" in page
    assert "0.250" in page
    protocol = (site / "protocol.html").read_text(encoding="utf-8")
    assert "1 × GPU, one request at a time" in protocol


def test_streams_are_timed_from_cached_runs_too(tmp_path: Path) -> None:
    """With half a second a round, every answer is there before the next round is due."""
    folders = untimed_runs(tmp_path, "medstreambench", judged=True)
    store = RunStore(tmp_path / "cache")
    before = [scored_run(folder, store) for folder in folders]
    assert all(run.latency.reason is not None for run in before)
    for folder in folders:
        time_requests(folder, lambda _: 0.5)
    for _ in range(2):  # computed from the samples, then read from the cache
        runs = [scored_run(folder, store) for folder in folders]
        assert not any(run.samples for run in runs)
        streams = [run.latency.groups["medstreambench"].stream for run in runs]
        assert streams[0] is not None
        assert streams[0].answered_in_time is not None
        assert streams[0].answered_in_time.value == 1
        made = build_board(runs, title="Streams", demonstration=True)
        (page,) = made.benchmarks
        (table,) = (table for table in page.tables if table.name == "latency")
        in_time = next(one for one in table.columns if one.label == "Rounds in time")
        assert [row.cells[in_time.key].value for row in table.rows] == [1, 1]
