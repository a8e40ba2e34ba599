"""The tables of a benchmark's page: models as rows, blind runs beside their model, the set-apart ones below."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from ..board import (
    Apart,
    BenchmarkBoard,
    Board,
    BoardColumn,
    BoardRow,
    BoardTable,
    ModelFacts,
    Ranking,
)
from ..exports.numbers import direction
from .cells import CellView, Scale, best_values, cell_view, scale_of
from .numbers import UNIT_LABELS, number

__all__ = [
    "ColumnView", "Missing", "RowView", "TableView", "benchmark_tables", "column_view", "model_order", "rank_cell",
    "size_class", "size_order", "subtitles", "told_apart", "trained_of",
]  # fmt: skip


@dataclass(frozen=True)
class ColumnView:
    """A column: a score, or the rank or the letters that belong to the score before it. ``sub`` tells columns of
    one label apart; ``hint`` says what is good where more is not; ``first`` is how a click sorts at first: a score's
    best value comes first, of a signed score the lowest."""

    key: str
    label: str
    kind: Literal["score", "rank", "group"] = "score"
    unit: str = ""
    of: str = ""
    sub: str = ""
    hint: str = ""
    first: Literal["up", "down"] = "down"
    chance: str = ""


@dataclass(frozen=True)
class RowView:
    """A row. ``attached`` are the same model's blind runs, shown below it; ``reasons`` why a row is in no ranking."""

    model: ModelFacts
    cells: tuple[CellView, ...]
    blind: bool = False
    reasons: tuple[str, ...] = ()
    attached: tuple[RowView, ...] = ()


@dataclass(frozen=True)
class Missing:
    """Why cells are empty, and which."""

    reason: str
    where: tuple[str, ...]


@dataclass(frozen=True)
class TableView:
    """A table, ready to be printed. ``rankings`` has what holds of its ranked columns as a whole."""

    name: str
    title: str
    note: str
    columns: tuple[ColumnView, ...]
    rows: tuple[RowView, ...]
    apart: tuple[RowView, ...]
    missing: tuple[Missing, ...]
    rankings: tuple[Ranking, ...] = ()


_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([MBT])\b", re.IGNORECASE)
_BILLIONS = {"M": 0.001, "B": 1.0, "T": 1000.0}


def size_class(size: str | None) -> str:
    """In which range of parameters a size such as ``235B-A22B`` lies: ``s`` under 5, ``m`` under 15, ``l`` under 80
    billion, ``x`` above, ``n`` where it is not stated.

    >>> [size_class(size) for size in ("500M", "8B", "30B-A3B", "1T", None, "large")]
    ['s', 'm', 'l', 'x', 'n', 'n']
    """
    found = _SIZE.match(size or "")
    if not found:
        return "n"
    billions = float(found[1]) * _BILLIONS[found[2].upper()]
    return next((name for name, end in (("s", 5), ("m", 15), ("l", 80)) if billions < end), "x")


def size_order(size: str | None) -> str:
    """Parameters in billions, to sort by."""
    found = _SIZE.match(size or "")
    return f"{float(found[1]) * _BILLIONS[found[2].upper()]:.6g}" if found else ""


def trained_of(model: ModelFacts, benchmark: str) -> str:
    """``yes``, ``no`` or ``unknown``: nobody said."""
    return str(model.trained.get(benchmark, "unknown"))


def subtitles(columns: Sequence[BoardColumn]) -> dict[str, str]:
    """By key, what tells a column apart from those of the same label."""
    labels: dict[str, list[BoardColumn]] = {}
    for column in columns:
        labels.setdefault(column.label, []).append(column)
    return {
        column.key: told_apart(column, same, {one.task for one in columns})
        for same in labels.values()
        if len(same) > 1
        for column in same
    }


def told_apart(column: BoardColumn, others: Sequence[BoardColumn], tasks: Set[str] = frozenset()) -> str:
    """In what ``column`` differs from ``others``: task (without the words that all tasks share), metric, breakdown."""
    shared = _shared({*tasks, *(one.task for one in others)})
    task = "all" if f"{column.task}_" == shared else column.task.removeprefix(shared)
    parts = {
        task: len({one.task for one in others}) > 1,
        column.metric: len({one.metric for one in others}) > 1,
        column.breakdown or "all": len({one.breakdown for one in others}) > 1,
    }
    return ", ".join(part for part, differs in parts.items() if differs and part)


def _shared(tasks: Set[str]) -> str:
    """The words with which all tasks begin: ``kvasir_vqa_x1_`` of its levels."""
    words: list[str] = []
    for at_place in zip(*(task.split("_") for task in tasks), strict=False):
        if len(set(at_place)) > 1 or len(tasks) == 1:
            break
        words.append(f"{at_place[0]}_")
    return "".join(words)


def column_view(column: BoardColumn, sub: str = "") -> ColumnView:
    """A score's column."""
    chance = "" if column.chance is None else number(column.chance, column.unit)
    first: Literal["up", "down"] = "down" if column.higher_is_better and not column.signed else "up"
    unit, hint = UNIT_LABELS[column.unit], direction(column)
    return ColumnView(column.key, column.label, unit=unit, sub=sub, hint=hint, first=first, chance=chance)


