"""Published figures of the benchmarks' papers, as data: the YAML file that a benchmark names (`Benchmark.figures`).

A file has each table as printed, one line per printed row, label first. ``null`` is a cell that cannot be read with
certainty; ``cell_notes`` says why. Each figure is mapped to the task, metric and, for a breakdown, the group that
medtasks scores. Most tables have models as rows, and ``columns`` says what was scored. In a table with one column per
model, ``models_across`` lists its headings, and ``rows_are`` says what its rows scored.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from medtasks.catalog.registry import get_benchmark
from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import Frozen, first_problem

from .board import BoardColumn, Published, PublishedCell, Trained
from .yaml_texts import load_texts

Text = Annotated[str, Field(min_length=1)]
Notes = tuple[Text, ...]
Unit = Literal["fraction", "percent", "points", "score"]
Place = tuple[str, str, "str | None", "str | None"]
"""Task, metric, breakdown, group."""

_HIGHEST = {"fraction": 1, "percent": 100, "points": 100}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


class Paper(Frozen):
    """Where the figures of a file were published."""

    title: Text
    arxiv: Text
    year: int


class Gap(Frozen):
    """Published figures that the file lacks, and why."""

    what: Text
    why: Text


class ReferenceCell(PublishedCell):
    """One printed figure, and its counterpart in medtasks.

    ``breakdown`` and ``group`` name the part of the task's rows that was scored, such as ``question_class`` and
    ``polyp_type``; both are None for all rows. ``rankable`` is False for figures that are not comparable with ours.
    """

    task: str
    metric: str
    breakdown: str | None
    group: str | None


class ReferenceRow(Published):
    """One model's row in one table; ``label`` is the model as printed, ``model`` as the board shows it.

    ``judge`` is the model that gave the judged columns. ``notes`` are the table's, then the model's.
    """

    cells: tuple[ReferenceCell, ...]


class Reference(Frozen):
    """One benchmark's published rows, notes about all of them, and what is missing."""

    notes: Notes
    rows: tuple[ReferenceRow, ...]
    gaps: tuple[Gap, ...]


class _Model(Frozen):
    name: Text
    printed_as: tuple[Text, ...] = ()
    family: Text
    size: str | None = None
    type: Literal["closed", "general", "medical"]
    trained_on_benchmark: Trained
    notes: Notes = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return self.printed_as or (self.name,)


class _Scored(Frozen):
    task: Text
    metric: Text
    unit: Unit
    breakdown: str | None = None
    group: str | None = None
    rankable: bool = True
    why: str = ""
    notes: Notes = ()

    @model_validator(mode="after")
    def _reason_without_rank(self) -> _Scored:
        if self.why and self.rankable:
            raise ValueError(
                f"`why` is {self.why[:60]!r}, but the figures are rankable; remove it or set rankable: false"
            )
        return self


class _Column(_Scored):
    name: Text

    @model_validator(mode="after")
    def _whole(self) -> _Column:
        if (self.breakdown is None) != (self.group is None):
            raise ValueError(f"column {self.name!r} has one of `breakdown` and `group`, expected both or neither")
        return self


class _RowsAre(_Scored):
    breakdown: Text
    group: None = None


class _CellNote(Frozen):
    row: Text
    column: Text
    note: Text


class _Table(Frozen):
    name: Text
    source: Text
    judge: str | None = None
    notes: Notes = ()
    columns: tuple[_Column, ...] = ()
    models_across: tuple[Text, ...] = ()
    rows_are: _RowsAre | None = None
    rows: Annotated[tuple[Annotated[tuple[str | None, ...], Field(min_length=1)], ...], Field(min_length=1)]
    cell_notes: tuple[_CellNote, ...] = ()

    @property
    def headings(self) -> tuple[str, ...]:
        return self.models_across or tuple(column.name for column in self.columns)

    @property
    def row_labels(self) -> tuple[str, ...]:
        return tuple(row[0] or "" for row in self.rows)

    @model_validator(mode="after")
    def _one_layout(self) -> _Table:
        if bool(self.columns) == bool(self.models_across) or bool(self.models_across) != bool(self.rows_are):
            raise ValueError(
                f"table {self.name!r} must have either `columns`, or both of `models_across` and `rows_are`"
            )
        _once(f"table {self.name!r}: column", self.headings)
        _once(f"table {self.name!r}: row", self.row_labels)
        for row in self.rows:
            if len(row) != len(self.headings) + 1 or not row[0]:
                expected = f"a label and {len(self.headings)} figures (null if unreadable)"
                raise ValueError(f"table {self.name!r}, row {row[0]!r} has {len(row)} cells, expected {expected}")
        return self

    @model_validator(mode="after")
    def _noted(self) -> _Table:
        noted = {(entry.row, entry.column) for entry in self.cell_notes}
        if unknown := sorted(noted - {*product(self.row_labels, self.headings)}):
            raise ValueError(f"table {self.name!r}: `cell_notes` names {unknown[0]}, which is not in the table")
        for label, row in zip(self.row_labels, self.rows, strict=True):
            for heading, figure in zip(self.headings, row[1:], strict=True):
                if figure is None and (label, heading) not in noted:
                    place = f"row {label!r}, column {heading!r}"
                    raise ValueError(f"table {self.name!r}, {place} is null; say why in `cell_notes`")
        return self


