"""Scores of pairs, kept between runs in one SQLite file, ``learned/pairs.sqlite3`` in the user's
cache directory.

The file only saves time: if it cannot be read or written, scores are computed without it, with a
warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from medtasks.core.cache import cache_root

T = TypeVar("T")
Pair: TypeAlias = tuple[str, str]
"""A prediction and its reference."""

LOCK_SECONDS = 60.0
"""How long to wait for another process's transaction."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS scores (signature TEXT NOT NULL, pair BLOB NOT NULL, "
    "score REAL NOT NULL, PRIMARY KEY (signature, pair)) WITHOUT ROWID"
)
_SELECT = "SELECT score FROM scores WHERE signature = ? AND pair = ?"
_INSERT = "INSERT OR IGNORE INTO scores VALUES (?, ?, ?)"


def kept_scores(signature: str, pairs: Sequence[Pair]) -> dict[Pair, float]:
    """The stored scores of those of ``pairs`` that have one under this signature, which names
    everything that can change a score, model fingerprint included.
    """

    def read(connection: sqlite3.Connection) -> dict[Pair, float]:
        scores: dict[Pair, float] = {}
        for pair in pairs:
            row = connection.execute(_SELECT, (signature, _pair_hash(pair))).fetchone()
            if row is not None:
                scores[pair] = row[0]
        return scores

    return _in_file(read) or {}


def keep_scores(signature: str, scores: Mapping[Pair, float]) -> None:
    """Store ``scores`` in one transaction. A pair that has a score under this signature keeps
    it.
    """
    rows = [(signature, _pair_hash(pair), score) for pair, score in scores.items()]
    _in_file(lambda connection: connection.executemany(_INSERT, rows))


def _in_file(work: Callable[[sqlite3.Connection], T]) -> T | None:
    """What ``work`` returns, in one transaction; several processes may read and write at once.

    None, with a warning, if the file is read-only, locked for too long or damaged, or the disk is
    full.
    """
    path = cache_root() / "learned" / "pairs.sqlite3"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection,
            connection,
        ):
            connection.execute(_TABLE)
            return work(connection)
    except (OSError, sqlite3.Error) as error:
        message = f"{path}: the score cache cannot be used ({error}); if it is damaged, delete it"
        warnings.warn(message, RuntimeWarning, stacklevel=4)
        return None


def _pair_hash(pair: Pair) -> bytes:
    """What is stored of a pair instead of its text."""
    prediction = pair[0].encode("utf-8", "surrogatepass")
    reference = pair[1].encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:%b%b" % (len(prediction), prediction, reference)).digest()
