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
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

from pydantic import TypeAdapter

import medtasks
from medtasks.catalog.contents import task_packages
from medtasks.catalog.prompts import overlay
from medtasks.catalog.spec import load_specs
from medtasks.core.cache import cache_root
from medtasks.core.errors import DamagedDataError, DataError, reading
from medtasks.core.files import canonical_json, file_sha256
from medtasks.core.replacement import remove_abandoned, replaced
from medtasks.data.prepared import data_root, is_mini
from medtasks.metrics.registry import get_metric
from medtasks.runs.manifest import versions
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.table_archives import archived, table_from_archive
from medtasks.scoring.table_memory import LazyMapping

_CODE = (".py", ".yaml", ".j2", ".js", ".css", ".svg")
_RUNS = TypeAdapter(RunRecord)


class CacheEntry(NamedTuple):
    """An entry of a `TableStore`: plain JSON, and tables by name."""

    content: Any
    tables: Mapping[str, ItemTable]


@dataclass(frozen=True)
class TableStore:
    """Entries in ``folder``, each of some JSON, tables and files; without a directory nothing is
    cached.
    """

    folder: Path | None

    def __post_init__(self) -> None:
        # entries may only be read from now on, and no write would remove it
        if self.folder is not None:
            remove_abandoned(self.folder)

    def read(self, key: str) -> CacheEntry | None:
        """The entry for ``key``, whose columns are decoded on access; None if it is absent or
        damaged.
        """
        if self.folder is None:
            return None
        try:
            with ZipFile(self.folder / f"{key}.zip") as archive:  # which has checksums
                content, names = json.loads(archive.read("content.json"))
                tables = {}
                for name in names:
                    tables[name] = table_from_archive(archive.read(f"{name}.npz"))
                return CacheEntry(content, tables)
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
                    archive.writestr(ZipInfo(f"{name}.npz"), archived(table))
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
        if self.folder is None:
            return
        entries = sorted(self.folder.glob("*.zip"), key=lambda path: path.stat().st_mtime_ns)
        for path in entries[:-count]:
            path.unlink(missing_ok=True)


def code_hash(*further: Path) -> str:
    """A hash of everything that scores depend on except samples: versions, code, task files,
    rubrics and templates.

    ``further`` are directories with more code, pages and their assets: an editable install has some
    of ours outside the package's directory.
    """
    packages = task_packages()
    owners = [package.owner for package in packages]
    digest = hashlib.sha256(canonical_json([versions(), owners]).encode())
    folders = [*overlay(), Path(medtasks.__file__).parent]
    for package in packages:
        folders += (package.tasks.parent, package.rubrics, package.templates)
    for folder in dict.fromkeys((*folders, *further)):
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
        text = "\0".join((self._rules, *texts))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

    def key_of(self, content: str, tasks: Collection[str], miniature: Mapping[str, bool]) -> str:
        """The key of a run, from a hash of everything in it that scores depend on, the names of its
        tasks, and by benchmark whose data it names whether they are miniature data; empty if
        nothing is kept.
        """
        if self.folder is None:
            return ""
        metrics: set[str] = set()
        benchmarks = {*miniature}
        for name, spec in load_specs().items():
            if spec.kind == "task" and name in tasks:
                metrics |= {*spec.scores, *spec.learned}
                benchmarks.add(spec.metadata.benchmark)
        states = {}
        for name in metrics:
            metric = get_metric(name)
            states[name] = (metric.signature, metric.unavailable())
        data = {}
        for name in benchmarks:
            data[name] = _data_state(name, is_miniature=miniature.get(name, False))
        return self.key(content, canonical_json([states, data]))

    def knows(self, key: str) -> bool:
        """Whether there is an entry for the board, if it is not damaged."""
        if self.folder is None:
            return False
        paths = [self.folder / f"{key}{mode}.zip" for mode in ("", "submitted")]
        return any(path.is_file() for path in paths)

    def read_run(self, key: str, *, own: bool) -> RunRecord | None:
        """The run that was kept under the key, as it is scored with ``own``; None if there is
        none.
        """
        for mode in ("", "own" if own else "submitted"):
            name = f"{key}{mode}"
            entry = self.read(name)
            if entry is not None:
                return self._run(name, entry)
        return None

    def _run(self, name: str, entry: CacheEntry) -> RunRecord:
        """The run in an entry, whose amended samples are read on access."""
        content = dict(entry.content)
        amended = LazyMapping(content.pop("amended"), partial(self._amended, name))
        run = _RUNS.validate_python({**content, "samples": {}})
        return replace(run, made=RunTables({}, entry.tables), amended=amended)

    def _amended(self, name: str, task: str) -> bytes:
        return self.file(name, f"{task}.amended")

    def keep(self, key: str, run: RunRecord) -> None:
        """Keep a run without its samples, unless a learned metric could not be computed."""
        if self.folder is None or run.problems:
            return
        content = _RUNS.dump_python(run, mode="json", exclude={"samples", "made", "amended"})
        content["amended"] = [*run.amended]
        files = {f"{task}.amended": packed for task, packed in run.amended.items()}
        self.write(f"{key}{run.mode}", content, run.tables.made, files)


def _data_state(benchmark: str, *, is_miniature: bool) -> str:
    """A hash of the prepared data's manifest; empty if there is none."""
    if is_mini() or is_miniature:
        return "mini"  # made from the code
    path = data_root() / benchmark / "manifest.json"
    # a run may name any benchmark, such as ../other
    if path.parent.parent != data_root() or not path.is_file():
        return ""
    with reading(path, "restore it", DamagedDataError):
        return file_sha256(path)


def user_store() -> RunStore:
    """The scored runs in the user's cache."""
    return RunStore(cache_root() / "scores")


def compressed(run: RunRecord) -> RunRecord:
    """The run as it is read from the cache, with compressed columns."""
    tables = {name: table_from_archive(archived(table)) for name, table in run.tables.made.items()}
    return replace(run, made=RunTables({}, tables))
