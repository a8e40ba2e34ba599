"""The tables of a benchmark's page: models as rows, with their blind runs; those that are not comparable below."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Literal

from ..board.board import (
    Apart,
    BenchmarkBoard,
    Board,
    BoardColumn,
    BoardRow,
    BoardTable,
    ModelFacts,
    ModelUsage,
    Ranking,
    RunFacts,
)
from ..board.numbers import UNIT_LABELS, direction, exact, shown_name
from ..board.rows import without_empty
from ..board.usage import amount, measured
from ..rank.over_models import billions_of
from .cells import CellView, Scale, best_values, cell_view, scale_of, shared_judge


@dataclass(frozen=True)
class ColumnView:
    """A column: a score, or the rank or the letters of the score before it. ``sub`` distinguishes columns with equal
    labels, ``hint`` is the direction unless more is better, ``judge`` names the judges of all its scores, ``first`` is
    how the first click sorts: the best value on top, of a signed score the lowest."""

    key: str
    label: str
    kind: Literal["score", "rank", "group"] = "score"
    unit: str = ""
    of: str = ""
    sub: str = ""
    hint: str = ""
    judge: str = ""
    first: Literal["up", "down"] = "down"


@dataclass(frozen=True)
class RowView:
    """A row. ``attached`` are the same model's blind runs, shown below it; ``reasons`` why it is not comparable."""

    model: ModelFacts
    cells: tuple[CellView, ...]
    blind: bool = False
    reasons: tuple[str, ...] = ()
    attached: tuple[RowView, ...] = ()


@dataclass(frozen=True)
class TableView:
    """A table, ready to be printed. ``missing`` lists empty cells by reason; ``rankings`` are those of the headline
    table."""

    name: str
    title: str
    note: str
    columns: tuple[ColumnView, ...]
    rows: tuple[RowView, ...]
    apart: tuple[RowView, ...]
    missing: Mapping[str, Sequence[str]]
    rankings: tuple[Ranking, ...] = ()


def size_class(size: str | None) -> str:
    """The range of parameters of a size such as ``235B-A22B``: ``s`` under 5, ``m`` under 15, ``l`` under 80 billion,
    ``x`` above, ``n`` if it is not stated.

    >>> [size_class(size) for size in ("500M", "8B", "30B-A3B", "1T", None, "large")]
    ['s', 'm', 'l', 'x', 'n', 'n']
    """
    billions = billions_of(size)
    if billions is None:
        return "n"
    return next((name for name, end in (("s", 5), ("m", 15), ("l", 80)) if billions < end), "x")


def size_order(size: str | None) -> str:
    """Parameters in billions, to sort by."""
    billions = billions_of(size)
    return "" if billions is None else f"{billions:.6g}"


def _subtitles(columns: Sequence[BoardColumn]) -> dict[str, str]:
    """By key, what distinguishes a column from others with the same label."""
    labels: dict[str, list[BoardColumn]] = {}
    for column in columns:
        labels.setdefault(column.label, []).append(column)
    return {
        column.key: distinguishing(column, same, {one.task for one in columns})
        for same in labels.values()
        if len(same) > 1
        for column in same
    }


def distinguishing(column: BoardColumn, others: Sequence[BoardColumn], tasks: Collection[str] = ()) -> str:
    """How ``column`` differs from ``others``: task (without the words that all tasks share), metric, breakdown."""
    every = {*tasks, *(one.task for one in others)}
    shared = leading_words(every, "_") + "_" if len(every) > 1 else ""
    task = "all" if f"{column.task}_" == shared else column.task.removeprefix(shared)
    parts = {
        task: len({one.task for one in others}) > 1,
        column.metric: len({one.metric for one in others}) > 1,
        column.breakdown or "all": len({one.breakdown for one in others}) > 1,
    }
    return ", ".join(part for part, differs in parts.items() if differs and part)


def leading_words(texts: Collection[str], separator: str) -> str:
    """The words with which all texts begin.

    >>> leading_words(["kvasir_vqa_x1_level1", "kvasir_vqa_x1_level2"], "_")
    'kvasir_vqa_x1'
    """
    by_place = zip(*(text.split(separator) for text in texts), strict=False)
    return separator.join(words[0] for words in takewhile(lambda words: len({*words}) == 1, by_place))


def column_view(column: BoardColumn, sub: str = "", judge: str = "") -> ColumnView:
    first: Literal["up", "down"] = "down" if column.higher_is_better and not column.signed else "up"
    unit, hint = UNIT_LABELS[column.unit], direction(column)
    return ColumnView(column.key, column.label, unit=unit, sub=sub, hint=hint, judge=judge, first=first)


def column_views(columns: Sequence[BoardColumn]) -> list[ColumnView]:
    """Score columns of one table; ``sub`` distinguishes those with the same label."""
    subs = _subtitles(columns)
    return [column_view(column, subs.get(column.key, "")) for column in columns]


def model_order(benchmark: BenchmarkBoard) -> dict[str, int]:
    """The order of models in all tables of a benchmark: by the first score that ranks any, then the others by slug."""
    ranked = next(([one.model for one in ranking.ranked] for ranking in benchmark.rankings if ranking.ranked), [])
    others = {row.model for table in benchmark.tables for row in (*table.rows, *(one.row for one in table.apart))}
    return {model: place for place, model in enumerate([*ranked, *sorted(others - set(ranked))])}


