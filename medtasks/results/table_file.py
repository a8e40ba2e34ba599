"""Cached tables: Parquet files in the user's cache, under a hash of everything that they depend on.

They are not kept in result directories, because a recipient could not tell whether a table was really computed from
the samples. A damaged entry counts as absent, and is built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.parquet as pq  # type: ignore[import-untyped]

import medtasks
from medtasks.catalog import task_packages
from medtasks.files import canonical_json, temporary_beside
from medtasks.prompts import template_folders
from medtasks.results.column import Column, Part
from medtasks.results.manifest import versions
from medtasks.results.table import TEXTS, ItemTable, PackedColumns, shared

_PARTS = ("*.py", "*.j2", "*.js", "*.css", "*.svg")
_STORED = ("statistics", "low", "high", "present", "failed", "pending", "awaiting", "judge", "repeats")


@dataclass(frozen=True)
class TableStore:
    """Sets of tables, each with some JSON, in ``folder``; without a directory nothing is cached."""

    folder: Path | None

    def read(self, key: str) -> tuple[Any, Mapping[str, ItemTable]] | None:
        """The entry for ``key``, whose tables are decoded on access; None if it is absent or damaged."""
        if self.folder is None:
            return None
        try:
            digest, _, text = (self.folder / key / "content.json").read_text(encoding="utf-8").partition("\n")
            if _sha256(text.encode()) != digest:
                return None
            kept = json.loads(text)
            files = {}
            for number, (name, expected) in enumerate(kept["tables"].items()):
                content = (self.folder / key / f"{number}.parquet").read_bytes()
                if _sha256(content) != expected:
                    return None
                files[name] = content
        except Exception:  # absent, or damaged in any way
            return None
        return kept["content"], _KeptTables(files)

    def write(self, key: str, content: Any, tables: Mapping[str, ItemTable]) -> None:
        """Cache ``tables`` and ``content``, which is plain JSON; does nothing if the directory cannot be written."""
        if self.folder is None:
            return
        files = {name: _parquet(table) for name, table in tables.items()}
        # keys are not sorted: metrics are shown in this order
        made = {"tables": {name: _sha256(data) for name, data in files.items()}, "content": content}
        text = json.dumps(made).encode()
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with temporary_beside(self.folder / key) as partial:
                with (partial / "content.json").open("wb") as stream:
                    stream.writelines([_sha256(text).encode(), b"\n", text])
                for number, data in enumerate(files.values()):
                    (partial / f"{number}.parquet").write_bytes(data)
                shutil.rmtree(self.folder / key, ignore_errors=True)  # damaged, or another process was first
                partial.rename(self.folder / key)


class _KeptTables(Mapping[str, ItemTable]):
    """Tables by name, each decoded when it is first needed: most commands show scores only."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        self._decoded: dict[str, ItemTable] = {}

    def __getitem__(self, name: str) -> ItemTable:
        if name not in self._decoded:
            self._decoded[name] = _table(pq.ParquetFile(pa.BufferReader(self._files[name])).read())
        return self._decoded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _parquet(table: ItemTable) -> bytes:
    stream = pa.BufferOutputStream()
    pq.write_table(_arrow(table), stream, compression="zstd")
    content: bytes = stream.getvalue().to_pybytes()
    return content


def code_hash(*further: Path) -> str:
    """A hash of everything that scores depend on except samples: versions, code, task files, rubrics and templates.

    ``further`` are directories with more code, pages and their assets: an editable install has some of ours outside the
    package's directory.
    """
    packages = task_packages()
    digest = hashlib.sha256(canonical_json([versions(), [one.owner for one in packages]]).encode())
    folders = [
        (Path(medtasks.__file__).parent, "*.py"),
        *((folder, "*.yaml") for package in packages for folder in (package.tasks.parent, package.rubrics)),
        *((folder, "*.j2") for folder in template_folders()),
        *((folder, pattern) for folder in further for pattern in _PARTS),
    ]
    for folder, pattern in folders:
        for path in sorted(folder.rglob(pattern)):
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _arrow(table: ItemTable) -> pa.Table:
    arrays: dict[str, Any] = {name: pa.array(getattr(table, name)) for name in TEXTS}
    arrays["complete"] = pa.array(table.complete)
    arrays["options"] = pa.array(table.options)
    arrays |= {f"group {name}": pa.array(keys, pa.list_(pa.string())) for name, keys in table.groups.items()}
    facts = {}
    for number, (metric, column) in enumerate(table.columns.items()):
        facts[metric] = _packed(f"{number}", column, arrays)
    header = {"metrics": table.metrics, "groups": list(table.groups), "columns": facts}
    return pa.table(arrays).replace_schema_metadata({"table": json.dumps(header)})


