"""Digests cached on disk: tables by content, and an index by file size and modification time."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from medtasks.files import canonical_json, replaced
from medtasks.results.run_tables import RunTables
from medtasks.results.scoring import Scores
from medtasks.results.table import ItemTable
from medtasks.results.table_file import TableStore, code_hash

from .board import RunFacts, Timeline
from .digest import Digest, Entry
from .documents import TaskDocuments, View


class DigestCache:
    """A directory of cached digests; None caches nothing. Damaged entries count as missing.

    A digest is looked up by the state of its files (name, size, modification time) without reading them, then by their
    content. Both keys include the versions of everything that scores (task packages too), task files and rubrics.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._store = TableStore(folder)
        self._index: dict[str, str] = {}
        self._rules = "" if folder is None else code_hash(Path(__file__).parent)
        if folder is not None:
            with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
                found = json.loads((folder / "index.json").read_text(encoding="utf-8"))
                self._index = {key: value for key, value in found.items() if isinstance(value, str)}

    def knows(self, state: str) -> bool:
        """Whether there is a digest of files in this state, if it is not damaged."""
        return self._key(state) in self._index

    def by_state(self, state: str) -> Digest | None:
        """The digest of files in this state, if cached."""
        content = self._index.get(self._key(state))
        return None if content is None else self._read(content)

    def by_content(self, content: str, state: str) -> Digest | None:
        """The digest of this content, if cached; from now on ``state`` finds it too."""
        self._index[self._key(state)] = self._key(content)
        return self._read(self._key(content))

    def keep(self, digest: Digest, content: str, state: str) -> None:
        """Write the digest, if the directory is writable."""
        self._index[self._key(state)] = self._key(content)
        self._store.write(self._key(content), pack(digest), digest.tables.made)

    def close(self) -> None:
        """Write the index."""
        if self.folder is not None and self._index:
            _write(self.folder / "index.json", (canonical_json(self._index, indent=0) + "\n").encode())

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._rules}\0{text}".encode()).hexdigest()

    def _read(self, key: str) -> Digest | None:
        found = self._store.read(key)
        return None if found is None else unpack(*found)


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


def _write(path: Path, content: bytes) -> None:
    """Write the file atomically; errors are ignored."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as partial:
            partial.write_bytes(content)
