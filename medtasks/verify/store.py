"""Kept tables and scored runs: archives of Arrow files in the user's cache, under a hash of everything that they depend
on.

They are not kept in result directories, because a recipient could not tell whether a table was really computed from
the samples. A damaged entry counts as absent, and is built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import numpy.typing as npt
import pyarrow as pa  # type: ignore[import-untyped]
from pydantic import TypeAdapter

import medtasks
from medtasks.catalog.contents import task_packages
from medtasks.catalog.prompts import overlay
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_specs
from medtasks.core.cache import cache_root
from medtasks.core.files import canonical_json, replaced
from medtasks.data.prepared import data_root, is_mini
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import versions
from medtasks.runs.record import RunRecord, contents_hash
from medtasks.runs.table import Column, ItemTable, Lazy, RunTables, shared

_CODE = (".py", ".yaml", ".j2", ".js", ".css", ".svg")
_RUNS = TypeAdapter(RunRecord)
Contains = Callable[[], tuple[Collection[str], Mapping[str, bool]]]
"""Gives the names of the tasks of a run, and by benchmark whose data it names whether they are miniature data."""


@dataclass(frozen=True)
class TableStore:
    """Sets of tables, each with some JSON, in ``folder``; without a directory nothing is cached."""

    folder: Path | None

    def read(self, key: str) -> tuple[Any, Mapping[str, ItemTable]] | None:
        """The entry for ``key``, whose columns are decoded on access; None if it is absent or damaged."""
        if self.folder is None:
            return None
        try:
            with ZipFile(self.folder / f"{key}.zip") as archive:  # which has checksums
                content, names = json.loads(archive.read("content.json"))
                return content, {name: _table(archive.read(f"{name}.arrow")) for name in names}
        except Exception:  # absent, or damaged in any way
            return None

    def write(self, key: str, content: Any, tables: Mapping[str, ItemTable]) -> None:
        """Cache ``tables`` and ``content``, which is plain JSON; does nothing if the directory cannot be written."""
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replaced(self.folder / f"{key}.zip") as partial, ZipFile(partial, "w") as archive:
                # keys are not sorted: metrics are shown in this order
                archive.writestr("content.json", json.dumps([content, [*tables]]))
                for name, table in tables.items():
                    archive.writestr(f"{name}.arrow", _file(table))

    def keep_newest(self, count: int) -> None:
        """Remove all but the newest ``count`` entries."""
        if self.folder is not None:
            for path in sorted(self.folder.glob("*.zip"), key=lambda path: path.stat().st_mtime_ns)[:-count]:
                path.unlink(missing_ok=True)


def code_hash(*further: Path) -> str:
    """A hash of everything that scores depend on except samples: versions, code, task files, rubrics and templates.

    ``further`` are directories with more code, pages and their assets: an editable install has some of ours outside the
    package's directory.
    """
    packages = task_packages()
    digest = hashlib.sha256(canonical_json([versions(), [one.owner for one in packages]]).encode())
    ours = Path(medtasks.__file__).parent
    theirs = [folder for package in packages for folder in (package.tasks.parent, package.rubrics, package.templates)]
    for folder in dict.fromkeys((*overlay(), ours, *theirs, *further)):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _CODE:
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class RunStore(TableStore):
    """Scored runs.

    The key of a run is a hash of its content, of all code, task files and rubrics, of the metrics' signatures and of
    what keeps them from being computed here, and of the prepared data.
    """

    @cached_property
    def _rules(self) -> str:
        return code_hash()

    def key(self, *texts: str) -> str:
        """A hash of the texts and of all that scores depend on except results."""
        return hashlib.sha256("\0".join((self._rules, *texts)).encode("utf-8", "surrogatepass")).hexdigest()

    def key_of(self, content: str, contains: Contains) -> str:
        """The key of a run, from a hash of everything in it that scores depend on; empty if nothing is kept."""
        if self.folder is None:
            return ""
        tasks, miniature = contains()
        specs = [spec for name, spec in load_specs().items() if spec.kind == "task" and name in tasks]
        metrics = {name: get_metric(name) for spec in specs for name in (*spec.scores, *spec.metadata.learned)}
        state = {name: (one.signature, one.unavailable()) for name, one in sorted(metrics.items())}
        names = sorted({*miniature, *(one.metadata.benchmark for one in specs)})
        data = dict.fromkeys(names, "mini")  # made from the code
        for name in names:
            if not is_mini() and not miniature.get(name):
                path = data_root() / name / "manifest.json"
                known = path.parent.parent == data_root() and path.is_file()
                data[name] = contents_hash({path.name: path}) if known else ""
        return self.key(content, canonical_json([state, data]))

    def knows(self, key: str) -> bool:
        """Whether there is an entry for the board, if it is not damaged."""
        return self.folder is not None and any((self.folder / f"{key}{end}.zip").is_file() for end in ("", "submitted"))

    def read_run(self, key: str, *, own: bool) -> RunRecord | None:
        """The run that was kept under the key, as it is scored with ``own``; None if there is none."""
        for mode in ("", "own" if own else "submitted"):
            if (found := self.read(f"{key}{mode}")) is not None:
                kept, tables = found
                return replace(_RUNS.validate_python({**kept, "samples": {}}), made=RunTables({}, tables))
        return None

    def keep(self, key: str, run: RunRecord) -> None:
        """Keep a run without its samples, unless a learned metric could not be computed."""
        if self.folder is not None and not run.problems:
            content = _RUNS.dump_python(run, mode="json", exclude={"samples", "made"})
            self.write(f"{key}{run.mode}", content, run.tables.made)


def user_store() -> RunStore:
    """The scored runs in the user's cache."""
    return RunStore(cache_root() / "scores")


