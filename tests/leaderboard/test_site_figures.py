"""Figures drawn on the pages: one for each plot, with the board's numbers, in proportion to them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from boards import board, hostile_board, large_board
from medtasks.leaderboard.board.board import BenchmarkBoard, BoardPlot
from medtasks.leaderboard.board.numbers import shown
from medtasks.leaderboard.figures.plots import Blocks, Figure, Heat, Plane, Radar, figures_of
from medtasks.leaderboard.site.figures import (
    COLOURS,
    heat_colour,
    plane_scale,
    radar_axes,
    radar_curve,
    time_axis,
)
from medtasks.leaderboard.site.pages import pages_of

MADE = board()


def of_kind(kind: str, ranks: bool = False) -> tuple[BenchmarkBoard, BoardPlot, Figure]:
    """The first plot of the board of this kind that has values."""
    for benchmark in MADE.benchmarks:
        drawn = figures_of(MADE, benchmark)
        for plot in benchmark.plots:
            if plot.kind == kind and plot.ranks == ranks and plot.name in drawn:
                return benchmark, plot, drawn[plot.name]
    raise AssertionError(kind)


def percent(text: str) -> float:
    return float(text.removesuffix("%"))


@pytest.mark.parametrize("made", [board(), hostile_board(), large_board(12)], ids=["board", "hostile", "large"])
def test_every_plot_with_values_is_on_its_page_and_no_file_is_needed(made: object) -> None:
    pages = pages_of(made, {}, [])  # type: ignore[arg-type]
    for benchmark in made.benchmarks:  # type: ignore[attr-defined]
        text = pages[f"benchmark-{benchmark.name}.html"]()
        for name in figures_of(made, benchmark):  # type: ignore[arg-type]
            assert f'<figure id="figure-{name}"' in text
        assert "<img" not in text


@pytest.mark.parametrize("kind", ["bars", "paired"])
def test_bars_and_dumbbells_have_the_boards_values_on_an_axis_with_zero(kind: str) -> None:
    benchmark, plot, figure = of_kind(kind)
    assert isinstance(figure.shape, Blocks)
    table = next(one for one in benchmark.tables if one.name == plot.table)
    by_label = {MADE.models[row.model].name: row.cells for row in table.rows}
    pairs = zip(plot.columns, plot.against, strict=True) if plot.against else [(key,) for key in plot.columns]
    for keys, block in zip(pairs, figure.shape.blocks, strict=True):
        zero = percent(block.axis.place(0.0))
        for line in block.lines:
            values = [cell.value if (cell := by_label[line.label].get(key)) else None for key in keys]
            assert line.values == pytest.approx([None if one is None else 100 * one for one in values])
            known = [one for one in line.values if one]
            scales = [(percent(block.axis.place(one)) - zero) / one for one in known]
            scales += [percent(block.axis.width(one)) / one for one in known]
            assert scales == pytest.approx([100 / (block.axis.high - block.axis.low)] * len(scales), rel=1e-2)
            if kind == "bars" and known:
                assert line.text.rstrip("*") == shown(values[0], "fraction")


def test_the_best_rank_has_the_lightest_colour() -> None:
    _, _, figure = of_kind("heatmap", ranks=True)
    assert isinstance(figure.shape, Heat)
    cells = {(float(text), heat_colour(good)) for _, row in figure.shape.rows for text, good in row if good is not None}
    assert (0.0, COLOURS - 1) in cells
    assert (1.0, 0) in cells
    for (_, darker), (_, lighter) in pairwise(sorted(cells, reverse=True)):
        assert darker <= lighter


def test_points_are_within_the_plane() -> None:
    _, _, figure = of_kind("cost")
    assert isinstance(figure.shape, Plane)
    points, scale = figure.shape.points, plane_scale(figure.shape)
    assert len(points) == len(figure.shape.curves) > 0
    assert all(0 <= scale.x(one.x) <= 320 and 0 <= scale.y(one.y) <= 220 and one.radius > 0 for one in points)
    assert all(0 <= scale.x(value) <= 320 for value, _ in scale.across_ticks)


def test_a_radar_has_an_axis_for_each_column() -> None:
    _, plot, figure = of_kind("radar")
    assert isinstance(figure.shape, Radar)
    axes = radar_axes(figure.shape)
    assert len(axes) == len(plot.columns)
    assert axes[0][:2] == (0.0, -140.0)  # upwards
    full = tuple(figure.shape.rim for _ in axes)
    path, dots = radar_curve(figure.shape, (None, *full[1:]))
    assert dots == [(x, y) for x, y, *_ in axes[1:]]
    assert path.count("M") == 1  # a missing value is a gap: neither the first nor the last point is joined across it
    assert path.count("L") == len(axes) - 2


def test_rounds_lie_in_the_order_of_their_times() -> None:
    (lines,) = [[one for one in benchmark.timelines if one.item == benchmark.timelines[0].item]
                for benchmark in MADE.benchmarks if benchmark.timelines]  # fmt: skip
    axis = time_axis(lines, [lines[0].query_time - 1])
    assert axis.place(axis.start) == axis.place(lines[0].query_time - 1) == "2.00%"
    assert axis.place(axis.end) == "98.00%"
    for line in lines:
        places, times = [percent(axis.place(one.time)) for one in line.rounds], [one.time for one in line.rounds]
        assert sorted(range(len(times)), key=places.__getitem__) == sorted(range(len(times)), key=times.__getitem__)


def test_letters_have_their_share_and_the_one_that_is_right() -> None:
    counts = MADE.benchmarks[1].letters[0].model_copy(update={"gold": {"A": 6, "B": 6}, "chosen": {"A": 3, "B": 9}})
    benchmark = MADE.benchmarks[1].model_copy(update={"letters": (counts,)})
    text = pages_of(MADE.model_copy(update={"benchmarks": (benchmark,)}), {}, [])["benchmark-series_mcq.html"]()
    assert '<path class="ch" d="M50 0V8"/><path d="M0 4H25"/>' in text
