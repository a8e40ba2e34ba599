"""Published figures of the benchmarks' papers, as data: the YAML file that a benchmark names (`Benchmark.figures`).

A file holds each table as printed, one line a printed row, its label first; ``null`` is a cell that cannot be read with
certainty, and says why in ``cell_notes``. Each figure is mapped to the task, metric and, where it is a breakdown, the
group that medtasks scores. Most tables have models for rows and ``columns`` that say what was scored. Where a table has
its models side by side, ``models_across`` lists its headings, and ``rows_are`` says what its rows scored.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from medtasks.errors import DataError, UsageError
from medtasks.registry import all_benchmarks
from medtasks.schema import first_problem

Text = Annotated[str, Field(min_length=1)]
Notes = tuple[Text, ...]
Unit = Literal["fraction", "percent", "points", "score"]
Trained = Literal["yes", "no", "unknown"]
Kind = Literal["closed", "general", "medical"]

_BOUNDS: dict[str, tuple[int, int]] = {"fraction": (0, 1), "percent": (0, 100), "points": (0, 100)}
_NUMBER = re.compile(r"-?\d+(\.\d+)?")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Paper(_Frozen):
    """Where the figures of a file were published."""

    title: Text
    arxiv: Text
    year: int


class Gap(_Frozen):
    """Published figures that are not held here, and why."""

    what: Text
    why: Text


class _Scored(_Frozen):
    task: Text
    metric: Text
    unit: Unit
    breakdown: str | None = None
    group: str | None = None
    rankable: bool = True
    notes: Notes = ()


class ReferenceCell(_Scored):
    """One printed figure, and what in medtasks it corresponds to.

    ``breakdown`` and ``group`` name the part of the task's rows that was scored, such as ``question_class`` and
    ``polyp_type``; both are None for all of them. ``rankable`` is False where the figure must not stand in one
    ranking with ours.
    """

    column: Text
    printed: Decimal | None

    @property
    def value(self) -> float | None:
        """The figure in the unit of the metric here: a percentage becomes 0..1, all others stay; None if unreadable."""
        if self.printed is None:
            return None
        return float(self.printed / 100 if self.unit == "percent" else self.printed)


class ReferenceRow(_Frozen):
    """What one table prints for one model; ``label`` is the model as the table has it, ``model`` as the board shows it.

    ``judge`` is the model that gave the judged columns. ``notes`` are the table's, then the model's.
    """

    benchmark: Text
    paper: Paper
    table: Text
    source: Text
    judge: str | None
    label: Text
    model: Text
    family: Text
    size: str | None
    type: Kind
    trained_on_benchmark: Trained
    cells: tuple[ReferenceCell, ...]
    notes: Notes


class Reference(_Frozen):
    """One benchmark's published rows, with what is not held and what holds of all of them."""

    benchmark: Text
    paper: Paper
    notes: Notes
    rows: tuple[ReferenceRow, ...]
    gaps: tuple[Gap, ...]


class _Model(_Frozen):
    name: Text
    printed_as: tuple[Text, ...] = ()
    family: Text
    size: str | None = None
    type: Kind
    trained_on_benchmark: Trained
    notes: Notes = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return self.printed_as or (self.name,)


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


class _CellNote(_Frozen):
    row: Text
    column: Text
    note: Text


class _Table(_Frozen):
    name: Text
    source: Text
    judge: str | None = None
    notes: Notes = ()
    columns: tuple[_Column, ...] = ()
    models_across: tuple[Text, ...] = ()
    rows_are: _RowsAre | None = None
    rows: Annotated[tuple[tuple[str | None, ...], ...], Field(min_length=1)]
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
        return self

    @model_validator(mode="after")
    def _each_cell_once(self) -> _Table:
        _once(f"table {self.name!r}: column", self.headings)
        _once(f"table {self.name!r}: row", self.row_labels)
        for row in self.rows:
            if not row or not row[0]:
                raise ValueError(f"table {self.name!r} has a row without a label, expected the label first")
            if len(row) != len(self.headings) + 1:
                found = f"{len(row) - 1} figures, expected {len(self.headings)}"
                raise ValueError(f"table {self.name!r}, row {row[0]!r} has {found}, one a column (null if unreadable)")
        return self

    @model_validator(mode="after")
    def _noted(self) -> _Table:
        cells = set(product(self.row_labels, self.headings))
        noted = [(entry.row, entry.column) for entry in self.cell_notes]
        if unknown := sorted(set(noted) - cells):
            raise ValueError(f"table {self.name!r}: `cell_notes` names {unknown[0]}, which is no row and column of it")
        for row in self.rows:
            for heading, figure in zip(self.headings, row[1:], strict=True):
                if figure is None and (row[0], heading) not in noted:
                    place = f"row {row[0]!r}, column {heading!r}"
                    raise ValueError(f"table {self.name!r}, {place} is null; say why in `cell_notes`")
        return self


