"""Kept tables and scored runs: archives in the user's cache, under a hash of everything that they
depend on.

Their members have no time (that of a `ZipInfo` is 1980), as a clock may be earlier than archives
can record. They are not kept in result directories, because a recipient could not tell whether a
table was really computed from the samples. A damaged entry counts as absent, and is built again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from io import BytesIO
from itertools import chain
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from pydantic import TypeAdapter

import medtasks
from medtasks.catalog.contents import task_packages
from medtasks.catalog.prompts import overlay
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_specs
from medtasks.core.cache import cache_root
from medtasks.core.errors import DamagedDataError, DataError, reading
from medtasks.core.files import canonical_json, file_sha256, remove_abandoned, replaced
from medtasks.data.prepared import data_root, is_mini
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import versions
from medtasks.scoring.columns import Column, PartKey, Reduced
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.table_memory import LazyMapping, shared_tuple

_CODE = (".py", ".yaml", ".j2", ".js", ".css", ".svg")
_RUNS = TypeAdapter(RunRecord)


@dataclass(frozen=True)
class TableStore:
    """Sets of tables, each with some JSON, in ``folder``; without a directory nothing is cached."""

    folder: Path | None

    def __post_init__(self) -> None:
        if (
            self.folder is not None
        ):  # entries may only be read from now on, and no write would remove it
            remove_abandoned(self.folder)

    def read(self, key: str) -> tuple[Any, Mapping[str, ItemTable]] | None:
        """The entry for ``key``, whose columns are decoded on access; None if it is absent or
        damaged.
        """
        if self.folder is None:
            return None
        try:
            with ZipFile(self.folder / f"{key}.zip") as archive:  # which has checksums
                content, names = json.loads(archive.read("content.json"))
                return content, {name: _table(archive.read(f"{name}.npz")) for name in names}
        except Exception:  # absent, or damaged in any way
            return None

    def write(
        self,
        key: str,
        content: Any,
        tables: Mapping[str, ItemTable],
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Cache ``tables``, ``files`` and ``content``, which is plain JSON; does nothing if the
        directory cannot be written.
        """
        if self.folder is None:
            return
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replaced(self.folder / f"{key}.zip") as partial, ZipFile(partial, "w") as archive:
                # keys are not sorted: metrics are shown in this order
                archive.writestr(ZipInfo("content.json"), json.dumps([content, [*tables]]))
                for name, table in tables.items():
                    archive.writestr(ZipInfo(f"{name}.npz"), _file(table))
                for name, file in (files or {}).items():
                    archive.writestr(ZipInfo(name), file)

    def file(self, key: str, name: str) -> bytes:
        """The content of one of an entry's files.

        Raises:
            DataError: the entry was removed or damaged since it was read.
        """
        assert self.folder is not None, "without a directory there are no entries"
        try:
            with ZipFile(self.folder / f"{key}.zip") as archive:
                return archive.read(name)
        except (OSError, KeyError, BadZipFile) as error:
            raise DataError(
                f"{self.folder}: an entry of the cache was removed; repeat the command."
            ) from error

    def keep_newest(self, count: int) -> None:
        """Remove all but the newest ``count`` entries."""
        if self.folder is not None:
            for path in sorted(self.folder.glob("*.zip"), key=lambda path: path.stat().st_mtime_ns)[
                :-count
            ]:
                path.unlink(missing_ok=True)


def code_hash(*further: Path) -> str:
    """A hash of everything that scores depend on except samples: versions, code, task files,
    rubrics and templates.

    ``further`` are directories with more code, pages and their assets: an editable install has some
    of ours outside the package's directory.
    """
    packages = task_packages()
    digest = hashlib.sha256(canonical_json([versions(), [one.owner for one in packages]]).encode())
    ours = Path(medtasks.__file__).parent
    theirs = [
        folder
        for package in packages
        for folder in (package.tasks.parent, package.rubrics, package.templates)
    ]
    for folder in dict.fromkeys((*overlay(), ours, *theirs, *further)):
        for path in sorted(folder.rglob("*")):
            if path.suffix in _CODE:
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


