"""Scores as the pages show them: text, interval bar, and what is missing and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from medtasks.results.scoring import coverage_text

from ..board import BoardColumn, BoardRow, Cell
from .numbers import exact, interval, number

__all__ = ["ABSENT", "CellView", "Scale", "best_values", "cell_view", "coverage_notes", "scale_of"]


@dataclass(frozen=True)
class Scale:
    """The range that a column's interval bars span, so that all of them can be compared by eye."""

    low: float
    high: float
    chance: float | None

    def place(self, value: float) -> str:
        """Where ``value`` lies, 0 to 100."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.3g}"


@dataclass(frozen=True)
class CellView:
    """A cell of a table. ``bar`` and ``chance`` are path data of a drawing 100 units wide and 8 high; ``letters`` are
    those of the ranking, where a table has no column for them."""

    text: str
    sort: str = ""
    interval: str = ""
    letters: str = ""
    notes: tuple[str, ...] = ()
    bar: str = ""
    chance: str = ""
    top: bool = False
    reason: str = ""
    items: int | None = None
    signature: str = ""


ABSENT = CellView(text="", reason="not run")


def scale_of(column: BoardColumn, cells: Iterable[Cell]) -> Scale | None:
    """From the lowest to the highest end of all intervals, with the chance level and a margin; None without values."""
    ends = [end for cell in cells for end in (cell.value, cell.low, cell.high) if end is not None]
    if not ends:
        return None
    if column.chance is not None:
        ends.append(column.chance)
    margin = 0.04 * (max(ends) - min(ends)) or 1.0
    return Scale(min(ends) - margin, max(ends) + margin, column.chance)


def best_values(columns: Sequence[BoardColumn], rows: Sequence[BoardRow]) -> Mapping[str, float]:
    """By column key, the best value where at least two rows have a complete one; signed columns have no best."""
    best = {}
    for column in columns:
        if column.signed:
            continue
        cells = [row.cells[column.key] for row in rows if column.key in row.cells]
        known = [cell.value for cell in cells if cell.value is not None and not cell.incomplete]
        if len(known) > 1:
            best[column.key] = max(known) if column.higher_is_better else min(known)
    return best


def cell_view(
    column: BoardColumn, cell: Cell | None, scale: Scale | None = None, best: float | None = None
) -> CellView:
    """One score of one row; with ``scale`` it has an interval bar, and it is marked where it equals ``best``."""
    if cell is None:
        return ABSENT
    if cell.value is None:
        reason = cell.reason or "no value"
        return CellView(
            text="", notes=coverage_notes(column, cell), reason=reason, items=cell.items, signature=cell.signature
        )
    return CellView(
        text=number(cell.value, column.unit),
        sort=exact(cell.value),
        interval=interval(cell.low, cell.high, column.unit),
        notes=coverage_notes(column, cell),
        bar=_bar(cell, scale) if scale else "",
        chance=f"M{scale.place(scale.chance)} 0V8" if scale and scale.chance is not None else "",
        top=cell.value == best and not cell.incomplete,
        items=cell.items,
        signature=cell.signature,
    )


def _bar(cell: Cell, scale: Scale) -> str:
    value = f"M{scale.place(cell.value or 0.0)} 1V7"
    if cell.low is None or cell.high is None:
        return value
    return f"M{scale.place(cell.low)} 4H{scale.place(cell.high)}{value}"


def coverage_notes(column: BoardColumn, cell: Cell) -> tuple[str, ...]:
    """What a reader must know of a score that is not decided for every item."""
    if all(count in (None, cell.items) for count in (cell.answered, cell.judged)):
        return ()
    notes = [coverage_text(cell.items, cell.answered, cell.judged)]
    if cell.bounds is not None:
        notes.append(f"whatever the rest: {interval(*cell.bounds, column.unit)}")
    if cell.incomplete:
        notes.append("incomplete")
    return tuple(notes)