def _table(found: pa.Table) -> ItemTable:
    header = json.loads(found.schema.metadata[b"table"])
    texts = {name: _tuples(found[name].to_pylist()) for name in TEXTS}
    return ItemTable(
        metrics=tuple(header["metrics"]),
        **texts,
        complete=_array(found["complete"].combine_chunks()),
        options=_array(found["options"].combine_chunks()),
        groups={name: _tuples(found[f"group {name}"].to_pylist()) for name in header["groups"]},
        columns=PackedColumns(
            {
                metric: _column(found, f"{number}", facts)
                for number, (metric, facts) in enumerate(header["columns"].items())
            }
        ),
    )


def _tuples(rows: list[Any]) -> tuple[Any, ...]:
    """Lists as tuples; equal ones are the same object, to save memory."""
    seen: dict[Any, Any] = {}
    found = (tuple(row) if isinstance(row, list) else row for row in rows)
    return shared(tuple(seen.setdefault(row, row) for row in found))


def _packed(name: str, column: Column, arrays: dict[str, Any]) -> dict[str, Any]:
    """What the header says of a column; its arrays are added to ``arrays``, unless all items have the same row."""
    facts: dict[str, Any] = {"judges": column.judges, "arrays": {}, "parts": {}}
    for what in _STORED:
        array = getattr(column, what)
        if array is None:
            continue
        rows = array.reshape(len(array), math.prod(array.shape[1:]))
        constant = bool(len(rows)) and np.array_equal(rows, np.broadcast_to(rows[0], rows.shape), equal_nan=True)
        if not constant:
            flat = pa.array(np.ascontiguousarray(rows).ravel())
            listed = rows.shape[1] > 1
            arrays[f"{name} {what}"] = pa.FixedSizeListArray.from_arrays(flat, rows.shape[1]) if listed else flat
        row = rows[0].tolist() if constant else None
        facts["arrays"][what] = {"shape": array.shape[1:], "type": array.dtype.str, "row": row}
    for number, (key, part) in enumerate(column.parts.items()):
        facts["parts"][key] = _packed(f"{name}.{number}", part.spread(len(column.present)), arrays)
    return facts


def _array(array: pa.Array) -> npt.NDArray[Any]:
    """The numbers or truth values of an array without nulls. `to_numpy` would import pandas: a tenth of the time."""
    _, data = array.buffers()
    if array.type == pa.bool_():
        return np.unpackbits(np.frombuffer(data, np.uint8), count=len(array), bitorder="little").astype(bool)
    return np.frombuffer(data, array.type.to_pandas_dtype(), len(array))


def _column(found: pa.Table, name: str, facts: Mapping[str, Any]) -> Column:
    def stored(what: str) -> Any:
        if what not in facts["arrays"]:
            return None
        fact = facts["arrays"][what]
        shape = (found.num_rows, *fact["shape"])
        if fact["row"] is not None:
            return np.broadcast_to(np.array(fact["row"], fact["type"]).reshape(fact["shape"]), shape)
        array = found[f"{name} {what}"].combine_chunks()
        return _array(array.flatten() if pa.types.is_fixed_size_list(array.type) else array).reshape(shape)

    return Column(
        **{what: stored(what) for what in _STORED},
        judges=tuple(facts["judges"]),
        parts={
            key: _part(_column(found, f"{name}.{number}", part))
            for number, (key, part) in enumerate(facts["parts"].items())
        },
    )


def _part(column: Column) -> Part:
    rows = np.flatnonzero(column.present)
    return Part(rows, column.take(rows))
