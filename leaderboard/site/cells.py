"""Columns of tables on pages: their headings, the scale of their bars, and what their cells have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Literal

from medtasks.runs.scores import coverage_text

from ..board.board import BoardColumn, BoardRow, Cell, Ranking
from ..board.numbers import UNIT_LABELS, direction, interval


@dataclass(frozen=True)
class Scale:
    """The common range of all interval bars of a column, so that they can be compared by eye."""

    low: float
    high: float

    def place(self, value: float) -> str:
        """The position of ``value``, 0 to 100."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.3g}"


@dataclass(frozen=True)
class ColumnView:
    """A column: a score, or the rank or the letters of the score before it.

    ``sub`` distinguishes columns with equal labels, ``hint`` is the direction unless more is better, ``judge`` names
    the judges of all its scores, ``first`` is how the first click sorts: the best value on top, of a signed score the
    lowest. Intervals are drawn on ``scale``; ``best`` marks the best value. ``ranking`` is that by this score.
    """

    key: str
    label: str
    kind: Literal["score", "rank", "group"] = "score"
    unit: str = ""
    of: str = ""
    sub: str = ""
    hint: str = ""
    judge: str = ""
    first: Literal["up", "down"] = "down"
    column: BoardColumn | None = None
    scale: Scale | None = None
    best: float | None = None
    ranking: Ranking | None = None


def column_view(column: BoardColumn, **more: Any) -> ColumnView:
    """The column of a score; ``more`` are other fields of it."""
    first: Literal["up", "down"] = "down" if column.higher_is_better and not column.signed else "up"
    unit, hint = UNIT_LABELS[column.unit], direction(column)
    return ColumnView(column.key, column.label, unit=unit, hint=hint, first=first, column=column, **more)


def column_views(columns: Sequence[BoardColumn]) -> list[ColumnView]:
    """Score columns of one table; ``sub`` distinguishes those with the same label."""
    subs = subtitles(columns)
    return [column_view(column, sub=subs.get(column.key, "")) for column in columns]


def cells_of(key: str, rows: Iterable[BoardRow]) -> list[Cell]:
    """The cells of a column."""
    return [row.cells[key] for row in rows if key in row.cells]


def scale_of(column: BoardColumn, cells: Iterable[Cell]) -> Scale | None:
    """From the lowest to the highest end of all intervals and the chance level, with a margin; None without values."""
    ends = [end for cell in cells for end in (cell.value, cell.low, cell.high) if end is not None]
    if not ends:
        return None
    if column.chance is not None:
        ends.append(column.chance)
    margin = 0.04 * (max(ends) - min(ends)) or 1.0
    return Scale(min(ends) - margin, max(ends) + margin)


def best_of(column: BoardColumn, rows: Iterable[BoardRow]) -> float | None:
    """The best of at least two complete values; signed columns have no best."""
    known = [one.value for one in cells_of(column.key, rows) if one.value is not None and not one.incomplete]
    if len(known) < 2 or column.signed:
        return None
    return max(known) if column.higher_is_better else min(known)


def shared_judge(cells: Iterable[Cell]) -> str:
    """The judges of all judged scores of a column; empty if they differ, or if none is judged."""
    names = {cell.judge for cell in cells if cell.judge}
    return names.pop() if len(names) == 1 else ""


def missing(cell: Cell | None) -> str:
    """Why a model has no value in a column; empty if it has one."""
    if cell is None:
        return "not run"
    return "" if cell.value is not None else cell.reason or "no value"


def group_letters(ranking: Ranking, model: str) -> str:
    """The letters of the model's groups in a ranking; empty if it is not ranked."""
    letters = next((one.letters for one in ranking.ranked if one.model == model), ())
    return ("" if all(len(letter) == 1 for letter in letters) else " ").join(letters)


def coverage_notes(cell: Cell, column: BoardColumn) -> tuple[str, ...]:
    """Notes on a score for which some items lack a response or a verdict."""
    if all(count in (None, cell.items) for count in (cell.answered, cell.judged)):
        return ()
    notes = [coverage_text(cell.items, cell.answered, cell.judged)]
    if cell.bounds is not None:
        notes.append(f"bounds: {interval(*cell.bounds, column.unit)}")
    return (*notes, "incomplete") if cell.incomplete else tuple(notes)


def subtitles(columns: Sequence[BoardColumn]) -> dict[str, str]:
    """By key, what distinguishes a column from others with the same label."""
    labels: dict[str, list[BoardColumn]] = {}
    for column in columns:
        labels.setdefault(column.label, []).append(column)
    tasks = {one.task for one in columns}
    several = (same for same in labels.values() if len(same) > 1)
    return {column.key: distinguishing(column, same, tasks) for same in several for column in same}


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


def table_columns(
    columns: Sequence[BoardColumn],
    rows: Sequence[BoardRow],
    competing: Sequence[BoardRow],
    rankings: Mapping[str, Ranking],
) -> Iterator[ColumnView]:
    """The columns of a table with these rows, some of which compete; by key, ``rankings`` are those by some of them.

    Intervals are drawn in the headline table, which has the rankings.
    """
    subs = subtitles(columns)
    for column in columns:
        cells = cells_of(column.key, rows)
        view = column_view(
            column,
            sub=", ".join(filter(None, (subs.get(column.key), column.remark))),
            judge=shared_judge(cells),
            scale=scale_of(column, cells) if rankings else None,
            best=best_of(column, competing),
        )
        yield view
        if (ranking := rankings.get(column.key)) is not None:
            of = ColumnView(f"{column.key}.rank", "Rank", "rank", of=column.label, first="up", ranking=ranking)
            yield of
            yield replace(of, key=f"{column.key}.group", label="Group", kind="group")
