"""Scores of text pairs, kept between runs in one SQLite file: ``learned/pairs.sqlite3`` in the user's cache directory.

A cache only saves time: if its file cannot be read or written, scores are computed without it, with a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from medtasks.core.cache import cache_root

Pair: TypeAlias = tuple[str, str]
"""A prediction and its reference."""
T = TypeVar("T")

LOCK_SECONDS = 60.0  # how long to wait for another process's transaction
_TABLE = (
    "CREATE TABLE IF NOT EXISTS scores (signature TEXT NOT NULL, pair BLOB NOT NULL, score REAL NOT NULL, "
    "PRIMARY KEY (signature, pair)) WITHOUT ROWID"
)


def kept_scores(signature: str, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """The stored scores of those of ``pairs`` that have one under this signature, which names everything that can
    change a score, model fingerprint included."""

    def read(connection: sqlite3.Connection) -> dict[Pair, float]:
        query = "SELECT score FROM scores WHERE signature = ? AND pair = ?"
        rows = ((pair, connection.execute(query, (signature, _digest(pair))).fetchone()) for pair in pairs)
        return {pair: row[0] for pair, row in rows if row is not None}

    return _in_file(read) or {}


def keep_scores(signature: str, scores: Mapping[Pair, float]) -> None:
    """Store ``scores`` in one transaction. A pair that has a score under this signature keeps it."""
    rows = [(signature, _digest(pair), score) for pair, score in scores.items()]
    _in_file(lambda connection: connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?, ?)", rows))


def _in_file(work: Callable[[sqlite3.Connection], T]) -> T | None:
    """What ``work`` returns, in one transaction; several threads and processes may read and write at once.

    None, with a warning, if the file is read-only, locked for too long or damaged, or the disk is full.
    """
    path = cache_root() / "learned" / "pairs.sqlite3"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
            with contextlib.suppress(sqlite3.OperationalError):  # while another process switches the file to the log
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(_TABLE)
            with connection:
                return work(connection)
    except (OSError, sqlite3.Error) as error:
        text = f"{path}: the score cache cannot be used ({error}); if it is damaged, delete it"
        warnings.warn(text, RuntimeWarning, stacklevel=4)
        return None


def _digest(pair: Pair) -> bytes:
    """What is stored of a pair instead of its text."""
    prediction, reference = (text.encode("utf-8", "surrogatepass") for text in pair)
    return hashlib.sha256(b"%d:%b%b" % (len(prediction), prediction, reference)).digest()
