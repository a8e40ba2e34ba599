"""How scores go with the models' sizes, and their means by type of model."""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from medtasks.catalog.spec import leaf_tasks
from medtasks.metrics.item_metrics import ErrorRate
from medtasks.metrics.registry import get_metric

from ..schema.board import BoardModel
from ..schema.model_findings import SizeCorrelation, TypeMeans
from ..schema.published_figures import Published
from ..schema.score_tables import BoardColumn, BoardRow, BoardTable
from .media_gain import GAINS

FEWEST = 4
"""Least number of models with a known size for a correlation."""
TYPES = ("closed", "general", "medical")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([MBT])\b", re.IGNORECASE)
_BILLIONS = {"M": 0.001, "B": 1.0, "T": 1000.0}


def billions_of(size: str | None) -> float | None:
    """Parameters in billions; of a mixture of experts all of them."""
    match = _SIZE.match(size or "")
    if match is None:
        return None
    return float(match[1]) * _BILLIONS[match[2].upper()]


@dataclass(frozen=True)
class TraitSection:
    """How scores go with the models' sizes, and their means by type of model."""

    size_correlations: tuple[SizeCorrelation, ...]
    type_means: tuple[TypeMeans, ...]


def trait_section(
    tables: Sequence[BoardTable],
    published: Sequence[Published],
    models: Mapping[str, BoardModel],
) -> TraitSection:
    """How scores go with the models' sizes, and their means by type of model.

    Both are of headline scores (those of the first table), of the same metrics in the tasks of a
    headline group, and of the other scores of headline tasks, but not of gains; means by type also
    of kinds of error. Blind runs and those that are not comparable are left out.
    """
    of_runs: list[SizeCorrelation] = []
    of_papers: list[SizeCorrelation] = []
    means: list[TypeMeans] = []
    for column, rows in _compared_columns(tables):
        scores = _model_scores(column, rows, models)
        if not isinstance(get_metric(column.metric), ErrorRate):
            sizes = [(model.size, value) for model, value in scores]
            of_runs += _size_correlation(column, "", sizes)
        for table, printed in _published_sizes(column, published).items():
            of_papers += _size_correlation(column, table, printed)
        means += _type_means(column, scores)
    return TraitSection((*of_runs, *of_papers), tuple(means))


def _compared_columns(
    tables: Sequence[BoardTable],
) -> Iterator[tuple[BoardColumn, tuple[BoardRow, ...]]]:
    """The columns that are compared between models, with the rows of the first table with each.

    These are scores of headline tasks, and the headline metrics of the tasks in headline groups;
    not breakdowns, and not signed scores, by which models cannot be ranked.
    """
    headline_tasks = {column.task for column in tables[0].columns}
    headline_scores = _headline_scores(tables[0])
    columns: dict[str, BoardColumn] = {}
    rows_by_column: dict[str, tuple[BoardRow, ...]] = {}
    for table in tables:
        if table.name == GAINS:
            continue
        for column in table.columns:
            columns[column.key] = column
            rows_by_column.setdefault(column.key, table.rows)
    for key, column in columns.items():
        if column.breakdown is not None or column.signed:
            continue
        if column.task in headline_tasks or (column.task, column.metric) in headline_scores:
            yield column, rows_by_column[key]


def _headline_scores(headline: BoardTable) -> set[tuple[str, str]]:
    """Task and metric of each headline column, for its group and for each task in the group."""
    scores: set[tuple[str, str]] = set()
    for column in headline.columns:
        for task in (column.task, *leaf_tasks(column.task)):
            scores.add((task, column.metric))
    return scores


def _model_scores(
    column: BoardColumn, rows: Sequence[BoardRow], models: Mapping[str, BoardModel]
) -> list[tuple[BoardModel, float]]:
    """The models with a value in the column."""
    cells = {row.model: row.cells.get(column.key) for row in rows}
    scores = []
    for model, cell in cells.items():
        if cell is not None and cell.value is not None:
            scores.append((models[model], cell.value))
    return scores


def _published_sizes(
    column: BoardColumn, published: Sequence[Published]
) -> dict[str, list[tuple[str | None, float]]]:
    """By published table, the sizes and comparable figures of its models in the column."""
    sizes: dict[str, list[tuple[str | None, float]]] = defaultdict(list)
    for figure in published:
        if figure.column == column.key and figure.rankable and figure.value is not None:
            sizes[figure.table].append((figure.size, figure.value))
    return sizes


def _size_correlation(
    column: BoardColumn, published: str, scores: Sequence[tuple[str | None, float]]
) -> Iterator[SizeCorrelation]:
    """The correlation of scores with the logarithm of sizes, if it is defined."""
    logarithms, values = [], []
    for size, value in scores:
        billions = billions_of(size)
        if billions:
            logarithms.append(math.log(billions))
            values.append(value)
    if len(values) < FEWEST or len(set(values)) == 1 or len(set(logarithms)) == 1:
        return
    r = statistics.correlation(logarithms, values)
    yield SizeCorrelation(published=published, column=column, models=len(values), r=r)


def _type_means(
    column: BoardColumn, scores: Sequence[tuple[BoardModel, float]]
) -> Iterator[TypeMeans]:
    """The mean score of each type of model, if there are several types."""
    means, counts = {}, {}
    for kind in TYPES:
        values = [value for model, value in scores if model.type == kind]
        if values:
            means[kind] = statistics.fmean(values)
            counts[kind] = len(values)
    if len(means) > 1:
        yield TypeMeans(column=column, means=means, models=counts)
