"""What a figure shows: its columns, the models with a value in one of them, and their cells; and the colours, marks and
shortened names of all figures, on pages and as files."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from medtasks.core.text import first_names, one_line

from ..board.board import BenchmarkBoard, Board, BoardColumn, BoardPlot, Cell
from ..board.numbers import UNITS, direction, shown, shown_interval, shown_name

Drawn: TypeAlias = "dict[str, Any]"
"""Style arguments of matplotlib."""

MOST_MODELS = 8
"""Maximum number of models in all figures but heat maps; more could not be distinguished."""
_LABEL = 26
"""Characters of a model's name."""

INK, MUTED, GRID, PAPER = "#1b2026", "#59636e", "#cfd6dd", "#fefefe"
"""Text and axes, secondary text, grid lines, and the page. No series has these colours, so a dark page can replace
them by those of `DARK`."""

DARK = {INK: "#e9edf1", MUTED: "#a7b0ba", GRID: "#3b434c", PAPER: "#14181d"}

NOT_RUN = Cell(value=None, items=0, signature="")
"""In place of a cell that a model does not have."""


class Look(NamedTuple):
    """The style of one series: a colour of Okabe and Ito (grey for their yellow, which fades on white), and marks."""

    colour: str
    marker: str
    hatch: str
    line: tuple[int, tuple[float, ...]]

    def mark(self, size: float) -> Drawn:
        edge: Drawn = {"markeredgecolor": INK, "markeredgewidth": 0.5}
        return {"marker": self.marker, "markersize": size, "color": self.colour, **edge}


LOOKS = (
    Look("#0072b2", "o", "", (0, ())),
    Look("#e69f00", "s", "////", (0, (6, 2))),
    Look("#009e73", "^", "||||", (0, (2, 2))),
    Look("#d55e00", "D", "\\\\\\\\", (0, (6, 2, 1, 2))),
    Look("#56b4e9", "v", "xxxx", (0, (1, 1))),
    Look("#cc79a7", "P", "----", (0, (9, 2, 2, 2, 2, 2))),
    Look("#8d96a0", "X", "++++", (0, (4, 1))),
    Look("#9b7a00", "*", "//", (0, (3, 1, 1, 1, 1, 1))),
)


def short(text: str, most: int = 30) -> str:
    """``text`` on one line; the middle of a long one is cut, because sizes and versions are at the end.

    >>> short("laboratory/Very-Long-Model-Name-72B-Instruct", 24)
    'laboratory/Ve…B-Instruct'
    """
    plain = one_line(text)
    if len(plain) <= most:
        return plain
    end = (most - 1) * 2 // 5
    return f"{plain[: most - 1 - end]}…{plain[len(plain) - end :]}"


def distinct(texts: Sequence[str], most: int = 30) -> list[str]:
    """`short` of each, with a number added to those that would be equal."""
    cut = [short(text, most) for text in texts]
    return [
        f"{text} ({cut[: place + 1].count(text)})" if cut.count(text) > 1 else text for place, text in enumerate(cut)
    ]


def wrapped(text: str, width: int) -> str:
    """``text`` in at most three lines of ``width`` characters."""
    return "\n".join(textwrap.wrap(one_line(text), width, max_lines=3, placeholder=" …"))


listed = partial(first_names, most=8, separator="; ")
"""The first parts as a list in a sentence, and the number of the others."""


@dataclass(frozen=True)
class Shown:
    """A model in a figure; ``label`` is its name, shortened, ``look`` the same in all figures of a benchmark if
    possible."""

    label: str
    look: Look
    cells: Mapping[str, Cell]

    def value(self, column: BoardColumn) -> float | None:
        """Its value as drawn (`scaled`)."""
        cell = self.cells.get(column.key, NOT_RUN)
        return None if cell.value is None else scaled(cell.value, column)

    def ends(self, column: BoardColumn) -> tuple[float, float] | None:
        cell = self.cells.get(column.key, NOT_RUN)
        return None if cell.low is None or cell.high is None else (scaled(cell.low, column), scaled(cell.high, column))

    def number(self, column: BoardColumn) -> str:
        """Its value as text, with a star if incomplete; empty without one."""
        cell = self.cells.get(column.key, NOT_RUN)
        return "" if cell.value is None else shown(cell.value, column.unit) + "*" * cell.incomplete

    def complete(self, column: BoardColumn) -> float | None:
        """Its value if that is complete and so competes with the others'."""
        return None if self.cells.get(column.key, NOT_RUN).incomplete else self.value(column)

    def described(self, column: BoardColumn) -> str:
        """Its number in words: ``Model 61.3 (58.1, 64.4)``."""
        ends = shown_interval(self.cells[column.key], column.unit)
        return f"{self.label} {self.number(column)}" + (f" ({ends})" if ends else "")