class _File(_Frozen):
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


def _once(what: str, names: list[str] | tuple[str, ...]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what} {name!r} occurs {names.count(name)} times, expected once")


class _Loader(yaml.SafeLoader):
    """YAML whose scalars stay text (``0.530`` keeps its digits, ``no`` is no boolean) and whose keys occur once."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own attribute
        first: [(tag, pattern) for tag, pattern in resolvers if tag == "tag:yaml.org,2002:null"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if repeated := sorted(str(key) for key in keys if keys.count(key) > 1):
            raise yaml.constructor.ConstructorError(None, None, f"key {repeated[0]!r} twice", node.start_mark)
        return super().construct_mapping(node, deep)


def _figure(table: _Table, row: str, column: str, unit: Unit, text: str | None) -> Decimal | None:
    if text is None:
        return None
    place = f"table {table.name!r}, row {row!r}, column {column!r}"
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"{place} is {text!r}, expected a plain number or null")
    low, high = _BOUNDS.get(unit, (None, None))
    number = Decimal(text)
    if low is not None and high is not None and not low <= number <= high:
        raise ValueError(f"{place} is {text}, expected {low} to {high} ({unit})")
    return number


def _cells(table: _Table) -> Iterator[tuple[str, ReferenceCell]]:
    """Every cell with the label of its model, in the order of print."""
    cell_notes = {(entry.row, entry.column): (entry.note,) for entry in table.cell_notes}
    columns = {column.name: column for column in table.columns}
    for row in table.rows:
        label = row[0] or ""
        for heading, text in zip(table.headings, row[1:], strict=True):
            if table.rows_are is None:
                model, column = label, columns[heading]
            else:
                model, column = heading, _Column(name=label, **{**table.rows_are.model_dump(), "group": label})
            described = column.model_dump(exclude={"name", "notes"})
            printed = _figure(table, label, heading, column.unit, text)
            notes = column.notes + cell_notes.get((label, heading), ())
            yield model, ReferenceCell(column=column.name, printed=printed, notes=notes, **described)


def _rows(content: _File) -> Iterator[ReferenceRow]:
    models = {label: model for model in content.models for label in model.labels}
    for table in content.tables:
        gathered: dict[str, list[ReferenceCell]] = {}
        for label, cell in _cells(table):
            gathered.setdefault(label, []).append(cell)
        for label, cells in gathered.items():
            model = models[label]
            yield ReferenceRow(
                benchmark=content.benchmark,
                paper=content.paper,
                table=table.name,
                source=table.source,
                judge=table.judge,
                label=label,
                model=model.name,
                family=model.family,
                size=model.size,
                type=model.type,
                trained_on_benchmark=model.trained_on_benchmark,
                cells=tuple(cells),
                notes=table.notes + model.notes,
            )


def read_reference(path: Path, benchmark: str) -> Reference:
    """The published rows of ``benchmark`` in the YAML file ``path``.

    Raises:
        DataError: the file is unreadable or breaks the format (names file and field, and table, row and column).
    """
    try:
        loaded = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
        content = _File.model_validate(loaded)
        rows = tuple(_rows(content))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise DataError(f"{path}: not a readable YAML file ({error}); fix or restore it.") from error
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; fix it.") from error
    except ValueError as error:
        raise DataError(f"{path}: field `tables`: {error}.") from error
    if content.benchmark != benchmark:
        raise DataError(f"{path}: field `benchmark` is {content.benchmark!r}, expected {benchmark!r}; fix it.")
    return Reference(
        benchmark=content.benchmark, paper=content.paper, notes=content.notes, rows=rows, gaps=content.gaps
    )


def reference_benchmarks() -> tuple[str, ...]:
    """The benchmarks with published figures, sorted."""
    return tuple(sorted(_files()))


@functools.cache
def load_reference(benchmark: str) -> Reference:
    """The published figures of ``benchmark``.

    Raises:
        UsageError: there are none for that benchmark.
        DataError: as :func:`read_reference`.
    """
    files = _files()
    if benchmark not in files:
        known = ", ".join(sorted(files))
        raise UsageError(f"benchmark {benchmark!r} has no published figures here; choose from {known}.")
    return read_reference(files[benchmark], benchmark)


def reference_rows(benchmark: str) -> tuple[ReferenceRow, ...]:
    """The published rows of ``benchmark``, one per table and model, in the order of print.

    Raises:
        UsageError, DataError: as :func:`load_reference`.
    """
    return load_reference(benchmark).rows


def _files() -> dict[str, Path]:
    return {name: one.figures for name, one in all_benchmarks().items() if one.figures is not None}
