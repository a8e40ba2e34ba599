"""Published figures of the benchmarks' papers, as data: the CSV file that a benchmark names (`Benchmark.figures`).

Each line is one printed figure: the paper's table and where it was found, the model as printed (``label``) and as the
board shows it (``model``), the heading (``column``), the figure as printed, and the task, metric and, for a breakdown,
the group that medtasks scores. An unreadable figure is empty, and its notes say why. ``notes`` are about the figure,
``row_notes`` about the model's row in the table; several notes are on lines of their own. A line without a table is
about all figures: ``note``, or ``gap`` for figures that the file lacks, and why.
"""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import DataError, UsageError, first_line
from medtasks.core.schema import Frozen, first_problem

from .board import BoardColumn, Published, PublishedCell, Trained

Text = Annotated[str, Field(min_length=1)]
OptionalText = Annotated[str | None, BeforeValidator(lambda text: text or None)]
Notes = Annotated[tuple[Text, ...], BeforeValidator(lambda text: tuple(text.splitlines()))]
Place = tuple[str, str, "str | None", "str | None"]
"""Task, metric, breakdown, group."""

_HIGHEST = {"fraction": 1, "percent": 100, "points": 100}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


class _Line(Frozen):
    table: Text
    source: Text
    paper: Text
    judge: OptionalText
    label: Text
    model: Text
    family: Text
    size: OptionalText
    type: Literal["closed", "general", "medical"]
    trained: Trained
    column: Text
    printed: OptionalText
    unit: Literal["fraction", "percent", "points", "score"]
    task: Text
    metric: Text
    breakdown: OptionalText
    group: OptionalText
    rankable: bool
    why: str
    notes: Notes
    row_notes: Notes

    @model_validator(mode="after")
    def _whole(self) -> _Line:
        if (self.breakdown is None) != (self.group is None):
            raise ValueError("has one of `breakdown` and `group`, expected both or neither")
        if self.why and self.rankable:
            raise ValueError("`why` is given, but the figure is rankable; remove it, or write no in `rankable`")
        if self.printed is None and not self.notes:
            raise ValueError("`printed` is empty; say why in `notes`")
        if self.printed is not None and not _NUMBER.fullmatch(self.printed):
            raise ValueError(f"`printed` is {self.printed!r}, expected a number, or nothing if it is unreadable")
        highest = _HIGHEST.get(self.unit)
        if self.printed is not None and highest is not None and not 0 <= Decimal(self.printed) <= highest:
            raise ValueError(f"`printed` is {self.printed}, expected 0 to {highest} ({self.unit})")
        return self

    @property
    def value(self) -> float | None:
        """The figure in the unit of our metric: a percentage becomes a fraction, all others stay."""
        if self.printed is None:
            return None
        return float(Decimal(self.printed) / 100 if self.unit == "percent" else Decimal(self.printed))


class ReferenceCell(PublishedCell):
    """One printed figure, and what medtasks scores as its counterpart."""

    task: str
    metric: str
    breakdown: str | None
    group: str | None


class ReferenceRow(Published):
    """One model's row in one table."""

    cells: tuple[ReferenceCell, ...]


class Reference(Frozen):
    """One benchmark's published rows, notes about all of them, and what is missing and why."""

    notes: tuple[str, ...]
    rows: tuple[ReferenceRow, ...]
    gaps: tuple[str, ...]


def read_reference(path: Path) -> Reference:
    """The published rows in the CSV file ``path``.

    Raises:
        DataError: the file is unreadable or breaks the format (names file, line and field).
    """
    about: dict[str, list[str]] = {"note": [], "gap": []}
    rows: dict[tuple[str, str], dict[str, _Line]] = {}
    try:
        with path.open(encoding="utf-8", newline="") as stream:
            reader = csv.DictReader(stream, strict=True)
            for fields in reader:
                place = f"{path}, line {reader.line_num}"
                if not fields.get("table") and fields.get("column") in about:
                    about[fields["column"]].append(": ".join(filter(None, (fields["notes"], fields["why"]))))
                    continue
                line = _read_line(place, fields)
                row = rows.setdefault((line.table, line.label), {})
                if line.column in row:
                    raise DataError(f"{place}: {line.table}, {line.label}, {line.column} is duplicated; remove it.")
                row[line.column] = line
    except (OSError, ValueError, csv.Error) as error:
        raise DataError(f"{path}: not a readable CSV file ({first_line(error)}); fix or restore it.") from error
    found = tuple(_row(list(row.values())) for row in rows.values())
    return Reference(notes=tuple(about["note"]), rows=found, gaps=tuple(about["gap"]))


def _read_line(place: str, fields: Mapping[Any, Any]) -> _Line:
    try:
        return _Line.model_validate(fields)
    except ValidationError as error:
        raise DataError(f"{place}: {first_problem(error, _Line)}; fix it.") from error


def _row(lines: list[_Line]) -> ReferenceRow:
    first, cells = lines[0], []
    for line in lines:
        fields = line.model_dump(include=ReferenceCell.model_fields.keys() - {"value"})
        cells.append(ReferenceCell(value=line.value, **fields))
    notes = dict.fromkeys(note for line in lines for note in line.row_notes)
    fields = first.model_dump(include=ReferenceRow.model_fields.keys() - {"cells", "notes"})
    return ReferenceRow(cells=tuple(cells), notes=tuple(notes), **fields)


@functools.cache
def load_reference(benchmark: str) -> Reference:
    """The published figures of ``benchmark``.

    Raises:
        UsageError: there is no such benchmark, or nothing is published for it.
        DataError: as :func:`read_reference`.
    """
    path = get_benchmark(benchmark).figures
    if path is None:
        raise UsageError(f"benchmark {benchmark!r} has no published figures here.")
    return read_reference(path)


def place_of(column: BoardColumn | ReferenceCell) -> Place:
    """The `Place` of a column or a published figure."""
    return column.task, column.metric, column.breakdown, column.group


def published_rows(reference: Reference, keys: Mapping[Place, str]) -> tuple[Published, ...]:
    """The published rows; figures name the board's column if ``keys`` has one, otherwise the paper's own heading."""
    fields = PublishedCell.model_fields.keys() - {"column"}
    return tuple(
        Published(
            **row.model_dump(exclude={"cells"}),
            cells=tuple(
                PublishedCell(column=keys.get(place_of(cell), cell.column), **cell.model_dump(include=fields))
                for cell in row.cells
            ),
        )
        for row in reference.rows
    )
