"""The tables of the overview: all models, and what is not comparable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ..schema.board import BenchmarkBoard, Board, BoardModel
from ..schema.score_tables import BoardRow
from .tables import ColumnView, is_beside_its_model


def all_models(board: Board) -> tuple[list[ColumnView], list[BoardRow]]:
    """The columns and rows of the overview.

    Columns are each benchmark's first headline score; there is a row for every model that a
    benchmark compares, sorted by rank.
    """
    rows = _headline_rows(board)
    columns = []
    rank_tables: list[dict[str, int]] = []
    for benchmark in board.benchmarks:
        if not benchmark.rankings:
            continue
        ranking = benchmark.rankings[0]
        view = ColumnView(
            ranking.column,
            judged=rows,
            drawn=rows,
            competing=rows,
            benchmark_title=benchmark.title,
            ranking=ranking,
        )
        columns.append(view)
        rank_tables.append({place.model: place.rank for place in ranking.ranked})

    unranked = len(board.models) + 1

    def place_of(row: BoardRow) -> tuple[list[int], str, str]:
        ranks = [rank_table.get(row.model, unranked) for rank_table in rank_tables]
        return ranks, board.models[row.model].name, row.model

    return columns, sorted(rows, key=place_of)


def _headline_rows(board: Board) -> list[BoardRow]:
    """A row for each model in a headline table, with its cells from all benchmarks."""
    by_model: dict[str, BoardRow] = {}
    for benchmark in board.benchmarks:
        for row in benchmark.tables[0].rows:
            earlier = by_model.get(row.model, row)
            cells = {**earlier.cells, **row.cells}
            by_model[row.model] = row.model_copy(update={"cells": cells})
    return list(by_model.values())


@dataclass(frozen=True)
class NotComparable:
    """A model's results on a benchmark that are not comparable.

    ``tables`` counts the tables with such results; the ``reasons`` are those of the headline
    scores, if they are among them.
    """

    model: BoardModel
    blind: bool
    benchmark: BenchmarkBoard
    tables: int
    reasons: Sequence[str]


def not_comparable(board: Board) -> list[NotComparable]:
    """The rows of tables that are not comparable, once for each model and benchmark."""
    results = []
    for benchmark in board.benchmarks:
        for (slug, blind), by_table in _reasons_by_model(benchmark).items():
            reasons = _headline_or_all(by_table, benchmark.tables[0].name)
            model = board.models[slug]
            results.append(NotComparable(model, blind, benchmark, len(by_table), reasons))

    def order(result: NotComparable) -> tuple[str, str, bool]:
        return result.model.name.casefold(), result.model.slug, result.blind

    return sorted(results, key=order)


def _headline_or_all(by_table: Mapping[str, list[str]], headline: str) -> list[str]:
    """The distinct reasons of the headline table, or of all tables if it has none."""
    if headline in by_table:
        return list(dict.fromkeys(by_table[headline]))
    return list(dict.fromkeys(chain.from_iterable(by_table.values())))


def _reasons_by_model(
    benchmark: BenchmarkBoard,
) -> dict[tuple[str, bool], dict[str, list[str]]]:
    """By model and whether its run is blind: why it is not comparable, by table."""
    reasons: dict[tuple[str, bool], dict[str, list[str]]] = {}
    for table in benchmark.tables:
        for row in table.apart:
            if is_beside_its_model(table, row):
                continue
            by_table = reasons.setdefault((row.model, row.blind), defaultdict(list))
            by_table[table.name] += row.reasons
    return reasons
