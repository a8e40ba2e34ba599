"""Dumbbell charts: the models' scores in two columns, and their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from medtasks.metrics.facts import Unit

from ..schema.numbers import MINUS, difference
from ..schema.score_tables import BoardColumn
from .axes import Axis
from .drawn_scores import ColumnScores, DrawnScore
from .labels import joined
from .looks import Look
from .shared_axes import AxisContent, shared_axes


@dataclass(frozen=True)
class Dumbbell:
    """A model's values in two columns; ``difference`` is empty if one is missing."""

    label: str
    look: Look
    first: float | None
    second: float | None
    difference: str


@dataclass(frozen=True)
class DumbbellGroup:
    """The dumbbells of one pair of columns, one for each model; ``names`` are the columns'."""

    names: tuple[str, str]
    dumbbells: Sequence[Dumbbell]
    axis: Axis

    @property
    def heading(self) -> str:
        return " against ".join(self.names)

    @property
    def labels(self) -> list[str]:
        return [dumbbell.label for dumbbell in self.dumbbells]


@dataclass(frozen=True)
class DumbbellChart:
    """Groups of dumbbells; those with equal axes can be compared."""

    kind: ClassVar[str] = "dumbbells"
    groups: Sequence[DumbbellGroup]

    @property
    def unit(self) -> str:
        return " or ".join(dict.fromkeys(group.axis.title for group in self.groups))


def dumbbell_chart(
    series: Sequence[ColumnScores], against: Sequence[ColumnScores]
) -> DumbbellChart:
    """The scores of ``series``, each beside those of the column in the same place of
    ``against``.
    """
    contents = []
    for first, second in zip(series, against, strict=True):
        numbers = [score.value for score in (*first.scores, *second.scores)]
        contents.append(AxisContent([first.column, second.column], numbers))
    groups = []
    for first, second, axis in zip(series, against, shared_axes(contents), strict=True):
        # percent and points are drawn on one axis, fractions in percent
        unit: Unit = "points" if first.column.unit == "fraction" else first.column.unit
        dumbbells = []
        for first_score, second_score in zip(first.scores, second.scores, strict=True):
            dumbbells.append(_dumbbell(first_score, second_score, unit))
        groups.append(DumbbellGroup(_names(first.column, second.column), dumbbells, axis))
    return DumbbellChart(groups)


def _dumbbell(first: DrawnScore, second: DrawnScore, unit: Unit) -> Dumbbell:
    """Two scores of one model, with their difference in ``unit``."""
    text = ""
    if first.value is not None and second.value is not None:
        text = difference(first.value - second.value, unit).replace(MINUS, "-")
    return Dumbbell(first.label, first.look, first.value, second.value, text)


def _names(first: BoardColumn, second: BoardColumn) -> tuple[str, str]:
    """The labels of two columns; equal ones have their tasks in brackets."""
    if first.label != second.label:
        return first.label, second.label
    return f"{first.label} ({first.task})", f"{second.label} ({second.task})"


def dumbbells_in_words(chart: DumbbellChart, extent: str) -> str:
    """The description of a dumbbell chart: the difference of each model in each pair of columns."""
    which = f" for {extent}" if extent else ""
    parts = []
    for group in chart.groups:
        differences = []
        for dumbbell in group.dumbbells:
            if dumbbell.difference:
                differences.append(f"{dumbbell.label} {dumbbell.difference}")
        numbers = joined(differences) or "no model has both"
        parts.append(f"{group.names[0]} minus {group.names[1]}: {numbers}")
    return f"Dumbbell chart{which}. {joined(parts)}."
