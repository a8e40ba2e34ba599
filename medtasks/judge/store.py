"""Stored verdicts, in one SQLite file.

None is lost when the process is killed, and none is requested twice.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tenacity import retry, retry_if_exception_message, stop_after_delay, wait_fixed

from medtasks.core.errors import DataError, UsageError
from medtasks.core.text import well_formed
from medtasks.judge.reply import Ending

REPAIR = ":repair"  # suffix of the key of a repair request
SCHEMA_VERSION = 1
APPLICATION_ID = 0x6D745644  # "mtVD" in the file's header: marks a verdict store
LOCK_SECONDS = 60.0  # how long to wait for another process's transaction
LOG_PAGES = 32_000  # of 4 kB; a checkpoint of the log blocks all requests in flight for 10 to 20 ms

_CREATE = f"""BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS verdicts (
    key TEXT PRIMARY KEY, prompt TEXT NOT NULL, answer TEXT NOT NULL, parsed TEXT, reason TEXT,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, digest BLOB NOT NULL
);
PRAGMA user_version = {SCHEMA_VERSION};
PRAGMA application_id = {APPLICATION_ID};
COMMIT"""
_COLUMNS = "key, prompt, answer, parsed, reason, prompt_tokens, completion_tokens, digest"
_GET = f"SELECT {_COLUMNS} FROM verdicts WHERE key IN (?, ?) ORDER BY key"
_PUT = f"""REPLACE INTO verdicts ({_COLUMNS}) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8
    WHERE NOT EXISTS (SELECT 1 FROM verdicts WHERE key = ?1 AND parsed IS NOT NULL)"""
_FORGET = "DELETE FROM verdicts WHERE key = ? AND parsed IS NULL"


class StoredVerdict(NamedTuple):
    """One answered request.

    ``parsed`` is the valid verdict as JSON, or None. Then ``reason`` is why the answer is not a
    verdict, or how it ended.
    """

    key: str
    prompt: str
    answer: str
    parsed: str | None
    reason: str | None
    prompt_tokens: int
    completion_tokens: int

    @property
    def ending(self) -> Ending:
        """How the answer ended."""
        for ending in (Ending.CUT, Ending.REFUSED):
            if self.reason == ending.value:
                return ending
        return Ending.COMPLETE


class VerdictStore:
    """Verdict per key, in the SQLite file ``path`` (created if missing).

    Several processes or threads may share the file. Each `put` is a transaction of its own in a
    write-ahead log, so a killed process loses nothing. Every row has a digest of its contents,
    because SQLite does not detect damage within texts. Lone surrogates are stored as U+FFFD.

    Raises:
        DataError: the file is damaged, not a verdict store, or of another schema version. It is not
            changed.
        UsageError: the file cannot be opened, read or written, or another process locks it for over
            a minute.
    """

    def __init__(self, path: Path) -> None:
        self.path = Path(path)
        with self._errors_named():
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(
                self.path, timeout=LOCK_SECONDS, isolation_level=None
            )
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def _prepare(self) -> None:
        """Check that the file is a verdict store, or make it one, and set how it is written."""
        tables = self._number("SELECT count(*) FROM sqlite_master")
        if tables:
            self._require_verdict_store()
        self._switch_to_log()
        # a power cut may lose the last rows, no kill
        self._connection.execute("PRAGMA synchronous = NORMAL")
        self._connection.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
        if not tables:
            self._connection.executescript(_CREATE)

    def _require_verdict_store(self) -> None:
        """Refuse a database of another kind, or of another schema version."""
        if self._number("PRAGMA application_id") != APPLICATION_ID:
            raise DataError(
                f"{self.path}: is another kind of database, not a verdict store; name another file"
            )
        version = self._number("PRAGMA user_version")
        if version != SCHEMA_VERSION:
            raise DataError(
                f"{self.path}: found a verdict store of schema version {version}, expected "
                f"{SCHEMA_VERSION}; use the medtasks version that created it, or another file"
            )

    def _number(self, query: str) -> int:
        return int(self._connection.execute(query).fetchone()[0])

    @retry(
        retry=retry_if_exception_message(match=".*locked"),
        stop=stop_after_delay(LOCK_SECONDS),
        wait=wait_fixed(0.02),
        reraise=True,
    )
    def _switch_to_log(self) -> None:
        # SQLite itself does not wait here while another process does the same
        self._connection.execute("PRAGMA journal_mode = WAL")

    def __enter__(self) -> VerdictStore:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def get(self, key: str) -> list[StoredVerdict]:
        """The stored answers to a question: to its prompt, then to its repair request."""
        stored = []
        with self._errors_named():
            for *values, digest in self._connection.execute(_GET, (key, key + REPAIR)):
                if digest != _row_hash(values):
                    raise self._damaged(f"row {values[0]!r} does not match its digest")
                stored.append(StoredVerdict(*values))
        return stored

    def forget_repair(self, key: str) -> None:
        """Forget the answer to the repair request of a question, unless it is a verdict."""
        with self._errors_named():
            self._connection.execute(_FORGET, (key + REPAIR,))

    def put(self, verdict: StoredVerdict) -> bool:
        """Store at once; False if a valid verdict of the key was already stored, which stays."""
        row: list[Any] = []
        for value in verdict:
            row.append(well_formed(value) if isinstance(value, str) else value)
        with self._errors_named():
            return self._connection.execute(_PUT, (*row, _row_hash(row))).rowcount > 0

    @contextlib.contextmanager
    def _errors_named(self) -> Iterator[None]:
        """Within the block, errors of SQLite name the file, and what to do."""
        try:
            yield
        except UnicodeDecodeError:  # raised by sqlite3 while it reports text that is not UTF-8
            raise self._damaged("a text is not UTF-8") from None
        except (OSError, sqlite3.Error) as error:
            reason = str(error).partition(" with text ")[0]  # what follows is a prompt or an answer
            if _is_damage(error, reason):
                raise self._damaged(reason) from None
            raise UsageError(
                f"{self.path}: the verdict store cannot be used ({reason}); give a file on a "
                "local disk with --store, or its directory with MEDTASKS_CACHE"
            ) from error

    def _damaged(self, problem: object) -> DataError:
        return DataError(
            f"{self.path}: the verdict store is damaged ({problem}); restore a copy, or move it "
            "away to ask for all verdicts again"
        )


def _is_damage(error: Exception, reason: str) -> bool:
    """Whether an error is about the contents of the file, rather than access to it."""
    if "malformed" in reason or "decode" in reason:
        return True
    return not isinstance(error, OSError | sqlite3.OperationalError | sqlite3.ProgrammingError)


def _row_hash(row: Sequence[Any]) -> bytes:
    return hashlib.sha256(json.dumps(row).encode("ascii")).digest()[:16]
