"""Statistics of pairs, kept between runs in one SQLite file, ``learned/statistics.sqlite3`` in the
user's cache directory.

The file only saves time: if it cannot be read or written, statistics are computed without it, with
a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import warnings
from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

from medtasks.core.cache import cache_root

T = TypeVar("T")
Pair: TypeAlias = tuple[str, str]
"""A prediction and its reference."""
PairStatistics: TypeAlias = tuple[float, ...]
"""The sufficient statistics of a pair; empty if the model gave none for it."""

LOCK_SECONDS = 60.0
"""How long to wait for another process's transaction."""
_TABLE = (
    "CREATE TABLE IF NOT EXISTS statistics (signature TEXT NOT NULL, pair BLOB NOT NULL, "
    "numbers BLOB NOT NULL, PRIMARY KEY (signature, pair)) WITHOUT ROWID"
)
_SELECT = "SELECT numbers FROM statistics WHERE signature = ? AND pair = ?"
_INSERT = "INSERT OR IGNORE INTO statistics VALUES (?, ?, ?)"


def kept_statistics(signature: str, pairs: Sequence[Pair]) -> dict[Pair, PairStatistics]:
    """The stored statistics of those of ``pairs`` that have some under this signature, which names
    everything that can change them, model fingerprint included.
    """

    def read(connection: sqlite3.Connection) -> dict[Pair, PairStatistics]:
        kept: dict[Pair, PairStatistics] = {}
        for pair in pairs:
            row = connection.execute(_SELECT, (signature, _pair_hash(pair))).fetchone()
            if row is not None:
                numbers = array("d")
                numbers.frombytes(row[0])
                kept[pair] = tuple(numbers)
        return kept

    return _in_file(read) or {}


def keep_statistics(signature: str, statistics: Mapping[Pair, PairStatistics]) -> None:
    """Store ``statistics`` in one transaction. A pair that has some under this signature keeps
    them.
    """
    rows = []
    for pair, numbers in statistics.items():
        rows.append((signature, _pair_hash(pair), array("d", numbers).tobytes()))
    _in_file(lambda connection: connection.executemany(_INSERT, rows))


def _in_file(work: Callable[[sqlite3.Connection], T]) -> T | None:
    """What ``work`` returns, in one transaction; several processes may read and write at once.

    None, with a warning, if the file is read-only, locked for too long or damaged, or the disk is
    full.
    """
    path = cache_root() / "learned" / "statistics.sqlite3"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection,
            connection,
        ):
            connection.execute(_TABLE)
            return work(connection)
    except (OSError, ValueError, sqlite3.Error) as error:
        message = f"{path}: the score cache cannot be used ({error}); if it is damaged, delete it"
        warnings.warn(message, RuntimeWarning, stacklevel=4)
        return None


def _pair_hash(pair: Pair) -> bytes:
    """What is stored of a pair instead of its text."""
    prediction = pair[0].encode("utf-8", "surrogatepass")
    reference = pair[1].encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"%d:%b%b" % (len(prediction), prediction, reference)).digest()
