"""What a figure shows: its columns, the models that have a value in one of them, and their cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..board import BenchmarkBoard, Board, BoardColumn, BoardPlot, BoardRow, Cell
from ..exports.numbers import UNITS, direction, shown, shown_interval
from .style import LOOKS, Look
from .text import distinct, listed

__all__ = ["Chosen", "Shown", "choose", "label_models", "scaled"]


@dataclass(frozen=True)
class Shown:
    """A model in a figure; ``label`` is its name, cut short, ``look`` one for all figures of a benchmark if it can."""

    label: str
    look: Look
    cells: Mapping[str, Cell]

    def value(self, column: BoardColumn) -> float | None:
        """Its value as drawn (`scaled`); None where it has none."""
        cell = self.cells.get(column.key)
        return None if cell is None or cell.value is None else scaled(cell.value, column)

    def ends(self, column: BoardColumn) -> tuple[float, float] | None:
        """Its interval as drawn."""
        cell = self.cells.get(column.key)
        if cell is None or cell.value is None or cell.low is None or cell.high is None:
            return None
        return scaled(cell.low, column), scaled(cell.high, column)

    def number(self, column: BoardColumn) -> str:
        """Its value as text, with a star over too few verdicts; empty where it has none."""
        cell = self.cells.get(column.key)
        return "" if cell is None or cell.value is None else shown(cell.value, column.unit) + "*" * cell.incomplete

    def place(self, column: BoardColumn) -> float | None:
        """Its value where that has a place among the others'; None without one, and over too few verdicts."""
        cell = self.cells.get(column.key)
        return None if cell is None or cell.incomplete else self.value(column)

    def said(self, column: BoardColumn) -> str:
        """Its number in words: ``Model 61.3 (58.1, 64.4)``."""
        cell = self.cells.get(column.key)
        if cell is None or cell.value is None:
            return f"{self.label} no value"
        ends = shown_interval(cell, column.unit)
        return f"{self.label} {self.number(column)}" + (f" ({ends})" if ends else "")


@dataclass(frozen=True)
class Chosen:
    """The models that are drawn, best by the first headline first, out of ``of`` that have a value here; ``signed`` are
    labels of columns that have no order, where the figure is one of order."""

    columns: tuple[BoardColumn, ...]
    against: tuple[BoardColumn, ...]
    models: tuple[Shown, ...]
    of: int
    apart: int
    signed: tuple[str, ...] = ()

    @property
    def extent(self) -> str:
        """``8 of 31 models``; empty where all are shown."""
        return f"{len(self.models)} of {self.of} models" if len(self.models) < self.of else ""

    @property
    def incomplete(self) -> bool:
        """Whether some value rests on too few verdicts."""
        pairs = [(column, one) for column in (*self.columns, *self.against) for one in self.models]
        return any(one.value(column) is not None and one.place(column) is None for column, one in pairs)

    def missing(self) -> str:
        """A sentence about what has no value; empty where all have one."""
        pairs = [(column, one) for column in (*self.columns, *self.against) for one in self.models]
        absent = [f"{one.label} in {column.label}" for column, one in pairs if one.value(column) is None]
        return f" Without a value: {listed(absent)}." if absent else ""

    def left_out(self) -> str:
        """Sentences about rows that share no ranking with those shown, and `signed`; empty where there is neither."""
        rows = "row is" if self.apart == 1 else "rows are"
        apart = f" {self.apart} {rows} set apart and not drawn." if self.apart else ""
        return f"{apart} Not drawn, since 0 is best: {listed(self.signed)}." if self.signed else apart

    def in_order(self) -> Chosen:
        """Without signed columns: nobody is first or last by them."""
        return replace(
            self,
            columns=tuple(column for column in self.columns if not column.signed),
            signed=tuple(column.label for column in self.columns if column.signed),
        )

    def summary(self, column: BoardColumn) -> str:
        """The best and the last model of a column, or of a signed one the lowest and the highest, with their numbers.

        Values over too few verdicts are neither, unless there are no others.
        """
        found = [one for one in self.models if one.place(column) is not None]
        found = found or [one for one in self.models if one.value(column) is not None]
        if not found:
            return f"{column.label}: no value"
        sign = -1 if column.higher_is_better and not column.signed else 1
        ordered = sorted(found, key=lambda one: sign * (one.value(column) or 0.0))
        unit = "" if column.unit in ("points", "score") else f" {UNITS[column.unit]}"
        first, last = ordered[0], ordered[-1]
        alike = sum(one.number(column) == first.number(column) for one in ordered)
        if alike == len(ordered):
            return f"{column.label}: {'all ' if alike > 1 else f'{first.label} '}{first.number(column)}{unit}"
        also = f" (and {alike - 1} more)" if alike > 1 else ""
        if column.signed:
            said = f"from {first.said(column)}{unit}{also} to {last.said(column)}{unit}"
            return f"{column.label}, {direction(column)}: {said}"
        return f"{column.label}: best {first.said(column)}{unit}{also}, last {last.said(column)}{unit}"