class RunStore(TableStore):
    """Scored runs.

    The key of a run is a hash of its content, of all code, task files and rubrics, of the metrics'
    signatures and of what keeps them from being computed here, and of the prepared data.
    """

    @cached_property
    def _rules(self) -> str:
        return code_hash()

    def key(self, *texts: str) -> str:
        """A hash of the texts and of all that scores depend on except results."""
        return hashlib.sha256(
            "\0".join((self._rules, *texts)).encode("utf-8", "surrogatepass")
        ).hexdigest()

    def key_of(self, content: str, tasks: Collection[str], miniature: Mapping[str, bool]) -> str:
        """The key of a run, from a hash of everything in it that scores depend on, the names of its
        tasks, and by benchmark whose data it names whether they are miniature data; empty if
        nothing is kept.
        """
        if self.folder is None:
            return ""
        specs = [
            spec for name, spec in load_specs().items() if spec.kind == "task" and name in tasks
        ]
        metrics = {
            name: get_metric(name)
            for spec in specs
            for name in (*spec.scores, *spec.metadata.learned)
        }
        state = {name: (one.signature, one.unavailable()) for name, one in sorted(metrics.items())}
        names = sorted({*miniature, *(one.metadata.benchmark for one in specs)})
        data = dict.fromkeys(names, "mini")  # made from the code
        for name in names:
            if not is_mini() and not miniature.get(name):
                path = data_root() / name / "manifest.json"
                known = path.parent.parent == data_root() and path.is_file()
                with reading(path, "restore it", DamagedDataError):
                    data[name] = file_sha256(path) if known else ""
        return self.key(content, canonical_json([state, data]))

    def knows(self, key: str) -> bool:
        """Whether there is an entry for the board, if it is not damaged."""
        return self.folder is not None and any(
            (self.folder / f"{key}{end}.zip").is_file() for end in ("", "submitted")
        )

    def read_run(self, key: str, *, own: bool) -> RunRecord | None:
        """The run that was kept under the key, as it is scored with ``own``; None if there is
        none.
        """
        for mode in ("", "own" if own else "submitted"):
            if (found := self.read(entry := f"{key}{mode}")) is not None:
                kept, tables = found
                amended = LazyMapping(kept.pop("amended"), partial(self._amended, entry))
                run = _RUNS.validate_python({**kept, "samples": {}})
                return replace(run, made=RunTables({}, tables), amended=amended)
        return None

    def _amended(self, entry: str, task: str) -> bytes:
        return self.file(entry, f"{task}.amended")

    def keep(self, key: str, run: RunRecord) -> None:
        """Keep a run without its samples, unless a learned metric could not be computed."""
        if self.folder is not None and not run.problems:
            content = _RUNS.dump_python(run, mode="json", exclude={"samples", "made", "amended"})
            files = {f"{task}.amended": packed for task, packed in run.amended.items()}
            self.write(
                f"{key}{run.mode}", {**content, "amended": [*run.amended]}, run.tables.made, files
            )


def user_store() -> RunStore:
    """The scored runs in the user's cache."""
    return RunStore(cache_root() / "scores")


# --- the file of a table ---

_FIELDS = "fields.json"
_KINDS = ("statistics", "state")
_ROWS = ("items", "tasks", "clusters", "samples")


def compressed(run: RunRecord) -> RunRecord:
    """The run as it is read from the cache, with compressed columns."""
    return replace(
        run,
        made=RunTables({}, {name: _table(_file(table)) for name, table in run.tables.made.items()}),
    )


def _file(table: ItemTable) -> bytes:
    """The table as a NumPy archive, without what is only needed for scoring; columns have
    statistics and states.
    """
    fields = {
        "benchmark": table.benchmark.name,
        "complete": int(np.count_nonzero(table.complete)),  # the others are the last ones
        "columns": [*table.columns],
        "reduced": [*table.reduced],
        **{name: getattr(table, name) for name in ("metrics", "breakdowns", "groups", *_ROWS)},
    }
    stream = BytesIO()
    with ZipFile(stream, "w") as archive:

        def write(name: str, content: str | bytes) -> None:
            # level 1 is four times as fast as `np.savez_compressed`
            archive.writestr(ZipInfo(name), content, ZIP_DEFLATED, compresslevel=1)

        def add(name: str, array: Any) -> None:
            file = BytesIO()
            np.save(file, array)
            write(f"{name}.npy", file.getvalue())

        write(_FIELDS, json.dumps(fields))

        for number, column in enumerate(
            chain(table.columns.values(), (one for _, one in table.reduced.values()))
        ):
            for kind in _KINDS:
                add(f"{kind} {number}", getattr(column, kind))
        for number, (rows, _) in enumerate(table.reduced.values(), len(table.columns)):
            add(f"rows {number}", rows)
    return stream.getvalue()


def _table(content: bytes) -> ItemTable:
    """The table in such an archive, whose columns are decompressed on each access."""
    archive = np.load(BytesIO(content))
    fields: dict[str, Any] = json.loads(archive.zip.read(_FIELDS))
    names = [*fields["columns"], *map(tuple, fields["reduced"])]
    place = {name: number for number, name in enumerate(names)}
    wholes = len(fields["columns"])

    def column(name: str | PartKey) -> Column:
        return Column(*(archive[f"{kind} {place[name]}"] for kind in _KINDS))

    return ItemTable(
        get_benchmark(fields["benchmark"]),
        metrics=tuple(fields["metrics"]),
        breakdowns=tuple(fields["breakdowns"]),
        complete=np.arange(len(fields["items"])) < fields["complete"],
        groups={name: _tuples(keys) for name, keys in fields["groups"].items()},
        columns=LazyMapping(names[:wholes], column),
        reduced=LazyMapping(
            names[wholes:], lambda key: Reduced(archive[f"rows {place[key]}"], column(key))
        ),
        **{name: _tuples(fields[name]) for name in _ROWS},
    )


def _tuples(texts: Sequence[Any]) -> tuple[Any, ...]:
    """Texts or lists of texts; equal ones are the same object, to save memory."""
    seen: dict[Any, Any] = {}
    rows = (tuple(row) if isinstance(row, list) else row for row in texts)
    return shared_tuple(tuple(seen.setdefault(row, row) for row in rows))
