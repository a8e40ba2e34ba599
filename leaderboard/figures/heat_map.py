"""Heat maps: models by columns, the better a cell the lighter."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from medtasks.stats.ranks import normalised_ranks

from ..schema.score_tables import BoardColumn
from .drawn_scores import ColumnScores, summaries
from .labels import joined


@dataclass(frozen=True)
class HeatCell:
    """A cell's text, and how good it is: 0 (worst) to 1 (best), None without a value."""

    text: str
    goodness: float | None


@dataclass(frozen=True)
class HeatRow:
    """A labelled row of cells."""

    label: str
    cells: Sequence[HeatCell]


@dataclass(frozen=True)
class HeatMap:
    """Rows of cells below the labels ``across``.

    ``worst`` and ``best`` label the two ends of the colour scale, ``lacks`` names what a cell
    without colour has not.
    """

    kind: ClassVar[str] = "heat map"
    across: Sequence[str]
    rows: Sequence[HeatRow]
    worst: str
    best: str
    lacks: str


CellsByColumn = list[list[HeatCell]]


def rank_map(series: Sequence[ColumnScores]) -> tuple[HeatMap, str]:
    """A heat map of the models' normalised ranks in each column, with its description.

    Only complete scores have a rank.
    """
    cells = [_rank_cells(entry) for entry in series]
    lowest = joined(_mean_ranks(series[0].labels, cells), most=3)
    words = (
        f"Heat map of ranks, 0 for the best and 1 for the last, {_size(series)}, lighter is "
        f"better, hatched has no rank. Lowest mean over the columns: {lowest}."
    )
    across, rows = _arranged(series, cells)
    return HeatMap(across, rows, "last: 1", "best: 0", "rank"), words


def value_map(series: Sequence[ColumnScores]) -> tuple[HeatMap, str]:
    """A heat map of the models' values in each column, with its description.

    All columns have one colour scale if they have the same unit and direction.
    """
    units_and_directions = {(entry.column.unit, entry.column.higher_is_better) for entry in series}
    if len(units_and_directions) == 1:
        every_value: list[float] = []
        for entry in series:
            every_value += entry.values
        cells = [_value_cells(entry, every_value) for entry in series]
        worst, best = _scale_ends(series[0].column, every_value)
    else:
        cells = [_value_cells(entry, entry.values) for entry in series]
        worst, best = "worst of the column", "best of the column"
    words = (
        f"Heat map of values, {_size(series)}, lighter is better, hatched has no value. "
        f"{summaries(series, most=6)}."
    )
    across, rows = _arranged(series, cells)
    return HeatMap(across, rows, worst, best, "value"), words


def _size(series: Sequence[ColumnScores]) -> str:
    return f"{len(series[0].scores)} models by {len(series)} columns"


def _arranged(
    series: Sequence[ColumnScores], cells: CellsByColumn
) -> tuple[list[str], list[HeatRow]]:
    """The labels across and the rows.

    The fewer of models and columns are across, so that the figure fits a phone.
    """
    models = series[0].labels
    columns = [entry.column.label for entry in series]
    if len(columns) > len(models):
        across, down, cell_rows = models, columns, cells
    else:
        across, down = columns, models
        cell_rows = [list(row) for row in zip(*cells, strict=True)]
    rows = [HeatRow(label, row) for label, row in zip(down, cell_rows, strict=True)]
    return across, rows


def _rank_cells(entry: ColumnScores) -> list[HeatCell]:
    """The models' normalised ranks in a column: 0 for the best and 1 for the last."""
    values = [score.complete_value for score in entry.scores]
    cells = []
    for rank in normalised_ranks(values, higher_is_better=entry.column.higher_is_better):
        if rank is None:
            cells.append(HeatCell("", None))
        else:
            cells.append(HeatCell(f"{rank:.2f}", 1 - rank))
    return cells


def _mean_ranks(labels: Sequence[str], cells: CellsByColumn) -> list[str]:
    """The models with their mean rank over the columns, lowest first."""
    means = []
    for label, row in zip(labels, zip(*cells, strict=True), strict=True):
        ranks = [1 - cell.goodness for cell in row if cell.goodness is not None]
        if ranks:
            means.append((math.fsum(ranks) / len(ranks), label))
    return [f"{label} {mean:.2f}" for mean, label in sorted(means)]


def _scale_ends(column: BoardColumn, values: Sequence[float]) -> tuple[str, str]:
    """The labels of the worst and the best of the ``values``."""
    worst, best = min(values), max(values)
    if not column.higher_is_better:
        worst, best = best, worst
    digits = 3 if column.unit == "score" else 1
    return f"worst: {worst:.{digits}f}", f"best: {best:.{digits}f}"


def _value_cells(entry: ColumnScores, scale: Sequence[float]) -> list[HeatCell]:
    """The cells of a column, with goodness from 0 for the worst score to 1 for the best.

    ``scale`` are the scores whose lowest and highest end the scale. Goodness is 0.5 if all of them
    are equal, and None without a score.
    """
    low, high = min(scale, default=0.0), max(scale, default=0.0)
    cells = []
    for score in entry.scores:
        if score.value is None:
            cells.append(HeatCell(score.text, None))
            continue
        goodness = 0.5
        if low < high:
            goodness = (score.value - low) / (high - low)
        if not entry.column.higher_is_better:
            goodness = 1 - goodness
        cells.append(HeatCell(score.text, goodness))
    return cells
