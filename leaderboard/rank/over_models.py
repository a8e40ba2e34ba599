"""Statements over the models of a board: how scores go with size, their means by type of model, and the rank of each
model under each prompt."""

from __future__ import annotations

import math
import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations

from medtasks.catalog.spec import leaf_tasks
from medtasks.metrics.item_metrics import ErrorRate
from medtasks.metrics.registry import get_metric
from medtasks.runs.signature import format_signature, parse_signature

from ..board.board import (
    BenchmarkBoard,
    BoardColumn,
    BoardModel,
    BoardRow,
    BoardTable,
    Cell,
    OrderChange,
    PromptOrder,
    Ranking,
    SizeCorrelation,
    TypeMeans,
)
from .media_gain import NAME as GAINS

FEWEST = 4
"""Least number of models with a known size for a correlation."""
PROMPT_RANKS = "prompt-ranks"
_PROMPT = re.compile(r"prompt_([0-9]+)")
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


def prompt_ranks(
    columns: Iterable[BoardColumn], ranking_of: Callable[[BoardColumn], Ranking | None]
) -> tuple[BoardTable, PromptOrder] | None:
    """The ranks under each prompt of the first task with several prompts, and what they say; None without two models.

    Args:
        columns: those of a benchmark's tables.
        ranking_of: the ranking by a column; None if no run is comparable.
    """
    whole = [one for one in columns if one.breakdown is None]
    tasks = [one.task for one in whole if _PROMPT.fullmatch(one.metric)]
    each = {one.key: one for one in whole if one.task == tasks[0] and _PROMPT.fullmatch(one.metric)} if tasks else {}
    mean = next((one for one in whole if tasks and one.task == tasks[0]), None)
    found = {key: ranking for key, one in each.items() if (ranking := ranking_of(one)) is not None}
    ranks = {key: {one.model: one.rank for one in ranking.ranked} for key, ranking in found.items()}
    models = sorted(set.intersection(*(set(one) for one in ranks.values()))) if ranks else []
    if mean is None or len(models) < 2:
        return None
    over_all = ranking_of(mean)
    rankings = {**({} if over_all is None else {mean.key: over_all}), **found}
    rows: dict[str, dict[str, Cell]] = {}
    for key, ranking in rankings.items():
        signature = format_signature({**parse_signature(ranking.signature), "of": "ranks"})
        for one in ranking.ranked:
            cell = Cell(value=one.rank, low=one.best, high=one.worst, items=ranking.items, signature=signature)
            rows.setdefault(one.model, {})[f"{key}.rank"] = cell
    table = BoardTable(
        name=PROMPT_RANKS,
        title="Rank under each prompt",
        note="With 95 % intervals of the ranks; 1 is the best.",
        columns=tuple(
            ranking.column.model_copy(
                update={
                    "key": f"{ranking.column.key}.rank",
                    "metric": f"{ranking.column.metric}.rank",
                    "unit": "rank",
                    "chance": None,
                    "higher_is_better": False,
                }
            )
            for ranking in rankings.values()
        ),
        rows=tuple(BoardRow(model=model, cells=cells, runs=()) for model, cells in rows.items()),
    )
    numbers = [int(_PROMPT.fullmatch(each[key].metric)[1]) for key in ranks]  # type: ignore[index]
    return table, _order(tasks[0], models, dict(zip(numbers, ranks.values(), strict=True)))


def _order(task: str, models: Sequence[str], ranks: Mapping[int, Mapping[str, int]]) -> PromptOrder:
    changes = []
    for first, second in combinations(models, 2):
        ahead = tuple(number for number, one in ranks.items() if one[first] < one[second])
        behind = tuple(number for number, one in ranks.items() if one[first] > one[second])
        if ahead and behind:
            changes.append(OrderChange(first=first, second=second, ahead=ahead, behind=behind))
    from scipy.stats import kendalltau

    by_prompt = [[one[model] for model in models] for one in ranks.values()]
    pairs = [pair for pair in combinations(by_prompt, 2) if all(len(set(one)) > 1 for one in pair)]
    known = [float(kendalltau(*pair).statistic) for pair in pairs]  # tau-b
    return PromptOrder(
        task=task,
        prompts=len(ranks),
        pairs=len(models) * (len(models) - 1) // 2,
        changes=tuple(changes),
        tau=sum(known) / len(known) if known else None,
        lowest_tau=min(known, default=None),
    )
