"""Digests cached on disk by content."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from medtasks.files import canonical_json
from medtasks.results.run_tables import RunTables
from medtasks.results.scores import Scores
from medtasks.results.table import ItemTable
from medtasks.results.table_file import TableStore, code_hash

from .board import RunFacts, Timeline
from .digest import Digest, Entry
from .documents import TaskDocuments, View


class DigestCache:
    """A directory of cached digests; None caches nothing. Damaged entries count as missing.

    Keys include the versions of everything that scores (task packages too), task files and rubrics.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._store = TableStore(folder)
        self._rules = "" if folder is None else code_hash(Path(__file__).parent)

    def knows(self, content: str) -> bool:
        """Whether there is a digest of this content, if it is not damaged."""
        return self.folder is not None and (self.folder / self._key(content)).is_dir()

    def read(self, content: str) -> Digest | None:
        """The digest of this content, if cached."""
        found = self._store.read(self._key(content))
        return None if found is None else unpack(*found)

    def keep(self, digest: Digest, content: str) -> None:
        """Write the digest, if the directory is writable."""
        self._store.write(self._key(content), pack(digest), digest.tables.made)

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._rules}\0{text}".encode()).hexdigest()


def state_of(paths: Iterable[Path]) -> str:
    """Paths, sizes, modification times and inodes of the files, as text.

    Raises:
        OSError: a file is gone.
    """
    found = [(str(path.resolve()), path.stat()) for path in paths]
    return canonical_json([[name, one.st_size, one.st_mtime_ns, one.st_ino] for name, one in found])


def pack(digest: Digest) -> dict[str, Any]:
    """A digest without its tables, as JSON."""
    return {
        "facts": digest.facts.model_dump(mode="json"),
        "model": digest.model,
        "blind": digest.blind,
        "complete": dict(digest.complete),
        "documents": {
            task: [one.view.cap, one.view.fields, one.view.subset, base64.b64encode(one.hashes).decode()]
            for task, one in digest.documents.items()
        },
        "doubts": dict(digest.doubts),
        "groups": dict(digest.tables.groups),
        "entries": [
            {
                "name": entry.name,
                "benchmark": entry.benchmark,
                "scores": entry.scores.model_dump(mode="json"),
                "signatures": dict(entry.signatures),
                "timelines": [one.model_dump(mode="json") for one in entry.timelines],
            }
            for entry in digest.entries.values()
        ],
    }


def unpack(content: Mapping[str, Any], made: Mapping[str, ItemTable]) -> Digest:
    """The digest from the output of :func:`pack` and its tables."""
    tables = RunTables({}, made).compact()
    entries = {
        one["name"]: Entry.of(
            one["name"],
            one["benchmark"],
            tables.of(one["name"], content["groups"].get(one["name"], ())),
            Scores.model_validate(one["scores"]),
            one["signatures"],
            tuple(Timeline.model_validate(timeline) for timeline in one["timelines"]),
        )
        for one in content["entries"]
    }
    documents = {
        task: TaskDocuments(View(cap, None if fields is None else tuple(fields), subset), base64.b64decode(hashes))
        for task, (cap, fields, subset, hashes) in content["documents"].items()
    }
    return Digest(
        facts=RunFacts.model_validate(content["facts"]),
        model=content["model"],
        blind=content["blind"],
        entries=entries,
        complete=content["complete"],
        documents=documents,
        doubts={task: tuple(one) for task, one in content["doubts"].items()},
        tables=tables,
    )
