"""Figures of scores in tables of a board: bars, dumbbells, heat maps and radars."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from ..board.model_order import model_order
from ..schema.board import BenchmarkBoard, Board
from ..schema.plot_data import BoardPlot
from ..schema.score_tables import BoardColumn, BoardTable, Cell
from .bars import bar_chart, bars_in_words
from .drawn_scores import ColumnScores, drawn_score
from .dumbbells import dumbbell_chart, dumbbells_in_words
from .figure import Figure, Shape, extent_text, model_labels
from .heat_map import rank_map, value_map
from .labels import joined
from .looks import LOOKS, Look, looks_at
from .radar import radar, radar_in_words

MOST_MODELS = len(LOOKS)
"""Maximum number of models in all figures but heat maps; more could not be distinguished."""


def score_figure(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Figure | None:
    """Bars, a heat map, dumbbells or a radar of the plot's columns; None without any value.

    A heat map has all models but no signed columns, all others at most `MOST_MODELS` models.
    """
    tables = sorted(benchmark.tables, key=lambda table: table.name != plot.table)
    columns = _plotted_columns(plot, tables)
    keys = {*plot.columns, *plot.against}
    cells = _cells_by_model(tables)
    order = [model for model in model_order(benchmark) if model in cells]
    valued = [model for model in order if _has_value(cells[model], keys)]
    drawn = valued if plot.kind == "heatmap" else valued[:MOST_MODELS]
    if not drawn or not columns.first:
        return None

    labels = model_labels(board, drawn)
    looks = looks_at([order.index(model) for model in drawn])
    models = []
    for model, look in zip(drawn, looks, strict=True):
        models.append(_DrawnModel(labels[model], look, cells[model]))
    series = [_column_scores(column, models) for column in columns.first]
    against = [_column_scores(column, models) for column in columns.against]
    every_column = [*series, *against]
    extent = extent_text(drawn, valued)
    shape, words = _shape(plot, series, against, extent, board.confidence)
    omitted = _omitted(every_column, _count_apart(tables, keys), columns.signed)
    return Figure(
        plot=plot,
        shape=shape,
        extent=extent,
        incomplete=_has_incomplete(every_column),
        omitted=" ".join(omitted),
        alt=" ".join([words, *omitted]),
    )


@dataclass(frozen=True)
class _DrawnModel:
    """A model of a figure, with its cells by column."""

    label: str
    look: Look
    cells: Mapping[str, Cell]


def _column_scores(column: BoardColumn, models: Sequence[_DrawnModel]) -> ColumnScores:
    """The models' scores in a column."""
    scores = []
    for model in models:
        cell = model.cells.get(column.key)
        scores.append(drawn_score(model.label, model.look, column, cell))
    return ColumnScores(column, scores)


def _has_incomplete(columns: Sequence[ColumnScores]) -> bool:
    """Whether any score of the columns is incomplete."""
    for entry in columns:
        if any(score.incomplete for score in entry.scores):
            return True
    return False


@dataclass
class _PlottedColumns:
    """The columns of a plot, and the columns that they are drawn ``against``, if any.

    ``signed`` are the labels of signed columns that a heat map leaves out.
    """

    first: list[BoardColumn] = field(default_factory=list)
    against: list[BoardColumn] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)


def _plotted_columns(plot: BoardPlot, tables: Sequence[BoardTable]) -> _PlottedColumns:
    """The plot's columns, each from the first table that has it; unknown ones are left out."""
    by_key: dict[str, BoardColumn] = {}
    for table in tables:
        for column in table.columns:
            by_key.setdefault(column.key, column)

    columns = _PlottedColumns()
    sides = (plot.columns, plot.against) if plot.against else (plot.columns,)
    for keys in zip(*sides, strict=False):
        if not by_key.keys() >= set(keys):
            continue
        first = by_key[keys[0]]
        if plot.kind == "heatmap" and first.signed:
            columns.signed.append(first.label)
            continue
        columns.first.append(first)
        if plot.against:
            columns.against.append(by_key[keys[1]])
    return columns


def _cells_by_model(tables: Sequence[BoardTable]) -> dict[str, dict[str, Cell]]:
    """The cells of comparable models by column; those of the first table that has a column."""
    cells: dict[str, dict[str, Cell]] = {}
    for table in tables:
        for row in table.rows:
            cells[row.model] = {**row.cells, **cells.get(row.model, {})}
    return cells


def _has_value(cells: Mapping[str, Cell], keys: Collection[str]) -> bool:
    """Whether a model has a value in one of the columns."""
    return any(key in keys and cell.value is not None for key, cell in cells.items())


def _count_apart(tables: Sequence[BoardTable], keys: Collection[str]) -> int:
    """The number of rows that are not comparable and have a cell in one of the columns."""
    rows = set()
    for table in tables:
        for row in table.apart:
            if not row.cells.keys().isdisjoint(keys):
                rows.add((row.model, row.runs))
    return len(rows)


def _omitted(columns: Sequence[ColumnScores], apart: int, signed: Sequence[str]) -> list[str]:
    """What a figure leaves out, in sentences.

    ``apart`` is the number of rows that are not comparable, ``signed`` are labels of columns.
    """
    sentences = []
    absent = []
    for entry in columns:
        for score in entry.scores:
            if score.value is None:
                absent.append(f"{score.label} in {entry.column.label}")
    if absent:
        sentences.append(f"Without a value: {joined(absent)}.")
    if apart:
        rows_are = "row is" if apart == 1 else "rows are"
        sentences.append(f"{apart} {rows_are} not comparable and not drawn.")
    if signed:
        sentences.append(f"Not drawn, since 0 is best: {joined(signed)}.")
    return sentences


def _shape(
    plot: BoardPlot,
    series: Sequence[ColumnScores],
    against: Sequence[ColumnScores],
    extent: str,
    confidence: float,
) -> tuple[Shape, str]:
    """The shape of the plot's kind with its description; bars if a radar cannot be drawn."""
    if plot.kind == "heatmap":
        return rank_map(series) if plot.ranks else value_map(series)
    if plot.kind == "radar":
        curves = radar(series)
        if curves is not None:
            return curves, radar_in_words(curves, series, extent)
    elif against:
        dumbbells = dumbbell_chart(series, against)
        return dumbbells, dumbbells_in_words(dumbbells, extent)
    bars = bar_chart(plot, series, confidence)
    return bars, bars_in_words(bars, series, extent)
