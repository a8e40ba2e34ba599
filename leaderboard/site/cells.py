"""Scores as shown on pages: text, interval bar, and why a value is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from medtasks.runs.scores import coverage_text

from ..board.board import BoardColumn, BoardRow, Cell
from ..board.numbers import exact, interval, number


@dataclass(frozen=True)
class Scale:
    """The common range of all interval bars of a column, so that they can be compared by eye."""

    low: float
    high: float
    chance: float | None

    def place(self, value: float) -> str:
        """The position of ``value``, 0 to 100."""
        share = (value - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.3g}"


@dataclass(frozen=True)
class CellView:
    """A cell of a table. ``bar`` and ``chance`` are path data of a drawing 100 units wide and 8 high; ``letters`` are
    those of the ranking, in a table without a column for them; ``reason`` says why there is no text."""

    text: str = ""
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


def scale_of(column: BoardColumn, cells: Iterable[Cell]) -> Scale | None:
    """From the lowest to the highest end of all intervals and the chance level, with a margin; None without values."""
    ends = [end for cell in cells for end in (cell.value, cell.low, cell.high) if end is not None]
    if not ends:
        return None
    if column.chance is not None:
        ends.append(column.chance)
    margin = 0.04 * (max(ends) - min(ends)) or 1.0
    return Scale(min(ends) - margin, max(ends) + margin, column.chance)


def best_values(columns: Sequence[BoardColumn], rows: Sequence[BoardRow]) -> dict[str, float]:
    """By column key, the best of at least two complete values; signed columns have no best."""
    best = {}
    for column in columns:
        cells = [row.cells[column.key] for row in rows if column.key in row.cells]
        known = [cell.value for cell in cells if cell.value is not None and not cell.incomplete]
        if len(known) > 1 and not column.signed:
            best[column.key] = max(known) if column.higher_is_better else min(known)
    return best


def shared_judge(cells: Iterable[Cell]) -> str:
    """The judges of all judged scores of a column; empty if they differ, or if none is judged."""
    names = {cell.judge for cell in cells if cell.judge}
    return names.pop() if len(names) == 1 else ""


def cell_view(
    column: BoardColumn, cell: Cell | None, scale: Scale | None = None, best: float | None = None, judge: str = ""
) -> CellView:
    """One score of one row, with an interval bar on ``scale``; marked if it equals ``best``.

    A judged score has a note with its judges, unless they are ``judge``, whom the column's heading names.
    """
    if cell is None:
        return CellView(reason="not run")
    notes = coverage_notes(column, cell)
    if cell.judge and cell.judge != judge:
        notes = (f"judged by {cell.judge}", *notes)
    if cell.value is None:
        return CellView(notes=notes, reason=cell.reason or "no value", items=cell.items, signature=cell.signature)
    bar = chance = ""
    if scale is not None:
        ends = "" if cell.low is None or cell.high is None else f"M{scale.place(cell.low)} 4H{scale.place(cell.high)}"
        bar = f"{ends}M{scale.place(cell.value)} 1V7"
        chance = "" if scale.chance is None else f"M{scale.place(scale.chance)} 0V8"
    return CellView(
        text=number(cell.value, column.unit),
        sort=exact(cell.value),
        interval=interval(cell.low, cell.high, column.unit),
        notes=notes,
        bar=bar,
        chance=chance,
        top=cell.value == best and not cell.incomplete,
        items=cell.items,
        signature=cell.signature,
    )


def coverage_notes(column: BoardColumn, cell: Cell) -> tuple[str, ...]:
    """Notes on a score for which some items lack a response or a verdict."""
    if all(count in (None, cell.items) for count in (cell.answered, cell.judged)):
        return ()
    notes = [coverage_text(cell.items, cell.answered, cell.judged)]
    if cell.bounds is not None:
        notes.append(f"bounds: {interval(*cell.bounds, column.unit)}")
    return (*notes, "incomplete") if cell.incomplete else tuple(notes)