def model_order(benchmark: BenchmarkBoard) -> dict[str, int]:
    """Places of models on all tables of a benchmark: by the first ranking, then those without a rank, by name."""
    ranked = [one.model for one in benchmark.rankings[0].ranked] if benchmark.rankings else []
    others = {row.model for table in benchmark.tables for row in (*table.rows, *(one.row for one in table.apart))}
    return {model: place for place, model in enumerate([*ranked, *sorted(others - set(ranked))])}


def rank_cell(ranking: Ranking, model: str) -> tuple[CellView, CellView]:
    """Rank with its interval, and the letters of the groups."""
    for one in ranking.ranked:
        if one.model == model:
            ends = "" if one.best is None or one.worst is None else f"{one.best}–{one.worst}"
            letters = "".join(one.letters) if all(len(letter) == 1 for letter in one.letters) else " ".join(one.letters)
            return CellView(str(one.rank), str(one.rank), ends), CellView(letters, letters)
    reason = ranking.unranked.get(model, "not ranked")
    return CellView("", reason=reason), CellView("", reason=reason)


def benchmark_tables(board: Board, benchmark: BenchmarkBoard) -> tuple[TableView, ...]:
    """All tables of ``benchmark``; the first has ranks and letters beside its scores."""
    order = model_order(benchmark)
    return tuple(
        _table(board, table, order, benchmark.rankings if number == 0 else ())
        for number, table in enumerate(benchmark.tables)
    )


def _table(board: Board, table: BoardTable, order: Mapping[str, int], rankings: Sequence[Ranking]) -> TableView:
    main = [row for row in table.rows if not row.blind]
    aside = [*table.apart, *(Apart(row=row, reasons=()) for row in table.rows if row.blind)]
    beside = {row.model for row in main}
    by_key = {ranking.column.key: ranking for ranking in rankings}
    scales: dict[str, Scale | None] = {}
    for column in table.columns if rankings else ():
        cells = [row.cells[column.key] for row in (*main, *(one.row for one in aside)) if column.key in row.cells]
        scales[column.key] = scale_of(column, cells)
    best = best_values(table.columns, main)

    def view(row: BoardRow, ranked: bool, reasons: tuple[str, ...] = ()) -> RowView:
        cells: list[CellView] = []
        for column in table.columns:
            top = best.get(column.key) if ranked else None
            cells.append(cell_view(column, row.cells.get(column.key), scales.get(column.key), top))
            if column.key in by_key:
                pair = rank_cell(by_key[column.key], row.model)
                cells.extend(pair if ranked else (CellView(""), CellView("")))
        return RowView(board.models[row.model], tuple(cells), row.blind, reasons)

    def place(row: BoardRow) -> int:
        return order[row.model]

    attached: dict[str, list[RowView]] = {}
    for one in aside:
        if one.row.blind and one.row.model in beside:
            attached.setdefault(one.row.model, []).append(view(one.row, False, one.reasons))
    rows = tuple(
        replace(view(row, True), attached=tuple(attached.get(row.model, ()))) for row in sorted(main, key=place)
    )
    others = [one for one in aside if not (one.row.blind and one.row.model in beside)]
    return TableView(
        name=table.name,
        title=table.title,
        note=table.note,
        columns=_columns(table.columns, by_key),
        rows=rows,
        apart=tuple(view(one.row, False, one.reasons) for one in sorted(others, key=lambda one: place(one.row))),
        missing=_missing(table, (*main, *(one.row for one in aside)), lambda slug: board.models[slug].name),
        rankings=tuple(rankings),
    )


def _columns(columns: Sequence[BoardColumn], rankings: Mapping[str, Ranking]) -> tuple[ColumnView, ...]:
    views, subs = [], subtitles(columns)
    for column in columns:
        views.append(column_view(column, subs.get(column.key, "")))
        if column.key in rankings:
            views.append(ColumnView(f"{column.key}.rank", "Rank", "rank", of=column.label, first="up"))
            views.append(ColumnView(f"{column.key}.group", "Group", "group", of=column.label, first="up"))
    return tuple(views)


def _missing(table: BoardTable, rows: Sequence[BoardRow], name: Callable[[str], str]) -> tuple[Missing, ...]:
    where: dict[str, list[str]] = {}
    for row in rows:
        empty: dict[str, list[str]] = {}
        for column in table.columns:
            cell = row.cells.get(column.key)
            if cell is None:
                empty.setdefault("not run", []).append(column.label)
            elif cell.value is None:
                empty.setdefault(cell.reason or "no value", []).append(column.label)
        for reason, labels in empty.items():
            columns = "all columns" if len(labels) == len(table.columns) > 1 else ", ".join(labels)
            where.setdefault(reason, []).append(f"{name(row.model)}{' (blind)' if row.blind else ''}: {columns}")
    return tuple(Missing(reason, tuple(places)) for reason, places in sorted(where.items()))
