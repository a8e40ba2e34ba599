"""Score against cost: a mark for each model, with its score upwards and what a sample takes to the right."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.lines import Line2D

from ..board import BenchmarkBoard, Board, BoardColumn, BoardPlot, ModelUsage
from ..numbers import UNITS, shown, shown_interval
from ..usage import COST, SECONDS, TOKENS, Measure, amount
from .canvas import GRID, INK, LOOKS, MOST_MODELS, Drawing, Drawn, listed, new_figure
from .chosen import labelled_best, scaled

_WIDE = 20.0
"""Ratio of the largest to the smallest value from which the axis is logarithmic."""


def draw(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, subtitle: Sequence[str]) -> Drawing | None:
    """The models of ``benchmark.usage`` with the score of the plot's column. None without any."""
    measure, column = measure_of(benchmark), _column(benchmark, plot)
    if measure is None or column is None:
        return None
    found = {one.model: (value, one) for one in benchmark.usage if (value := _value(measure, one)) is not None}
    labels = labelled_best(board, benchmark, [one.model for one in benchmark.usage], 26)
    drawn = [model for model in labels if model in found][:MOST_MODELS]
    extent = f" ({len(drawn)} of {len(found)} models)" if len(drawn) < len(found) else ""
    title = f"{plot.title}{extent}"
    figure = new_figure(title, 2.6 + 0.18 * ((len(drawn) + 1) // 2), lines=subtitle)
    axes = figure.add_subplot()
    for look, model in zip(LOOKS, drawn, strict=False):
        value, one = found[model]
        score, ends = scaled(one.score.value or 0.0, column), (one.score.low, one.score.high)
        if None not in ends:
            axes.plot([value] * 2, [scaled(end or 0.0, column) for end in ends], color=look.colour, linewidth=1.1)
        axes.plot([value], [score], linestyle="none", **_mark(look.marker, look.colour))
    values = [found[model][0] for model in drawn]
    if min(values) > 0 and max(values) > _WIDE * min(values):
        axes.set_xscale("log")
    else:
        axes.set_xlim(0, 1.08 * max(values) or 1.0)
    axes.set_xlabel(f"{measure.label.lower()} {measure.unit}")
    axes.set_ylabel(f"{column.label} ({UNITS[column.unit]})")
    axes.grid(True, color=GRID)
    handles = [Line2D([], [], linestyle="none", **_mark(look.marker, look.colour)) for look in LOOKS[: len(drawn)]]
    figure.legend(handles, [labels[model] for model in drawn], loc="outside lower center", ncols=2)
    return Drawing(figure, title, f"Scatter plot{extent}. {_alt(measure, column, labels, drawn, found)}")


def measure_of(benchmark: BenchmarkBoard) -> Measure | None:
    """Cost, seconds or tokens per sample: the first of those that most models have; None if no model has any."""
    counts = {one: sum(_value(one, used) is not None for used in benchmark.usage) for one in (COST, SECONDS, TOKENS)}
    best = max(counts, key=counts.__getitem__)
    return best if counts[best] else None


def _value(measure: Measure, one: ModelUsage) -> float | None:
    return None if one.score.value is None else measure.value(one.usage, one.cost)


def _column(benchmark: BenchmarkBoard, plot: BoardPlot) -> BoardColumn | None:
    columns = (column for table in benchmark.tables for column in table.columns)
    return next((column for column in columns if column.key in plot.columns), None)


def _mark(marker: str, colour: str) -> Drawn:
    return {"marker": marker, "markersize": 7, "color": colour, "markeredgecolor": INK, "markeredgewidth": 0.5}


def _alt(
    measure: Measure,
    column: BoardColumn,
    labels: dict[str, str],
    drawn: Sequence[str],
    found: dict[str, tuple[float, ModelUsage]],
) -> str:
    def described(model: str) -> str:
        value, one = found[model]
        score, ends = shown(one.score.value or 0.0, column.unit), shown_interval(one.score, column.unit)
        return f"{labels[model]} {score}{f' ({ends})' if ends else ''} at {amount(value)}"

    absent = [label for model, label in labels.items() if model not in found]
    text = (
        f"{column.label} against {measure.label.lower()} {measure.unit}: {listed([described(one) for one in drawn])}."
    )
    return text + (f" Without a value: {listed(absent)}." if absent else "")
