"""Stored verdicts, in one SQLite file: none is lost when the process is killed, none is requested twice."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tenacity import retry, retry_if_exception_message, stop_after_delay, wait_fixed

from medtasks.core.errors import DataError, UsageError
from medtasks.core.text import well_formed

SCHEMA_VERSION = 1
APPLICATION_ID = 0x6D745644  # "mtVD" in the file's header: marks a verdict store
LOCK_SECONDS = 60.0  # how long to wait for another process's transaction
LOG_PAGES = 32_000  # of 4 kB; a checkpoint of the log blocks all requests in flight for 10 to 20 ms

_TABLE = """CREATE TABLE verdicts (
    key TEXT PRIMARY KEY, prompt TEXT NOT NULL, answer TEXT NOT NULL, parsed TEXT, reason TEXT,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, digest BLOB NOT NULL
)"""
_COLUMNS = "key, prompt, answer, parsed, reason, prompt_tokens, completion_tokens, digest"
_PUT = f"""INSERT INTO verdicts ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET prompt = excluded.prompt, answer = excluded.answer, parsed = excluded.parsed,
        reason = excluded.reason, prompt_tokens = excluded.prompt_tokens,
        completion_tokens = excluded.completion_tokens, digest = excluded.digest
    WHERE verdicts.parsed IS NULL"""
_DOCUMENTS = json.JSONEncoder(sort_keys=True, allow_nan=False)


@dataclass(frozen=True)
class StoredVerdict:
    """One answered request: ``parsed`` is the valid verdict, or None, with the ``reason``."""

    key: str
    prompt: str
    answer: str
    parsed: dict[str, Any] | None
    reason: str | None
    prompt_tokens: int
    completion_tokens: int


class VerdictStore:
    """Verdict per key, in the SQLite file ``path`` (created if missing).

    Each `put` is a transaction of its own in a write-ahead log, so a killed process loses nothing it stored. Several
    processes or threads may share the file, each with its own `VerdictStore`. Every row carries a digest of its
    contents, because SQLite does not detect damage within texts. Lone surrogates are stored as U+FFFD.

    Raises:
        DataError: the file is damaged, not a verdict store, or of another schema version. It is not changed.
        UsageError: the file cannot be opened, read or written, or another process locks it for over a minute.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.path}: the directory of the verdict store cannot be created ({error})") from error
        with self._errors_named():
            self._connection = sqlite3.connect(self.path, timeout=LOCK_SECONDS, isolation_level=None)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def __enter__(self) -> VerdictStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the store cannot be used afterwards."""
        self._connection.close()

    def get(self, keys: Iterable[str]) -> dict[str, StoredVerdict]:
        """The stored verdicts of ``keys``, in their order; keys without one are left out."""
        stored = {}
        with self._errors_named():
            for key in keys:
                row = self._connection.execute(f"SELECT {_COLUMNS} FROM verdicts WHERE key = ?", (key,)).fetchone()
                if row is not None:
                    stored[key] = self._verdict(row)
        return stored

    def put(self, verdict: StoredVerdict) -> bool:
        """Store at once, replacing an answer without a valid verdict; the first valid verdict of a key stays.

        Returns False if nothing was written because a valid verdict was already stored.
        """
        row = _row(verdict)
        with self._errors_named():
            return self._connection.execute(_PUT, (*row, _digest(row))).rowcount > 0

    def _prepare(self) -> None:
        connection = self._connection
        connection.execute("BEGIN")  # one view of the file: another process may be creating the table
        self._check()  # before anything is written: it may be another database
        connection.execute("COMMIT")
        self._switch_to_log()
        connection.execute("PRAGMA synchronous = NORMAL")  # a killed process loses nothing, a power cut the last rows
        connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        connection.execute("BEGIN IMMEDIATE")  # only one of several processes creates the table
        with connection:  # commits, or rolls back
            if not self._check():
                connection.execute(_TABLE)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _check(self) -> bool:
        """Whether the file is a verdict store; False if it is empty, an error if it is something else."""
        version, application, tables = (
            self._connection.execute(query).fetchone()[0]
            for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT count(*) FROM sqlite_master")
        )
        if not (version or application or tables):
            return False
        if application != APPLICATION_ID:
            raise DataError(f"{self.path}: is another kind of database, not a verdict store; name another file")
        if version != SCHEMA_VERSION:
            raise DataError(
                f"{self.path}: found a verdict store of schema version {version}, expected {SCHEMA_VERSION}; "
                "use the medtasks version that created it, or another file"
            )
        return True

    @retry(
        retry=retry_if_exception_message(match=".*locked"),
        stop=stop_after_delay(LOCK_SECONDS),
        wait=wait_fixed(0.02),
        reraise=True,
    )
    def _switch_to_log(self) -> None:
        # SQLite itself does not wait here while another process does the same
        self._connection.execute("PRAGMA journal_mode = WAL")

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, sqlite3.ProgrammingError) as error:
            reason = str(error).partition(" with text ")[0]  # what follows is a prompt or an answer
            if "malformed" in reason or "decode" in reason:
                raise self._damaged(reason) from None
            raise UsageError(f"{self.path}: the verdict store cannot be used ({reason})") from error
        except UnicodeDecodeError:  # raised by sqlite3 while it reports text that is not UTF-8
            raise self._damaged("a text is not UTF-8") from None
        except sqlite3.DatabaseError as error:
            raise self._damaged(error) from error

    def _verdict(self, row: tuple[Any, ...]) -> StoredVerdict:
        *values, digest = row
        if digest != _digest(tuple(values)):
            raise self._damaged(f"row {values[0]!r} does not match its digest")
        key, prompt, answer, parsed, reason, prompt_tokens, completion_tokens = values
        verdict = None if parsed is None else json.loads(parsed)
        return StoredVerdict(key, prompt, answer, verdict, reason, prompt_tokens, completion_tokens)

    def _damaged(self, problem: object) -> DataError:
        return DataError(
            f"{self.path}: the verdict store is damaged ({problem}); restore a copy, or move it away to ask for all "
            "verdicts again"
        )


def _row(one: StoredVerdict) -> tuple[str, str, str, str | None, str | None, int, int]:
    document = None if one.parsed is None else _DOCUMENTS.encode(one.parsed)
    reason = None if one.reason is None else well_formed(one.reason)
    prompt, answer = well_formed(one.prompt), well_formed(one.answer)
    return one.key, prompt, answer, document, reason, one.prompt_tokens, one.completion_tokens


def _digest(row: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(json.dumps(row).encode("ascii")).digest()[:16]
