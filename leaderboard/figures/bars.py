"""Bar charts: the models' scores in each column, with intervals and the highest floor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..board.floors import floors_text, highest_floor
from ..schema.numbers import shown
from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardColumn
from .axes import Axis
from .drawn_scores import ColumnScores, DrawnScore, scaled, summaries
from .shared_axes import AxisContent, shared_axes


@dataclass(frozen=True)
class DashedFloor:
    """The highest floor of a column, drawn as a dashed line; ``others`` are its lower floors."""

    level: float
    label: str
    others: str


@dataclass(frozen=True)
class BarGroup:
    """The bars of one column, one for each model."""

    heading: str
    remark: str
    floor: DashedFloor | None
    bars: Sequence[DrawnScore]
    axis: Axis

    @property
    def labels(self) -> list[str]:
        return [bar.label for bar in self.bars]

    @property
    def note(self) -> str:
        """What the dashed line is; without one, the column's remark."""
        if self.floor is None:
            return self.remark
        other_floors = f"; {self.floor.others}" if self.floor.others else ""
        return f"dashed: {self.floor.label}{other_floors}"


@dataclass(frozen=True)
class BarChart:
    """Groups of bars with intervals of a ``confidence``; groups with equal axes can be compared."""

    kind: ClassVar[str] = "bars"
    groups: Sequence[BarGroup]
    confidence: float

    @property
    def unit(self) -> str:
        return " or ".join(dict.fromkeys(group.axis.title for group in self.groups))


def bar_chart(plot: BoardPlot, series: Sequence[ColumnScores], confidence: float) -> BarChart:
    """The bars of the plot's columns."""
    floors = [_dashed_floor(plot, entry.column) for entry in series]
    contents = []
    for entry, floor in zip(series, floors, strict=True):
        numbers: list[float | None] = []
        if floor is not None:
            numbers.append(floor.level)
        for score in entry.scores:
            numbers += [score.value, *(score.ends or ())]
        contents.append(AxisContent([entry.column], numbers))
    groups = []
    for entry, floor, axis in zip(series, floors, shared_axes(contents), strict=True):
        column = entry.column
        groups.append(BarGroup(column.label, column.remark, floor, entry.scores, axis))
    return BarChart(groups, confidence)


def _dashed_floor(plot: BoardPlot, column: BoardColumn) -> DashedFloor | None:
    """The column's highest floor; None if the plot shows none.

    The plot's level of chance is that of columns without one.
    """
    if plot.chance is None:
        return None
    if column.chance is None:
        column = column.model_copy(update={"chance": plot.chance})
    highest = highest_floor(column)
    if highest is None:
        return None
    label = f"{highest.name} {shown(highest.level, column.unit)}"
    other_floors = floors_text(column, without=highest)
    return DashedFloor(scaled(highest.level, column), label, other_floors)


def bars_in_words(chart: BarChart, series: Sequence[ColumnScores], extent: str) -> str:
    """The description of a bar chart: the best and the last model of each column, and floors."""
    which = f" for {extent}" if extent else ""
    words = f"Bar chart{which}, with {100 * chart.confidence:g} % intervals. {summaries(series)}."
    floors = dict.fromkeys(group.floor.label for group in chart.groups if group.floor is not None)
    if floors:
        words += f" Dashed: {' or '.join(floors)}."
    return words
