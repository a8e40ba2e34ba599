"""Scores of text pairs, remembered between runs in one SQLite file.

A cache only saves time: where its file cannot be read or written, scoring goes on without it, with a warning.
"""

from __future__ import annotations

import contextlib
import hashlib
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from medtasks.cache import cache_root

Pair: TypeAlias = tuple[str, str]
"""A prediction and its reference."""

LOCK_SECONDS = 60.0  # how long to wait for another process's transaction
QUERY_PAIRS = 500  # below 999, the least limit on variables that SQLite is built with
ATTEMPTS = 40
PAUSE_SECONDS = 0.05

T = TypeVar("T")


class PairCache:
    """Float per (signature, pair), in ``path``; by default ``learned/pairs.sqlite3`` below the user's cache folder.

    A signature names everything that can move the score, model fingerprint included; of a pair its SHA-256 is kept,
    never its text. The first score of a pair stays. Several threads and processes may read and write at once (each
    call opens its own connection; write-ahead log). A damaged file is renamed to ``….corrupt-<number>`` and begun anew.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path

    @property
    def path(self) -> Path:
        """The database file; it may not exist yet."""
        return self._path or cache_root() / "learned" / "pairs.sqlite3"

    def get(self, signature: str, pairs: Sequence[Pair]) -> dict[Pair, float]:
        """The remembered scores of those of ``pairs`` that have one."""
        named = {_digest(pair): pair for pair in pairs}
        digests = list(named)

        def read(connection: sqlite3.Connection) -> dict[Pair, float]:
            found = {}
            for begin in range(0, len(digests), QUERY_PAIRS):
                part = digests[begin : begin + QUERY_PAIRS]
                marks = ",".join("?" * len(part))
                query = f"SELECT pair, score FROM scores WHERE signature = ? AND pair IN ({marks})"
                found.update({named[digest]: score for digest, score in connection.execute(query, (signature, *part))})
            return found

        return self._attempt(read, {})

    def put(self, signature: str, scores: Mapping[Pair, float]) -> None:
        """Remember ``scores`` in one transaction. A pair that has a score under this signature keeps it."""
        rows = [(signature, _digest(pair), score) for pair, score in scores.items()]

        def write(connection: sqlite3.Connection) -> None:
            with connection:
                connection.executemany("INSERT OR IGNORE INTO scores VALUES (?, ?, ?)", rows)

        self._attempt(write, None)

    def _attempt(self, work: Callable[[sqlite3.Connection], T], without: T) -> T:
        """The result of ``work``, or ``without`` where the file cannot be used."""
        path, number = self.path, None
        for _ in range(ATTEMPTS):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                number = path.stat().st_ino if path.exists() else None
                with _connected(path) as connection:
                    return work(connection)
            except (OSError, sqlite3.OperationalError) as error:  # read-only, full, locked for too long
                _warn(f"{path}: the score cache cannot be used ({error}); scores are computed anew")
                return without
            except sqlite3.DatabaseError as error:
                if number is None or not _set_aside(path, number, error):
                    time.sleep(PAUSE_SECONDS)  # another process is just renaming it
        _warn(f"{path}: the score cache is damaged and could not be set aside; delete it, scores are computed anew")
        return without


@contextlib.contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(path, timeout=LOCK_SECONDS)) as connection:
        with contextlib.suppress(sqlite3.OperationalError):  # while another process switches the file to the log
            connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS scores (signature TEXT NOT NULL, pair BLOB NOT NULL, score REAL NOT NULL, "
            "PRIMARY KEY (signature, pair)) WITHOUT ROWID"
        )
        yield connection


def _set_aside(path: Path, number: int, error: Exception) -> bool:
    """Rename the damaged file of that inode, once among all processes that met it; False where another one does.

    Its name is claimed before it is moved, so that a process which comes late cannot move the fresh file.
    """
    aside = path.with_name(f"{path.name}.corrupt-{number}")
    try:
        aside.open("xb").close()
    except FileExistsError:
        return False
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    path.replace(aside)
    _warn(f"{path}: the score cache was damaged ({error}); it is kept as {aside.name} and begun anew")
    return True


def _digest(pair: Pair) -> bytes:
    prediction, reference = (text.encode("utf-8", "surrogatepass") for text in pair)
    return hashlib.sha256(b"%d:%b%b" % (len(prediction), prediction, reference)).digest()


def _warn(text: str) -> None:
    warnings.warn(text, RuntimeWarning, stacklevel=4)