class _File(Frozen):
    benchmark: Text
    paper: Paper
    models: tuple[_Model, ...]
    notes: Notes = ()
    tables: Annotated[tuple[_Table, ...], Field(min_length=1)]
    gaps: tuple[Gap, ...] = ()

    @model_validator(mode="after")
    def _models_of_tables(self) -> _File:
        _once("table", [table.name for table in self.tables])
        _once("model", [model.name for model in self.models])
        labels = [label for model in self.models for label in model.labels]
        _once("model label", labels)
        printed = [label for table in self.tables for label in (table.models_across or table.row_labels)]
        if odd := sorted(set(labels) ^ set(printed)):
            raise ValueError(f"{odd[0]!r} is not both in a table and in `models` (as name or in `printed_as`)")
        return self


def _once(what: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what} {name!r} is duplicated, expected once")


def _value(place: str, unit: Unit, text: str | None) -> float | None:
    """The figure in the unit of our metric: a percentage becomes a fraction, all others stay."""
    if text is None:
        return None
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{place} is {text!r}, expected a plain number or null")
    number = Decimal(text)
    if unit in _HIGHEST and not 0 <= number <= _HIGHEST[unit]:
        raise ValueError(f"{place} is {text}, expected 0 to {_HIGHEST[unit]} ({unit})")
    return float(number / 100 if unit == "percent" else number)


def _cells(table: _Table) -> Iterator[tuple[str, ReferenceCell]]:
    """Every cell with the label of its model, in printed order."""
    cell_notes = {(entry.row, entry.column): (entry.note,) for entry in table.cell_notes}
    columns = {column.name: column for column in table.columns}
    for label, row in zip(table.row_labels, table.rows, strict=True):
        for heading, text in zip(table.headings, row[1:], strict=True):
            model, name = (label, heading) if table.rows_are is None else (heading, label)
            scored = table.rows_are or columns[heading]
            yield (
                model,
                ReferenceCell(
                    column=name,
                    printed=text,
                    value=_value(f"table {table.name!r}, row {label!r}, column {heading!r}", scored.unit, text),
                    rankable=scored.rankable,
                    why=scored.why,
                    notes=scored.notes + cell_notes.get((label, heading), ()),
                    task=scored.task,
                    metric=scored.metric,
                    breakdown=scored.breakdown,
                    group=scored.group if table.rows_are is None else label,
                ),
            )


def _reference_rows(content: _File) -> Iterator[ReferenceRow]:
    models = {label: model for model in content.models for label in model.labels}
    for table in content.tables:
        gathered: dict[str, list[ReferenceCell]] = {}
        for label, cell in _cells(table):
            gathered.setdefault(label, []).append(cell)
        for label, cells in gathered.items():
            model = models[label]
            yield ReferenceRow(
                table=table.name,
                source=table.source,
                paper=f"arXiv {content.paper.arxiv}",
                label=label,
                model=model.name,
                family=model.family,
                size=model.size,
                type=model.type,
                trained=model.trained_on_benchmark,
                judge=table.judge,
                cells=tuple(cells),
                notes=table.notes + model.notes,
            )


def read_reference(path: Path, benchmark: str) -> Reference:
    """The published rows of ``benchmark`` in the YAML file ``path``.

    Raises:
        DataError: the file is unreadable or breaks the format (names file and field, and table, row and column).
    """
    try:
        content = _File.model_validate(load_texts(path))
        rows = tuple(_reference_rows(content))
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; fix it.") from error
    except ValueError as error:
        raise DataError(f"{path}: field `tables`: {error}.") from error
    if content.benchmark != benchmark:
        raise DataError(f"{path}: field `benchmark` is {content.benchmark!r}, expected {benchmark!r}; fix it.")
    return Reference(notes=content.notes, rows=rows, gaps=content.gaps)


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
    return read_reference(path, benchmark)


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