# --- the file of a table ---


def compressed(run: RunRecord) -> RunRecord:
    """The run as it is read from the cache, with compressed columns."""
    return replace(run, made=RunTables({}, {name: _table(_file(table)) for name, table in run.tables.made.items()}))


def _file(table: ItemTable) -> bytes:
    """The table as an Arrow IPC file, without what is only needed for scoring; columns have statistics and states."""
    keys = [*((metric, "") for metric in table.columns), *table.parts]
    arrays: dict[str, Any] = {}
    for number, key in enumerate(keys):
        column = table.column(*key)
        rows = _array(column.statistics)
        arrays[f"statistics {number}"] = pa.FixedSizeListArray.from_arrays(rows, column.statistics.shape[1])
        arrays[f"state {number}"] = _array(column.state)
    fields = {
        "benchmark": table.benchmark.name,
        "complete": int(np.count_nonzero(table.complete)),  # the others are the last ones
        "columns": keys,
        **{name: getattr(table, name) for name in _FIELDS},
    }
    metadata = {"fields": zlib.compress(json.dumps(fields).encode(), 1)}
    whole = pa.table(arrays).replace_schema_metadata(metadata)
    stream = pa.BufferOutputStream()
    with pa.ipc.new_file(stream, whole.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(whole)
    content: bytes = stream.getvalue().to_pybytes()
    return content


def _table(content: bytes) -> ItemTable:
    """The table in an Arrow IPC file, whose compressed columns are decoded on each access."""
    schema = pa.ipc.open_file(content).schema
    fields: dict[str, Any] = json.loads(zlib.decompress(schema.metadata[b"fields"]))
    numbers = {(metric, part): number for number, (metric, part) in enumerate(fields["columns"])}

    def column(metric: str, part: str = "") -> Column:
        names = [f"{kind} {numbers[metric, part]}" for kind in ("statistics", "state")]
        options = pa.ipc.IpcReadOptions(included_fields=[schema.get_field_index(name) for name in names])
        decoded = pa.ipc.open_file(content, options=options).read_all()
        statistics, state = (decoded[name].combine_chunks() for name in names)
        rows = _numbers(statistics.flatten()).reshape(len(state), statistics.type.list_size)
        return Column(rows, _numbers(state))

    return ItemTable(
        get_benchmark(fields["benchmark"]),
        complete=np.arange(len(fields["items"])) < fields["complete"],
        groups={name: _tuples(keys) for name, keys in fields["groups"].items()},
        columns=Lazy([metric for metric, part in numbers if not part], column),
        parts=Lazy([key for key in numbers if key[1]], lambda key: column(*key)),
        metrics=tuple(fields["metrics"]),
        breakdowns=tuple(fields["breakdowns"]),
        items=_tuples(fields["items"]),
        tasks=_tuples(fields["tasks"]),
        clusters=_tuples(fields["clusters"]),
        samples=_tuples(fields["samples"]),
    )


_FIELDS = ("metrics", "breakdowns", "items", "tasks", "clusters", "samples", "groups")

# pyarrow's own conversions from and to Python and NumPy import pandas, a fifth of a second


def _array(numbers: npt.NDArray[Any]) -> pa.Array:
    """The numbers, row by row."""
    flat = np.ascontiguousarray(numbers).ravel()
    return pa.Array.from_buffers(pa.from_numpy_dtype(flat.dtype), len(flat), [None, pa.py_buffer(flat)])


def _numbers(array: pa.Array) -> npt.NDArray[Any]:
    return np.frombuffer(array.buffers()[1], array.type.to_pandas_dtype(), len(array), array.offset)


def _tuples(texts: Sequence[Any]) -> tuple[Any, ...]:
    """Texts or lists of texts; equal ones are the same object, to save memory."""
    seen: dict[Any, Any] = {}
    rows = (tuple(row) if isinstance(row, list) else row for row in texts)
    return shared(tuple(seen.setdefault(row, row) for row in rows))
