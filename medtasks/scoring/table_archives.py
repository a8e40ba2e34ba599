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
"""A metric, also reduced to a part."""


def archived(table: ItemTable) -> bytes:
    """The table as an archive, without what is only needed for scoring; columns have statistics
    and states.
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
    arrays = np.load(BytesIO(content))
    fields: dict[str, Any] = json.loads(arrays.zip.read(_FIELDS))
    metrics: list[str] = fields["columns"]
    part_keys: list[PartKey] = [(metric, part) for metric, part in fields["reduced"]]
    keys: list[ColumnKey] = [*metrics, *part_keys]
    number_of = {key: number for number, key in enumerate(keys)}

    def column(key: ColumnKey) -> MetricColumn:
        number = number_of[key]
        return MetricColumn(arrays[f"statistics {number}"], arrays[f"state {number}"])

    def reduced(key: PartKey) -> Reduced:
        return Reduced(arrays[f"rows {number_of[key]}"], column(key))

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
        columns=LazyMapping(metrics, column),
        reduced=LazyMapping(part_keys, reduced),
    )


def _as_tuples(rows: Sequence[Any]) -> tuple[Any, ...]:
    """Texts or lists of texts as tuples; equal ones are the same object, to save memory."""
    first_of: dict[Any, Any] = {}
    unique = []
    for row in rows:
        value = tuple(row) if isinstance(row, list) else row
        unique.append(first_of.setdefault(value, value))
    return shared_tuple(tuple(unique))