def scaled(value: float, column: BoardColumn) -> float:
    """A value as drawn: fractions in per cent, all others as they are."""
    return 100.0 * float(value) if column.unit == "fraction" else float(value)


def label_models(board: Board, rows: Sequence[tuple[str, bool]], most: int = 30) -> list[str]:
    """Short names of (slug, blind), all different."""
    names: list[str] = distinct([_name(board, slug, blind) for slug, blind in rows], most)
    return names


def _name(board: Board, slug: str, blind: bool) -> str:
    name = str(board.models[slug].name) if slug in board.models else slug
    return f"{name} (blind)" if blind else name


def choose(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, most: int | None = None) -> Chosen:
    """The columns and models of ``plot``, at most ``most`` models.

    A column is looked up in the plot's own table, else in the benchmark's others; what no table has is left out.
    """
    tables = sorted(benchmark.tables, key=lambda table: table.name != plot.table)
    columns: dict[str, BoardColumn] = {}
    for table in tables:
        for column in table.columns:
            columns.setdefault(column.key, column)
    keys = (*plot.columns, *plot.against)
    rows: dict[tuple[str, bool], dict[str, Cell]] = {}
    for table in tables:
        for row in table.rows:
            cells = rows.setdefault((row.model, row.blind), {})
            for key, cell in row.cells.items():
                cells.setdefault(key, cell)
    valued = [one for one, cells in rows.items() if any(_has_value(cells, key) for key in keys)]
    places = {model: place for place, model in enumerate(_by_headline(benchmark))}
    valued.sort(key=lambda one: (places.get(one[0], len(places)), one[1]))
    drawn = valued[:most]
    labels = label_models(board, drawn, 26)
    order = sorted(rows, key=lambda one: (places.get(one[0], len(places)), one[1]))
    looks = _looks([order.index(one) for one in drawn])
    models = [Shown(label, style, rows[one]) for one, label, style in zip(drawn, labels, looks, strict=True)]
    # a pair of which one column is unknown is no pair
    pairs = [(columns.get(one), columns.get(other)) for one, other in zip(plot.columns, plot.against, strict=False)]
    whole = [(one, other) for one, other in pairs if one is not None and other is not None]
    return Chosen(
        columns=tuple(one for one, _ in whole)
        if plot.against
        else tuple(columns[key] for key in plot.columns if key in columns),
        against=tuple(other for _, other in whole),
        models=tuple(models),
        of=len(valued),
        apart=len(
            {(one.row.model, one.row.runs) for table in tables for one in table.apart if _touches(one.row, keys)}
        ),
    )


def _looks(places: Sequence[int]) -> list[Look]:
    """The look of each model by its place on the board; one whose look is taken has the first that is free."""
    taken: list[int] = []
    for place in places:
        free = [number for number in range(len(LOOKS)) if number not in taken] or [place % len(LOOKS)]
        taken.append(place if place in free else free[0])
    return [LOOKS[place] for place in taken]


def _by_headline(benchmark: BenchmarkBoard) -> Iterator[str]:
    for ranking in benchmark.rankings[:1]:
        yield from (one.model for one in ranking.ranked)


def _has_value(cells: Mapping[str, Cell], key: str) -> bool:
    cell = cells.get(key)
    return cell is not None and cell.value is not None


def _touches(row: BoardRow, keys: Sequence[str]) -> bool:
    return any(key in row.cells for key in keys)
