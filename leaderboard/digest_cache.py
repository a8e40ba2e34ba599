"""Digests kept on disk: one file of numbers and text for each folder's content, and an index by size and time."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.files import canonical_json, replaced
from medtasks.packages import task_packages
from medtasks.prompts import template_folders
from medtasks.results.manifest import versions
from medtasks.results.scoring import Scores

from .board import RunFacts, Timeline
from .digest import Digest, Entry
from .documents import TaskDocuments, View

__all__ = ["DigestCache", "pack", "state_of", "unpack"]

FORMAT = 4
"""Moves whenever the same folder gives another digest, or digests are written otherwise."""


class DigestCache:
    """The folder of digests; without a folder nothing is kept. What is damaged there counts as absent.

    A digest is found by the state of the files that it was made of (name, size, time of change) without reading them,
    or else by their content; both count together with the versions of all that scores (every package of tasks, too),
    and with the task files and rubrics.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._index: dict[str, str] = {}
        self._rules = "" if folder is None else _rules()
        if folder is not None:
            with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
                found = json.loads((folder / "index.json").read_text(encoding="utf-8"))
                self._index = {key: value for key, value in found.items() if isinstance(value, str)}

    def by_state(self, state: str) -> Digest | None:
        """The digest of files in that state, as when they were last read."""
        content = self._index.get(self._key(state))
        return None if content is None else self._read(content)

    def by_content(self, content: str, state: str) -> Digest | None:
        """The digest of that content; from now on ``state`` finds it, too."""
        self._index[self._key(state)] = self._key(content)
        return self._read(self._key(content))

    def keep(self, digest: Digest, content: str, state: str) -> None:
        """Write the digest; a folder that cannot be written keeps nothing."""
        if self._folder is None:
            return
        self._index[self._key(state)] = self._key(content)
        _write(self._folder / f"{self._key(content)}.npz", pack(digest))

    def close(self) -> None:
        """Write the index."""
        if self._folder is not None and self._index:
            _write(self._folder / "index.json", (canonical_json(self._index, indent=0) + "\n").encode())

    def _key(self, text: str) -> str:
        return hashlib.sha256(f"{self._rules}\0{text}".encode()).hexdigest()

    def _read(self, key: str) -> Digest | None:
        if self._folder is None:
            return None
        try:
            return unpack((self._folder / f"{key}.npz").read_bytes())
        except Exception:  # absent, or damaged in one of the many ways in which an archive can be
            return None


def state_of(paths: Iterable[Path]) -> str:
    """Where the files lie, and their sizes and times of change.

    Raises:
        OSError: one is gone.
    """
    found = [(str(path.resolve()), path.stat()) for path in paths]
    return canonical_json([[name, one.st_size, one.st_mtime_ns, one.st_ino] for name, one in found])


def pack(digest: Digest) -> bytes:
    """The digest as the bytes of an ``.npz`` file: every table of statistics, and all else as JSON."""
    arrays: dict[str, Any] = {}
    entries = []
    for place, entry in enumerate(digest.entries.values()):
        arrays |= {f"{place}.{number}": table for number, table in enumerate(entry.statistics.values())}
        entries.append(
            {
                "name": entry.name,
                "benchmark": entry.benchmark,
                "scores": entry.scores.model_dump(mode="json"),
                "items": entry.items,
                "clusters": entry.clusters,
                "metrics": list(entry.statistics),
                "signatures": dict(entry.signatures),
                "timelines": [one.model_dump(mode="json") for one in entry.timelines],
            }
        )
    told = {
        "facts": digest.facts.model_dump(mode="json"),
        "model": digest.model,
        "blind": digest.blind,
        "complete": dict(digest.complete),
        "documents": {
            task: [one.view.cap, one.view.fields, base64.b64encode(one.hashes).decode()]
            for task, one in digest.documents.items()
        },
        "doubts": dict(digest.doubts),
        "entries": entries,
    }
    text = json.dumps(told).encode()  # keys in their order: tasks and metrics are shown in it
    stream = io.BytesIO()
    np.savez_compressed(stream, told=np.frombuffer(text, dtype=np.uint8), **arrays)
    return stream.getvalue()


def unpack(content: bytes) -> Digest:
    """The digest that :func:`pack` wrote.

    Raises:
        Exception: it is none, or damaged; of what kind depends on where.
    """
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        told = json.loads(arrays["told"].tobytes())
        entries = {}
        for place, entry in enumerate(told["entries"]):
            tables = {metric: arrays[f"{place}.{number}"] for number, metric in enumerate(entry["metrics"])}
            if any(table.shape[0] != len(entry["items"]) for table in tables.values()):
                raise ValueError("a table has another number of rows than there are items")
            entries[entry["name"]] = Entry(
                name=entry["name"],
                benchmark=entry["benchmark"],
                scores=Scores.model_validate(entry["scores"]),
                items=tuple(entry["items"]),
                clusters=tuple(entry["clusters"]),
                statistics=tables,
                signatures=entry["signatures"],
                timelines=tuple(Timeline.model_validate(one) for one in entry["timelines"]),
            )
    facts = RunFacts.model_validate(told["facts"])
    documents = {
        task: TaskDocuments(View(cap, None if fields is None else tuple(fields)), base64.b64decode(hashes))
        for task, (cap, fields, hashes) in told["documents"].items()
    }
    doubts = {task: tuple(one) for task, one in told["doubts"].items()}
    return Digest(facts, told["model"], told["blind"], entries, told["complete"], documents, doubts)


def _rules() -> str:
    """What a digest depends on beside the folder: versions, packages with their task files, rubrics and templates."""
    packages = task_packages()
    digest = hashlib.sha256(canonical_json([FORMAT, versions(), [one.owner for one in packages]]).encode())
    for package in packages:
        for folder in (package.tasks, package.rubrics):
            for path in sorted(folder.rglob("*.yaml")):
                digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    for folder in template_folders():
        for path in sorted(folder.rglob("*.j2")):
            digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Write the file in one step, or not at all."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replaced(path) as partial:
            partial.write_bytes(content)
