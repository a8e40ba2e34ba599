"""Latency on boards: compared within a setup alone, and named where there is none."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from made_runs import KEY, board, cxr, page, run
from medtasks.leaderboard.exports.csv_scores import as_csv
from medtasks.leaderboard.exports.latex_tables import as_latex
from medtasks.leaderboard.exports.markdown_tables import as_markdown
from medtasks.leaderboard.exports.places import places
from medtasks.leaderboard.figures.plots import figures_of
from medtasks.leaderboard.schema.board import BenchmarkBoard, Board
from medtasks.leaderboard.schema.score_tables import BoardTable
from medtasks.leaderboard.site.benchmark_tables import benchmark_tables
from medtasks.leaderboard.verify.scored_run import ScoredRun

from medtasks.scoring.latency import Latency, RunLatency
from medtasks.scoring.latency_figures import RoundedEstimate
from medtasks.scoring.stream_latency import StreamLatency

H200, A100 = "1 × NVIDIA H200", "1 × NVIDIA A100"
SEEDS = {"good": 1, "fair": 2, "poor": 3, "slow": 4}


def latency(
    median: float, hardware: str = H200, *, processes: int = 1, **changes: Any
) -> RunLatency:
    """The latency of 240 requests, one at a time, whose tokens were counted."""
    fields: dict[str, Any] = {
        "requests": 240,
        "measured": 240,
        "in_flight": 1,
        "clusters": 80,
        "median": RoundedEstimate(value=median, interval=(0.9 * median, 1.1 * median)),
        "p95": RoundedEstimate(value=3 * median, interval=(2.5 * median, None)),
        "output_tokens_per_second": RoundedEstimate(value=40.0, interval=(38.0, 42.0)),
        "hardware": {hardware: 240},
    }
    of_group = Latency(**{**fields, **changes})
    return RunLatency(processes=processes, groups={"mi_cxr": of_group})


def timed(model: str, share: float, timing: RunLatency) -> ScoredRun:
    return run(model, [cxr(share, SEEDS[model])], latency=timing)


def untimed(model: str, share: float) -> ScoredRun:
    return run(model, [cxr(share, SEEDS[model])])


def latency_tables(benchmark: BenchmarkBoard) -> dict[str, BoardTable]:
    return {table.name: table for table in benchmark.tables if table.name.startswith("latency")}


def test_models_are_compared_only_with_those_of_the_same_setup() -> None:
    found = page(
        timed("good", 0.9, latency(2.0)),
        timed("fair", 0.8, latency(0.5)),
        timed("poor", 0.7, latency(0.1, A100)),
        untimed("slow", 0.6),
    )
    tables = latency_tables(found)
    assert {name: table.title for name, table in tables.items()} == {
        "latency": "Latency: 1 × NVIDIA H200, one request at a time",
        "latency-alone": "Latency: setups of a single run",
    }
    shared, alone = tables.values()
    assert [row.model for row in shared.rows] == ["fair", "good"]  # the lowest median first
    score, median, p95, tokens = (column.key for column in shared.columns)
    assert score == KEY
    fast = shared.rows[0].cells
    assert fast[score] == found.tables[0].rows[1].cells[KEY]
    assert (fast[median].value, fast[median].low, fast[median].high) == (0.5, 0.45, 0.55)
    assert (fast[p95].value, fast[p95].low, fast[p95].high) == (1.5, 1.25, None)
    assert (fast[tokens].value, fast[median].items) == (40.0, 240)
    by_key = {column.key: column for column in shared.columns}
    assert places(shared, by_key[median]) == {0: 1, 1: 2}
    assert places(shared, by_key[score]) == {1: 1, 0: 2}
    assert [row.model for row in alone.rows] == ["poor"]
    assert "poor (1 × NVIDIA A100, one request at a time)." in alone.note
    assert "lab/slow: no seconds: the run is not read from a directory." in shared.note
    assert places(alone, alone.columns[1]) == {}
    signatures = {table.rows[0].cells[table.columns[1].key].signature for table in tables.values()}
    assert len(signatures) == 2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"hardware": A100}, "1 × NVIDIA A100, one request at a time"),
        ({"in_flight": 8}, "1 × NVIDIA H200, up to 8 requests at once"),
        ({"in_flight": 8, "batched": 240}, "1 × NVIDIA H200, batches of up to 8 requests"),
        ({"in_flight": 8, "batched": 9}, "up to 8 requests at once, partly in batches"),
        ({"processes": 4}, "1 × NVIDIA H200, 4 processes, one request at a time"),
        ({"hardware": "unknown"}, "unknown hardware, one request at a time"),
    ],
)
def test_another_setup_is_not_compared(changes: dict[str, Any], words: str) -> None:
    found = page(timed("good", 0.9, latency(2.0)), timed("fair", 0.8, latency(0.5, **changes)))
    (alone,) = latency_tables(found).values()
    assert not alone.compared
    assert f"{words}); " in alone.note or f"{words})." in alone.note
    assert all(plot.kind != "latency" for plot in found.plots)
    is_unknown = changes.get("hardware") == "unknown"
    assert ("Behind an API or a function, the hardware is not known" in alone.note) == is_unknown
    assert ("the seconds of the whole batch" in alone.note) == ("batched" in changes)


def test_streams_have_columns_of_their_own() -> None:
    def share(value: float) -> RoundedEstimate:
        return RoundedEstimate(value=value, interval=(value - 0.1, value + 0.1))

    stream = StreamLatency(
        streams=12, measured=10, without={"failed": 2}, rounds=50, missed=3,
        real_time_factor_median=share(0.25), answered_in_time=share(0.9),
        responsiveness=share(0.8), responsiveness_with_computing=share(0.6),
        scored=14, overall_with_computing=share(0.7),
    )  # fmt: skip
    streamed = latency(2.0, stream=stream)
    made = board(timed("good", 0.9, streamed), timed("fair", 0.8, latency(0.5)))
    (found,) = made.benchmarks
    (table,) = latency_tables(found).values()
    columns = {column.metric.removeprefix("latency."): column for column in table.columns}
    good = next(row for row in table.rows if row.model == "good").cells
    cells = {name: good[column.key] for name, column in columns.items()}
    assert (cells["real_time_factor_median"].value, cells["answered_in_time"].value) == (0.25, 0.9)
    assert cells["responsiveness_with_computing"].items == 10
    assert cells["overall_with_computing"].items == 14
    assert cells["median"].items == 240
    better = {name: column.higher_is_better for name, column in columns.items()}
    assert (better["real_time_factor_median"], better["answered_in_time"]) == (False, True)
    assert "overall" not in columns
    assert columns["real_time_factor_median"].unit == "factor"
    assert "lab/good: 2 of 12 streams without the seconds (failed 2)." in table.note
    assert "lab/good: 3 of 50 rounds missed." in table.note
    markdown = as_markdown(made, found, table)
    assert "0.250 [0.150, 0.350]" in markdown
    assert "60.0 [50.0, 70.0]" in markdown


def test_names_of_devices_are_strangers_text() -> None:
    devices = {f"{number} <b>GPU</b> {'x ' * 999}": 24 for number in range(10)}
    hostile = (
        latency(0.5, hardware="unused").groups["mi_cxr"].model_copy(update={"hardware": devices})
    )
    timing = RunLatency(processes=1, groups={"mi_cxr": hostile})
    made = board(timed("good", 0.9, timing), timed("fair", 0.8, timing))
    (found,) = made.benchmarks
    (table,) = latency_tables(found).values()
    assert len(table.title) < 300
    assert "0 <b>GPU</b> x x" in table.title
    assert "and 7 more" in table.title
    assert "<b>GPU" not in as_markdown(made, found, table)
    assert r"\textless{}b\textgreater{}GPU" in as_latex(made, found, table)


def test_nothing_is_the_best_on_unknown_hardware() -> None:
    found = page(
        timed("good", 0.9, latency(2.0, "unknown")), timed("fair", 0.8, latency(0.5, "unknown"))
    )
    (table,) = latency_tables(found).values()
    assert table.title == "Latency: unknown hardware, one request at a time"
    assert not table.compared
    assert [plot.table for plot in found.plots if plot.kind == "latency"] == [table.name]


def test_requests_without_seconds_are_counted() -> None:
    partly = latency(0.5, requests=243, without={"failed": 1, "not measured": 2})
    found = page(timed("good", 0.9, latency(2.0)), timed("fair", 0.8, partly))
    (table,) = latency_tables(found).values()
    missing = "lab/fair: 3 of 243 requests without seconds (failed 1, not measured 2)."
    assert missing in table.note


def test_a_figure_that_a_back_end_does_not_report_has_the_reason() -> None:
    first_token = RoundedEstimate(value=0.3, interval=(0.2, 0.4))
    streamed = latency(2.0, first_tokens=200, first_token_median=first_token)
    found = page(timed("good", 0.9, streamed), timed("fair", 0.8, latency(0.5)))
    (table,) = latency_tables(found).values()
    (key,) = (column.key for column in table.columns if column.key.endswith("first_token_median"))
    cells = {row.model: row.cells[key] for row in table.rows}
    assert (cells["good"].value, cells["good"].reason) == (0.3, None)
    assert (cells["good"].items, cells["fair"].items) == (200, 0)
    assert cells["fair"].value is None
    assert cells["fair"].reason == "the back-end does not report the first token"
    assert not any(column.key.endswith("first_token_p95") for column in table.columns)


def test_without_seconds_there_is_no_table() -> None:
    found = page(untimed("good", 0.9), untimed("fair", 0.8))
    assert not latency_tables(found)
    assert all(plot.kind != "latency" for plot in found.plots)


def two_timed() -> Board:
    return board(timed("good", 0.9, latency(2.0)), timed("fair", 0.8, latency(0.05)))


def test_the_figure_has_the_score_against_the_median_with_both_intervals() -> None:
    made = two_timed()
    (found,) = made.benchmarks
    (plot,) = (plot for plot in found.plots if plot.kind == "latency")
    assert (plot.name, plot.table, plot.columns[0]) == ("latency", "latency", KEY)
    figure = figures_of(made, found)["latency"]
    assert "against median latency (s): " in figure.alt
    assert "fair" in figure.alt
    assert figure.alt.count(" at ") == 2
    points = {curve.label: curve.points for curve in figure.shape.curves}
    (good,) = points["lab/good"]
    assert (good.x, good.ends_across) == (2.0, (1.8, 2.2))
    assert good.ends is not None
    across = figure.shape.across
    assert across.logarithmic  # 0.05 to 2 seconds
    for (point,) in points.values():
        assert all(0 < across.share(end) < 1 for end in point.ends_across)
        assert f"H{figure.shape.x(point.ends_across[1])}" in figure.shape.path([point])


def test_exports_have_the_seconds_in_their_units() -> None:
    made = two_timed()
    (found,) = made.benchmarks
    (table,) = latency_tables(found).values()
    rows = list(csv.DictReader(io.StringIO(as_csv(made, found))))
    of_latency = {
        (row["model"], row["metric"]): row for row in rows if row["metric"].startswith("latency.")
    }
    median = of_latency["fair", "latency.median"]
    assert (median["value"], median["unit"], median["best"]) == ("0.05", "duration", "lowest")
    assert (of_latency["good", "latency.p95"]["high"], median["set_apart"]) == ("", "no")
    markdown = as_markdown(made, found, table)
    assert "Median latency (s, lower is better)" in markdown
    assert "0.0500 [0.0450, 0.0550]" in markdown
    assert "6.00 [from 5.00]" in markdown
    assert "Output tokens (tokens/s)" in markdown
    latex = as_latex(made, found, table)
    assert r"\textbf{0.0500}" in latex
    assert "tokens/s" in latex
    (again,) = Board.model_validate_json(made.model_dump_json()).benchmarks
    assert (again.tables, again.plots) == (found.tables, found.plots)


def test_pages_mark_the_best_within_a_setup_alone() -> None:
    made = board(
        timed("good", 0.9, latency(2.0)),
        timed("fair", 0.8, latency(0.5)),
        timed("poor", 0.7, latency(0.1, A100)),
        timed("slow", 0.6, latency(9.0, in_flight=3)),
    )
    (found,) = made.benchmarks
    shown = {table.content.name: table for table in benchmark_tables(made, found).shown}
    best = [view.best for view in shown["latency"].columns]
    assert best[1:3] == [0.5, 1.5]
    assert [view.best for view in shown["latency-alone"].columns] == [None] * 4