def rank_cells(ranking: Ranking, model: str) -> tuple[CellView, CellView]:
    """Rank with its interval, and the letters of the groups."""
    for one in ranking.ranked:
        if one.model == model:
            ends = "" if one.best is None or one.worst is None else f"{one.best}–{one.worst}"
            letters = ("" if all(len(letter) == 1 for letter in one.letters) else " ").join(one.letters)
            return CellView(str(one.rank), str(one.rank), ends), CellView(letters, letters)
    empty = CellView(reason=ranking.unranked.get(model, "not ranked"))
    return empty, empty


def letters_of(ranking: Ranking, model: str) -> str:
    """The letters of the model's groups; empty if it is not ranked."""
    return rank_cells(ranking, model)[1].text


def benchmark_tables(board: Board, benchmark: BenchmarkBoard) -> list[TableView]:
    """The first table of ``benchmark``, with ranks and letters beside its scores, and all others with results.

    Columns that have only published figures are left out, except in the first.
    """
    order = model_order(benchmark)
    first, *others = benchmark.tables
    shown = [without_empty(table) for table in others if table.rows or table.apart]
    return [_table(board, first, order, benchmark.rankings), *(_table(board, table, order, ()) for table in shown)]


def _table(board: Board, table: BoardTable, order: Mapping[str, int], rankings: Sequence[Ranking]) -> TableView:
    main = sorted((row for row in table.rows if not row.blind), key=lambda row: order[row.model])
    aside = [*table.apart, *(Apart(row=row, reasons=()) for row in table.rows if row.blind)]
    aside.sort(key=lambda one: order[one.row.model])
    by_key = {ranking.column.key: ranking for ranking in rankings}
    every = [*main, *(one.row for one in aside)]
    scales: dict[str, Scale | None] = {
        column.key: scale_of(column, [row.cells[column.key] for row in every if column.key in row.cells])
        for column in (table.columns if rankings else ())
    }
    best = best_values(table.columns, main)
    judges = {
        column.key: shared_judge(row.cells[column.key] for row in every if column.key in row.cells)
        for column in table.columns
    }

    def cells(row: BoardRow, ranked: bool) -> tuple[CellView, ...]:
        found: list[CellView] = []
        for column in table.columns:
            top = best.get(column.key) if ranked else None
            cell, scale = row.cells.get(column.key), scales.get(column.key)
            found.append(cell_view(column, cell, scale, top, judges[column.key]))
            if column.key in by_key:
                found.extend(rank_cells(by_key[column.key], row.model) if ranked else (CellView(), CellView()))
        return tuple(found)

    ranked = {row.model for row in main}
    attached: dict[str, list[RowView]] = {}
    apart: list[RowView] = []
    for one in aside:
        view = RowView(board.models[one.row.model], cells(one.row, False), one.row.blind, one.reasons)
        of_model = attached.setdefault(one.row.model, []) if one.row.blind and one.row.model in ranked else apart
        of_model.append(view)
    return TableView(
        name=table.name,
        title=table.title,
        note=table.note,
        columns=tuple(_columns(table.columns, by_key, judges)),
        rows=tuple(
            RowView(board.models[row.model], cells(row, True), attached=tuple(attached.get(row.model, ())))
            for row in main
        ),
        apart=tuple(apart),
        missing=_missing(board, table),
        rankings=tuple(rankings),
    )


def _columns(
    columns: Sequence[BoardColumn], rankings: Mapping[str, Ranking], judges: Mapping[str, str]
) -> Iterator[ColumnView]:
    subs = _subtitles(columns)
    for column in columns:
        sub = ", ".join(filter(None, (subs.get(column.key), column.remark)))
        yield column_view(column, sub, judges[column.key])
        if column.key in rankings:
            yield ColumnView(f"{column.key}.rank", "Rank", "rank", of=column.label, first="up")
            yield ColumnView(f"{column.key}.group", "Group", "group", of=column.label, first="up")


def usage_table(rows: Sequence[ModelUsage | RunFacts]) -> tuple[list[ColumnView], list[list[CellView]]]:
    """What runs used: columns, and the cells of each row; columns that no row has are left out."""
    found = measured([(row.usage, row.cost) for row in rows])
    columns = [ColumnView(f"usage.{one.key}", one.label, unit=one.unit) for one, _ in found]
    return columns, [[_usage_cell(values[place]) for _, values in found] for place in range(len(rows))]


def _usage_cell(value: float | None) -> CellView:
    return CellView(reason="not counted") if value is None else CellView(amount(value), exact(value))


def _missing(board: Board, table: BoardTable) -> dict[str, list[str]]:
    """By reason, the models with empty cells and their columns."""
    found: dict[str, list[str]] = {}
    rows = [*(row for row in table.rows if not row.blind), *(one.row for one in table.apart)]
    for row in (*rows, *(row for row in table.rows if row.blind)):
        empty: dict[str, list[str]] = {}
        for column in table.columns:
            view = cell_view(column, row.cells.get(column.key))
            if view.reason:
                empty.setdefault(view.reason, []).append(column.label)
        for reason, labels in empty.items():
            columns = "all columns" if len(labels) == len(table.columns) > 1 else ", ".join(labels)
            found.setdefault(reason, []).append(f"{shown_name(board, row.model, row.blind)}: {columns}")
    return dict(sorted(found.items()))
