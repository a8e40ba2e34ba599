"""Columns and cells of tables, as the pages of the site show them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from medtasks.scoring.scores import coverage_text

from ..board.floors import Floor, column_floors, highest_floor
from ..schema.model_rankings import Ranking
from ..schema.numbers import interval
from ..schema.score_tables import BoardColumn, BoardRow, BoardTable, Cell

_COUNT = re.compile(r"\d[\d,]*")


@dataclass(frozen=True, eq=False)
class ColumnView:
    """A column as a table shows it.

    ``sub`` distinguishes columns with equal labels; ``ranking`` is the one by this score. `judge`
    is about the rows ``judged``, `scale` about the rows ``drawn``, `best` about ``competing``.
    """

    column: BoardColumn
    judged: Sequence[BoardRow] = ()
    drawn: Sequence[BoardRow] = ()
    competing: Sequence[BoardRow] = ()
    sub: str = ""
    ranking: Ranking | None = None
    benchmark_title: str = ""

    def _cells(self, rows: Iterable[BoardRow]) -> list[Cell]:
        return [row.cells[self.column.key] for row in rows if self.column.key in row.cells]

    @cached_property
    def judge(self) -> str:
        """The judges of all scores of the rows ``judged``.

        Empty if they differ, or if no score is judged.
        """
        names = {cell.judge for cell in self._cells(self.judged) if cell.judge}
        return names.pop() if len(names) == 1 else ""

    @cached_property
    def scale(self) -> tuple[float, float] | None:
        """The ends of the axis of the intervals of the rows ``drawn`` and the floors."""
        ends: list[float] = []
        for cell in self._cells(self.drawn):
            ends += [end for end in (cell.value, cell.low, cell.high) if end is not None]
        if self._cells(self.drawn):
            ends += [floor.level for floor in column_floors(self.column)]
        if not ends:
            return None
        margin = 0.04 * (max(ends) - min(ends)) or 1.0
        return min(ends) - margin, max(ends) + margin

    @cached_property
    def floor(self) -> Floor | None:
        """The floor that is hardest to exceed."""
        return highest_floor(self.column)

    @cached_property
    def best(self) -> float | None:
        """The best of the complete scores of the rows ``competing``.

        None for signed columns and counts, and with fewer than two scores.
        """
        values = []
        for cell in self._cells(self.competing):
            if cell.value is not None and not cell.incomplete:
                values.append(cell.value)
        if len(values) < 2 or not self.column.has_best:
            return None
        return max(values) if self.column.higher_is_better else min(values)

    def place(self, value: float) -> str:
        """The position of ``value`` on the scale, 0 to 100."""
        low, high = self.scale or (0.0, 1.0)
        share = (value - low) / (high - low)
        within = min(max(share, 0.0), 1.0)
        return f"{100 * within:.3g}"


def first_click(column: BoardColumn) -> str:
    """The direction in which the first click on a column sorts it.

    The best value comes on top, of a signed score the lowest.

    >>> column = BoardColumn(key="k", task="t", metric="m", label="Accuracy",
    ...                             unit="fraction", higher_is_better=True)
    >>> first_click(column)
    'down'
    """
    return "down" if column.higher_is_better and not column.signed else "up"


def group_letters(ranking: Ranking, model: str) -> str:
    """The letters of the model's groups in a ranking; empty if it is not ranked.

    >>> from types import SimpleNamespace
    >>> from medtasks.leaderboard.schema.model_rankings import Ranked
    >>> place = Ranked(model="m", rank=1, best=1, worst=2, letters=("a", "b"))
    >>> group_letters(SimpleNamespace(ranked=[place]), "m")
    'ab'
    """
    for place in ranking.ranked:
        if place.model == model:
            are_single = all(len(letter) == 1 for letter in place.letters)
            separator = "" if are_single else " "
            return separator.join(place.letters)
    return ""


def coverage_notes(cell: Cell, column: BoardColumn) -> tuple[str, ...]:
    """Notes on a score for which some items lack a response or a verdict.

    >>> column = BoardColumn(key="k", task="t", metric="m", label="Accuracy",
    ...                             unit="fraction", higher_is_better=True)
    >>> cell = Cell(value=0.5, items=400, answered=369, incomplete=True, signature="")
    >>> coverage_notes(cell, column)
    ('369 of 400 answered', 'incomplete')
    """
    is_answered = cell.answered in (None, cell.items)
    is_judged = cell.judged in (None, cell.items)
    if is_answered and is_judged:
        return ()
    notes = []
    coverage = coverage_text(cell.items, cell.answered, cell.judged)
    if coverage:
        notes.append(coverage)
    if cell.bounds is not None:
        low, high = cell.bounds
        notes.append(f"bounds: {interval(low, high, column.unit)}")
    if cell.incomplete:
        notes.append("incomplete")
    return tuple(notes)


def _why_no_value(cell: Cell | None) -> str:
    """The reason why one cell has no value."""
    if cell is None:
        return "not run"
    return cell.reason or "no value"


def _most_items_first(cell: Cell | None) -> int:
    """A sort key for cells; those that were not run have no items."""
    return 0 if cell is None else -cell.items


def why_none(cells: Iterable[Cell | None]) -> str:
    """The distinct reasons why cells have no value.

    Reasons that differ only in their counts are one reason, that of the cell with the most items.
    A cell that is None was not run.
    """
    reason_without_counts: dict[str, str] = {}
    for cell in sorted(cells, key=_most_items_first):
        reason = _why_no_value(cell)
        reason_without_counts.setdefault(_COUNT.sub("", reason), reason)
    return "; ".join(reason_without_counts.values())


def subtitles(columns: Sequence[BoardColumn]) -> dict[str, str]:
    """By key, how a column differs from others with the same label.

    These are its task (without the words that all tasks begin with), metric and breakdown.

    >>> columns = []
    >>> for task in ("vqa_easy", "vqa_hard"):
    ...     columns.append(BoardColumn(key=task, task=task, metric="m", label="Accuracy",
    ...                                       unit="fraction", higher_is_better=True))
    >>> subtitles(columns)
    {'vqa_easy': 'easy', 'vqa_hard': 'hard'}
    """
    by_label: dict[str, list[BoardColumn]] = defaultdict(list)
    for column in columns:
        by_label[column.label].append(column)
    tasks = {column.task for column in columns}
    shared_words = 0
    if len(tasks) > 1:
        shared_words = leading_words([task.split("_") for task in tasks])
    texts: dict[str, str] = {}
    for namesakes in by_label.values():
        texts |= _namesake_subtitles(namesakes, shared_words)
    return texts


def _namesake_subtitles(namesakes: Sequence[BoardColumn], shared_words: int) -> dict[str, str]:
    """By key, what distinguishes columns with one label from each other.

    ``shared_words`` is the number of words that all tasks begin with.
    """
    tasks_differ = len({column.task for column in namesakes}) > 1
    metrics_differ = len({column.metric for column in namesakes}) > 1
    breakdowns_differ = len({column.breakdown for column in namesakes}) > 1
    texts = {}
    for column in namesakes:
        parts = []
        if tasks_differ:
            own_words = column.task.split("_")[shared_words:]
            parts.append("_".join(own_words) or "all")
        if metrics_differ:
            parts.append(column.metric)
        if breakdowns_differ:
            parts.append(column.breakdown or "all")
        texts[column.key] = ", ".join(parts)
    return texts


def is_beside_its_model(table: BoardTable, apart: BoardRow) -> bool:
    """Whether a row that is not comparable is only a ranked model's blind run.

    Every page shows such a row below that model.
    """
    is_alone = len(apart.reasons) == 1  # that it is blind
    return apart.blind and is_alone and any(row.model == apart.model for row in table.rows)


def leading_words(word_lists: Sequence[Sequence[str]]) -> int:
    """With how many words all lists begin."""
    count = 0
    for words in zip(*word_lists, strict=False):
        if len(set(words)) > 1:
            break
        count += 1
    return count