@dataclass(frozen=True)
class Chosen:
    """The models that are drawn, best by the first headline first.

    ``extent`` says how many of those with a value here they are (``8 of 31 models``; empty if all), ``incomplete``
    whether a value over too few items is among them, ``omitted`` what is not drawn, in sentences.
    """

    columns: Sequence[BoardColumn]
    against: Sequence[BoardColumn]
    models: Sequence[Shown]
    extent: str
    incomplete: bool
    omitted: str

    def summary(self, column: BoardColumn) -> str:
        """The best and the last model of a column (signed: the lowest and the highest), with their numbers.

        Incomplete values are used only if there are no others.
        """
        found = [one for one in self.models if one.complete(column) is not None]
        found = found or [one for one in self.models if one.value(column) is not None]
        if not found:
            return f"{column.label}: no value"
        sign = -1 if column.higher_is_better and not column.signed else 1
        ordered = sorted(found, key=lambda one: sign * (one.value(column) or 0.0))
        unit = "" if column.unit in ("points", "score") else f" {UNITS[column.unit]}"
        first, last = ordered[0], ordered[-1]
        best_count = sum(one.number(column) == first.number(column) for one in ordered)
        if best_count == len(ordered):
            return f"{column.label}: {'all ' if best_count > 1 else f'{first.label} '}{first.number(column)}{unit}"
        lowest = f"{first.described(column)}{unit}" + (f" (and {best_count - 1} more)" if best_count > 1 else "")
        highest = f"{last.described(column)}{unit}"
        if column.signed:
            return f"{column.label}, {direction(column)}: from {lowest} to {highest}"
        return f"{column.label}: best {lowest}, last {highest}"


def scaled(value: float, column: BoardColumn) -> float:
    """A value as drawn: fractions in percent, all others as they are."""
    return 100.0 * value if column.unit == "fraction" else value


def extent_of(drawn: int, of: int) -> str:
    """``8 of 31 models``; empty if all are drawn."""
    return f"{drawn} of {of} models" if drawn < of else ""


def model_order(benchmark: BenchmarkBoard) -> dict[str, int]:
    """The order of models in tables and figures of a benchmark: by the first score that ranks any, then by slug."""
    ranked = next(([one.model for one in ranking.ranked] for ranking in benchmark.rankings if ranking.ranked), [])
    others = {row.model for table in benchmark.tables for row in table.every_row}
    return {model: place for place, model in enumerate([*ranked, *sorted(others - set(ranked))])}


def labelled_best(board: Board, benchmark: BenchmarkBoard, models: Collection[str]) -> dict[str, str]:
    """Labels by model, in their order."""
    order = [model for model in model_order(benchmark) if model in models]
    return dict(zip(order, distinct([shown_name(board, model) for model in order], _LABEL), strict=True))


def choose(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot) -> Chosen:
    """The columns and models of ``plot``: at most `MOST_MODELS`, but all on a heat map, which has no signed columns.

    A column is looked up in the plot's own table first, then in the benchmark's others; unknown ones are left out.
    """
    heat = plot.kind == "heatmap"
    tables = sorted(benchmark.tables, key=lambda table: table.name != plot.table)
    known = {column.key: column for table in reversed(tables) for column in table.columns}
    keys = list(zip(plot.columns, plot.against or plot.columns, strict=False))
    pairs = [(known[one], known[other]) for one, other in keys if one in known and other in known]
    columns = [one for one, _ in pairs if not (heat and one.signed)]
    against = [other for _, other in pairs] if plot.against else []
    signed = [one.label for one, _ in pairs if heat and one.signed]

    rows: dict[str, dict[str, Cell]] = {}
    for row in (row for table in tables for row in table.rows):
        rows[row.model] = {**row.cells, **rows.get(row.model, {})}
    order = [model for model in model_order(benchmark) if model in rows]
    asked = {*plot.columns, *plot.against}
    valued = [one for one in order if any(cell.value is not None and key in asked for key, cell in rows[one].items())]
    drawn = valued if heat else valued[:MOST_MODELS]

    # the look of a model is that of its place on the board, or the first free one if that is taken
    taken: list[int] = []
    for place in map(order.index, drawn):
        free = [number for number in range(len(LOOKS)) if number not in taken] or [place % len(LOOKS)]
        taken.append(place if place in free else free[0])
    labels = distinct([shown_name(board, one) for one in drawn], _LABEL)
    models = [Shown(label, LOOKS[look], rows[one]) for one, label, look in zip(drawn, labels, taken, strict=True)]

    every = [(column, model) for column in (*columns, *against) for model in models]
    absent = [f"{model.label} in {column.label}" for column, model in every if model.value(column) is None]
    apart = {(row.model, row.runs) for table in tables for row in table.apart if asked & row.cells.keys()}
    omitted = f" Without a value: {listed(absent)}." if absent else ""
    if apart:
        omitted += f" {len(apart)} {'row is' if len(apart) == 1 else 'rows are'} not comparable and not drawn."
    if signed:
        omitted += f" Not drawn, since 0 is best: {listed(signed)}."
    incomplete = any(model.value(column) is not None and model.complete(column) is None for column, model in every)
    return Chosen(columns, against, models, extent_of(len(drawn), len(valued)), incomplete, omitted)
