"""Digests and boards cached on disk by content: whatever did not change is neither read nor computed again."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from medtasks.files import canonical_json
from medtasks.metrics.registry import get_metric
from medtasks.results.run_tables import RunTables
from medtasks.results.scores import Scores
from medtasks.results.table import ItemTable
from medtasks.results.table_file import TableStore, code_hash

from .board import Board, RunFacts, Timeline
from .digest import Digest, Entry
from .verify import UNSCORED, Verification

_BOARDS = 8
"""Boards that are kept; those used last."""


class DigestCache:
    """A directory of cached digests and boards; None caches nothing. Damaged entries count as missing.

    Keys include the versions of everything that scores (task packages too), task files, rubrics and templates. An entry
    that lacks a metric (no WordNet, say) counts as missing once the metric can be computed.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._store = TableStore(folder)
        self._boards = TableStore(None if folder is None else folder / "boards")
        self._rules = "" if folder is None else code_hash(Path(__file__).parent)

    def knows(self, content: str) -> bool:
        """Whether there is a digest of this content, if it is not damaged."""
        return self.folder is not None and (self.folder / self.key(content)).is_dir()

    def read(self, content: str) -> Digest | None:
        """The digest of this content, if cached."""
        found = self._store.read(self.key(content))
        return None if found is None or _can_do_better(found[0]["lacking"]) else unpack(*found)

    def keep(self, digest: Digest, content: str) -> None:
        """Write the digest, if the directory is writable."""
        packed = {**pack(digest), "lacking": _lacking([digest])}
        self._store.write(self.key(content), packed, digest.tables.made)

    def read_board(self, key: str) -> Board | None:
        """The board with this :meth:`key`, if cached."""
        found = self._boards.read(key)
        return None if found is None or _can_do_better(found[0]["lacking"]) else Board.model_validate(found[0]["board"])

    def keep_board(self, board: Board, digests: Sequence[Digest], key: str) -> None:
        """Write the board of these digests, if the directory is writable, and remove the oldest others."""
        self._boards.write(key, {"board": board.model_dump(mode="json"), "lacking": _lacking(digests)}, {})
        if self._boards.folder is not None and self._boards.folder.is_dir():
            newest_last = sorted(self._boards.folder.glob("[!.]*"), key=lambda path: path.stat().st_mtime_ns)
            for path in newest_last[:-_BOARDS]:
                shutil.rmtree(path, ignore_errors=True)

    def key(self, *texts: str) -> str:
        """A hash of the texts and of all that scores and pages depend on except results."""
        return hashlib.sha256("\0".join((self._rules, *texts)).encode("utf-8", "surrogatepass")).hexdigest()


def _lacking(digests: Iterable[Digest]) -> dict[str, str]:
    """The metrics that scoring the samples again lacked on this machine, and why."""
    unscored = (one for one in digests if any(UNSCORED in note for note in one.facts.notes))
    metrics = sorted({metric for one in unscored for entry in one.entries.values() for metric in entry.scores.metrics})
    found = ((metric, get_metric(metric).unavailable()) for metric in metrics)
    return {metric: why for metric, why in found if why is not None}


def _can_do_better(lacking: Mapping[str, str]) -> bool:
    return any(get_metric(metric).unavailable() is None for metric in lacking)


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
        "verification": {task: asdict(one) for task, one in digest.verification.items()},
        "responses": dict(digest.responses),
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
    return Digest(
        facts=RunFacts.model_validate(content["facts"]),
        model=content["model"],
        blind=content["blind"],
        entries=entries,
        complete=content["complete"],
        verification={task: Verification(**one) for task, one in content["verification"].items()},
        responses=content["responses"],
        tables=tables,
    )
