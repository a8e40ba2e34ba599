"""Statements over the models of a board: how scores go with size, and their means by type of model."""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from medtasks.catalog.spec import leaf_tasks
from medtasks.metrics.item_metrics import ErrorRate
from medtasks.metrics.registry import get_metric

from ..board.board import BenchmarkBoard, BoardColumn, BoardModel, SizeCorrelation, TypeMeans
from .media_gain import NAME as GAINS

FEWEST = 4
"""Least number of models with a known size for a correlation."""
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([MBT])\b", re.IGNORECASE)
_BILLIONS = {"M": 0.001, "B": 1.0, "T": 1000.0}


def billions_of(size: str | None) -> float | None:
    """Parameters in billions; of a mixture of experts all of them.

    >>> [billions_of(size) for size in ("500M", "235B-A22B", None, "large")]
    [0.5, 235.0, None, None]
    """
    found = _SIZE.match(size or "")
    return float(found[1]) * _BILLIONS[found[2].upper()] if found else None


def with_models(board: BenchmarkBoard, models: Mapping[str, BoardModel]) -> BenchmarkBoard:
    """The benchmark with its correlations with size and its means by type of model.

    Both are of headline scores, of the same metrics in the tasks of a headline group, and of the other scores of
    headline tasks, but not of gains; means by type also of kinds of error. Blind runs and those that are not comparable
    are left out.
    """
    columns = list(_columns(board))
    values = {column.key: list(_values(board, column.key)) for column in columns}
    return board.model_copy(
        update={
            "size_correlations": (*_of_runs(columns, values, models), *_of_papers(board, columns)),
            "type_means": tuple(_by_type(columns, values, models)),
        }
    )


def _columns(board: BenchmarkBoard) -> Iterator[BoardColumn]:
    headline = {(leaf, one.metric) for one in board.tables[0].columns for leaf in (one.task, *leaf_tasks(one.task))}
    tasks = {one.task for one in board.tables[0].columns}
    scored = [table for table in board.tables if table.name != GAINS]
    every = {column.key: column for table in scored for column in table.columns}
    for column in every.values():
        whole = column.breakdown is None and not column.signed
        if whole and (column.task in tasks or (column.task, column.metric) in headline):
            yield column


def _values(board: BenchmarkBoard, key: str) -> Iterator[tuple[str, float]]:
    """Model and value of each comparable row with a value in the column."""
    table = next(one for one in board.tables if any(column.key == key for column in one.columns))
    for row in table.rows:
        cell = row.cells.get(key)
        if not row.blind and cell is not None and cell.value is not None:
            yield row.model, cell.value


def _of_runs(
    columns: Iterable[BoardColumn], values: Mapping[str, Sequence[tuple[str, float]]], models: Mapping[str, BoardModel]
) -> Iterator[SizeCorrelation]:
    for column in columns:
        if not isinstance(get_metric(column.metric), ErrorRate):
            yield from _correlation("", column, [(models[model].size, value) for model, value in values[column.key]])


def _of_papers(board: BenchmarkBoard, columns: Iterable[BoardColumn]) -> Iterator[SizeCorrelation]:
    for column in columns:
        by_table: dict[str, list[tuple[str | None, float]]] = defaultdict(list)
        for row in board.published:
            for cell in row.cells:
                if cell.column == column.key and cell.rankable and cell.value is not None:
                    by_table[row.table].append((row.size, cell.value))
        for table, pairs in by_table.items():
            yield from _correlation(table, column, pairs)


def _correlation(
    table: str, column: BoardColumn, pairs: Iterable[tuple[str | None, float]]
) -> Iterator[SizeCorrelation]:
    known = [(math.log(size), value) for text, value in pairs if (size := billions_of(text))]
    if len(known) >= FEWEST and all(len(set(side)) > 1 for side in zip(*known, strict=True)):
        r = statistics.correlation(*zip(*known, strict=True))
        yield SizeCorrelation(published=table, column=column, models=len(known), r=r)


def _by_type(
    columns: Iterable[BoardColumn], values: Mapping[str, Sequence[tuple[str, float]]], models: Mapping[str, BoardModel]
) -> Iterator[TypeMeans]:
    for column in columns:
        by_type: dict[str, list[float]] = defaultdict(list)
        for model, value in values[column.key]:
            by_type[models[model].type].append(value)
        stated = {kind: found for kind, found in sorted(by_type.items()) if kind in ("closed", "general", "medical")}
        if len(stated) > 1:
            yield TypeMeans(
                column=column,
                means={kind: statistics.fmean(found) for kind, found in stated.items()},
                models={kind: len(found) for kind, found in stated.items()},
            )
