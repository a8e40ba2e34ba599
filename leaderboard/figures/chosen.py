"""What a figure shows: its columns, the models with a value in one of them, and their cells."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..board.board import BenchmarkBoard, Board, BoardColumn, BoardPlot, Cell
from ..board.numbers import UNITS, direction, shown, shown_interval, shown_name
from .looks import LOOKS, Look, distinct, listed


@dataclass(frozen=True)
class Shown:
    """A model in a figure; ``label`` is its name, shortened, ``look`` the same in all figures of a benchmark if
    possible."""

    label: str
    look: Look
    cells: Mapping[str, Cell]

    def value(self, column: BoardColumn) -> float | None:
        """Its value as drawn (`scaled`)."""
        cell = self.cells.get(column.key)
        return None if cell is None or cell.value is None else scaled(cell.value, column)

    def ends(self, column: BoardColumn) -> tuple[float, float] | None:
        cell = self.cells.get(column.key)
        if cell is None or cell.low is None or cell.high is None:
            return None
        return scaled(cell.low, column), scaled(cell.high, column)

    def number(self, column: BoardColumn) -> str:
        """Its value as text, with a star if incomplete; empty without one."""
        cell = self.cells.get(column.key)
        return "" if cell is None or cell.value is None else shown(cell.value, column.unit) + "*" * cell.incomplete

    def complete(self, column: BoardColumn) -> float | None:
        """Its value if that is complete and so competes with the others'."""
        cell = self.cells.get(column.key)
        return None if cell is None or cell.incomplete else self.value(column)

    def described(self, column: BoardColumn) -> str:
        """Its number in words: ``Model 61.3 (58.1, 64.4)``."""
        ends = shown_interval(self.cells[column.key], column.unit)
        return f"{self.label} {self.number(column)}" + (f" ({ends})" if ends else "")


@dataclass(frozen=True)
class Chosen:
    """The models that are drawn, best by the first headline first; ``of`` is how many have a value here. ``apart``
    counts rows that are not comparable; ``signed`` are labels of columns left out of a figure about order."""

    columns: tuple[BoardColumn, ...]
    against: tuple[BoardColumn, ...]
    models: tuple[Shown, ...]
    of: int
    apart: int
    signed: tuple[str, ...] = ()

    @property
    def extent(self) -> str:
        """``8 of 31 models``; empty if all are shown."""
        return f"{len(self.models)} of {self.of} models" if len(self.models) < self.of else ""

    @property
    def _pairs(self) -> list[tuple[BoardColumn, Shown]]:
        return [(column, one) for column in (*self.columns, *self.against) for one in self.models]

    @property
    def incomplete(self) -> bool:
        return any(one.value(column) is not None and one.complete(column) is None for column, one in self._pairs)

    def omissions(self) -> str:
        """Sentences about what is not drawn: missing values, rows that are not comparable, signed columns."""
        absent = [f"{one.label} in {column.label}" for column, one in self._pairs if one.value(column) is None]
        text = f" Without a value: {listed(absent)}." if absent else ""
        if self.apart:
            text += f" {self.apart} {'row is' if self.apart == 1 else 'rows are'} not comparable and not drawn."
        return f"{text} Not drawn, since 0 is best: {listed(self.signed)}." if self.signed else text

    def in_order(self) -> Chosen:
        """Without signed columns, which do not order models."""
        return replace(
            self,
            columns=tuple(column for column in self.columns if not column.signed),
            signed=tuple(column.label for column in self.columns if column.signed),
        )

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


def _labels(board: Board, rows: Sequence[tuple[str, bool]], most: int) -> list[str]:
    """Distinct short names of (slug, blind)."""
    return distinct([shown_name(board, slug, blind) for slug, blind in rows], most)


def _places(benchmark: BenchmarkBoard) -> dict[str, int]:
    """Places of the models in the first headline ranking."""
    return {one.model: place for ranking in benchmark.rankings[:1] for place, one in enumerate(ranking.ranked)}


def labelled_best(board: Board, benchmark: BenchmarkBoard, models: Collection[str], most: int) -> dict[str, str]:
    """Labels of ``most`` characters by model, in the order of the first headline ranking, then by slug."""
    places = _places(benchmark)
    order = sorted(models, key=lambda model: (places.get(model, len(places)), model))
    return dict(zip(order, _labels(board, [(model, False) for model in order], most), strict=True))


def plotted_tasks(benchmark: BenchmarkBoard, plot: BoardPlot) -> list[str]:
    columns = {column.key: column.task for table in benchmark.tables for column in table.columns}
    return list(dict.fromkeys(columns[key] for key in plot.columns if key in columns))


def choose(board: Board, benchmark: BenchmarkBoard, plot: BoardPlot, most: int | None = None) -> Chosen:
    """The columns and models of ``plot``, at most ``most`` models.

    A column is looked up in the plot's own table first, then in the benchmark's others; unknown ones are left out.
    """
    tables = sorted(benchmark.tables, key=lambda table: table.name != plot.table)
    columns = {column.key: column for table in reversed(tables) for column in table.columns}
    rows: dict[tuple[str, bool], dict[str, Cell]] = {}
    for row in (row for table in tables for row in table.rows):
        cells = rows.setdefault((row.model, row.blind), {})
        cells |= {**row.cells, **cells}
    places = _places(benchmark)
    order = sorted(rows, key=lambda one: (places.get(one[0], len(places)), one[1]))
    keys = {*plot.columns, *plot.against}
    valued = [one for one in order if any(cell.value is not None and key in keys for key, cell in rows[one].items())]
    drawn = valued[:most]
    looks = _looks([order.index(one) for one in drawn])
    labels = _labels(board, drawn, 26)
    pairs = list(zip(plot.columns, plot.against or plot.columns, strict=False))
    pairs = [(one, other) for one, other in pairs if one in columns and other in columns]
    apart = {(one.row.model, one.row.runs) for table in tables for one in table.apart if keys & one.row.cells.keys()}
    return Chosen(
        columns=tuple(columns[one] for one, _ in pairs),
        against=tuple(columns[other] for _, other in pairs) if plot.against else (),
        models=tuple(Shown(label, look, rows[one]) for one, label, look in zip(drawn, labels, looks, strict=True)),
        of=len(valued),
        apart=len(apart),
    )


def _looks(places: Collection[int]) -> list[Look]:
    """The look of each model by its place on the board, or the first free one if that is taken."""
    taken: list[int] = []
    for place in places:
        free = [number for number in range(len(LOOKS)) if number not in taken] or [place % len(LOOKS)]
        taken.append(place if place in free else free[0])
    return [LOOKS[place] for place in taken]
