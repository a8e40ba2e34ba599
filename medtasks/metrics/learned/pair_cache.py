"""Scores of text pairs, kept between runs in one SQLite file.

A cache only saves time: if its file cannot be read or written, scores are computed without it, with a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from medtasks.core.cache import cache_root

Pair: TypeAlias = tuple[str, str]
"""A prediction and its reference."""

LOCK_SECONDS = 60.0  # how long to wait for another process's transaction
QUERY_PAIRS = 500  # below 999, the lowest limit on variables that SQLite is built with


class PairCache:
    """Float per (signature, pair), in ``path``; by default ``learned/pairs.sqlite3`` in the user's cache directory.

    A signature names everything that can change the score, model fingerprint included; a pair is stored as its SHA-256,
    never its text. The first score of a pair stays. Several threads and processes may read and write at once (each
    call opens its own connection; write-ahead log).
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """The database file; it may not exist yet."""
        return self._path or cache_root() / "learned" / "pairs.sqlite3"

    def get(self, signature: str, pairs: Sequence[Pair]) -> dict[Pair, float]:
        """The stored scores of those of ``pairs`` that have one."""
        by_digest = {_digest(pair): pair for pair in pairs}
        digests = list(by_digest)
        with self._warned(), self._connected() as connection:
            scores = {}
            for begin in range(0, len(digests), QUERY_PAIRS):
                part = digests[begin : begin + QUERY_PAIRS]
                marks = ",".join("?" * len(part))
                query = f"SELECT pair, score FROM scores WHERE signature = ? AND pair IN ({marks})"
                rows = connection.execute(query, (signature, *part))
                scores.update({by_digest[digest]: score for digest, score in rows})
            return scores
        return {}

    def put(self, signature: str, scores: Mapping[Pair, float]) -> None:
        """Store ``scores`` in one transaction. A pair that has a score under this signature keeps it."""
        rows = [(signature, _digest(pair), score) for pair, score in scores.items()]
        with self._warned(), self._connected() as connection, connection:
            connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?, ?)", rows)

    @contextlib.contextmanager
    def _warned(self) -> Iterator[None]:
        """Warn instead of failing if the file is read-only, locked for too long or damaged, or the disk is full."""
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            text = f"{self.path}: the score cache cannot be used ({error}); if it is damaged, delete it"
            warnings.warn(text, RuntimeWarning, stacklevel=4)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(self.path, timeout=LOCK_SECONDS)) as connection:
            with contextlib.suppress(sqlite3.OperationalError):  # while another process switches the file to the log
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(
                "CREATE TABLE IF NOT EXISTS scores (signature TEXT NOT NULL, pair BLOB NOT NULL, score REAL NOT NULL, "
                "PRIMARY KEY (signature, pair)) WITHOUT ROWID"
            )
            yield connection


def _digest(pair: Pair) -> bytes:
    prediction, reference = (text.encode("utf-8", "surrogatepass") for text in pair)
    return hashlib.sha256(b"%d:%b%b" % (len(prediction), prediction, reference)).digest()
