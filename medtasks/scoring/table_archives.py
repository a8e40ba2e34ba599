"""An item table as a NumPy archive, whose columns are decompressed on each access."""

from __future__ import annotations

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any, TypeAlias
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import numpy as np
import numpy.typing as npt

from medtasks.catalog.registry import get_benchmark
from medtasks.scoring.columns import MetricColumn, PartKey, Reduced
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.table_memory import LazyMapping, shared_tuple

_FIELDS = "fields.json"

ColumnKey: TypeAlias = "str | PartKey"
"""Key of a column: a metric, or a metric and the part that it is reduced to."""


def archived(table: ItemTable) -> bytes:
    """The table as an archive, without what only scoring needs; of a column it has statistics and
    states.
    """
    fields = {
        "benchmark": table.benchmark.name,
        "metrics": table.metrics,
        "breakdowns": table.breakdowns,
        "complete": int(np.count_nonzero(table.complete)),  # the others are the last ones
        "items": table.items,
        "tasks": table.tasks,
        "clusters": table.clusters,
        "samples": table.samples,
        "groups": table.groups,
        "columns": [*table.columns],
        "reduced": [*table.reduced],
    }
    stream = BytesIO()
    with ZipFile(stream, "w") as archive:
        _write(archive, _FIELDS, json.dumps(fields).encode())
        for number, column in enumerate(table.columns.values()):
            _write_column(archive, number, column)
        for number, reduced in enumerate(table.reduced.values(), len(table.columns)):
            _write_column(archive, number, reduced.column)
            _write_array(archive, f"rows {number}", reduced.rows)
    return stream.getvalue()


def _write_column(archive: ZipFile, number: int, column: MetricColumn) -> None:
    _write_array(archive, f"statistics {number}", column.statistics)
    _write_array(archive, f"state {number}", column.state)


def _write_array(archive: ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    file = BytesIO()
    np.save(file, array)
    _write(archive, f"{name}.npy", file.getvalue())


def _write(archive: ZipFile, name: str, content: bytes) -> None:
    # level 1 is four times as fast as `np.savez_compressed`
    archive.writestr(ZipInfo(name), content, ZIP_DEFLATED, compresslevel=1)


def table_from_archive(content: bytes) -> ItemTable:
    """The table in an archive of :func:`archived`."""
    archive = _ReadArchive(content)
    fields = archive.fields
    return ItemTable(
        get_benchmark(fields["benchmark"]),
        metrics=tuple(fields["metrics"]),
        breakdowns=tuple(fields["breakdowns"]),
        complete=np.arange(len(fields["items"])) < fields["complete"],
        items=_as_tuples(fields["items"]),
        tasks=_as_tuples(fields["tasks"]),
        clusters=_as_tuples(fields["clusters"]),
        samples=_as_tuples(fields["samples"]),
        groups={name: _as_tuples(keys) for name, keys in fields["groups"].items()},
        columns=LazyMapping(archive.metrics, archive.column),
        reduced=LazyMapping(archive.part_keys, archive.reduced),
    )


class _ReadArchive:
    """The fields of an archive of :func:`archived`, and its columns, decompressed on each call."""

    def __init__(self, content: bytes) -> None:
        self._arrays = np.load(BytesIO(content))
        self.fields: dict[str, Any] = json.loads(self._arrays.zip.read(_FIELDS))
        self.metrics: list[str] = self.fields["columns"]
        self.part_keys: list[PartKey] = [(metric, part) for metric, part in self.fields["reduced"]]
        keys: list[ColumnKey] = [*self.metrics, *self.part_keys]
        self._number_of = {key: number for number, key in enumerate(keys)}

    def column(self, key: ColumnKey) -> MetricColumn:
        """The column of a metric, or the column that it is reduced to for a part."""
        number = self._number_of[key]
        return MetricColumn(self._arrays[f"statistics {number}"], self._arrays[f"state {number}"])

    def reduced(self, key: PartKey) -> Reduced:
        """How a metric counts in the group of a part."""
        return Reduced(self._arrays[f"rows {self._number_of[key]}"], self.column(key))


def _as_tuples(rows: Sequence[Any]) -> tuple[Any, ...]:
    """Texts or lists of texts as tuples; equal ones are the same object, to save memory."""
    first_of: dict[Any, Any] = {}
    unique = []
    for row in rows:
        value = tuple(row) if isinstance(row, list) else row
        unique.append(first_of.setdefault(value, value))
    return shared_tuple(tuple(unique))
