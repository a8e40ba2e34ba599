"""Replies saved to disk as they arrive, before they are scored.

Each command has its own directory (:func:`folder_key`): ``run.json`` describes the run, ``<task>.rank<N>.jsonl``
contains the replies to process N. Repeating an interrupted command reuses these replies and asks only for the rest;
``medtasks score DIR`` scores what is there. The directory is removed when the run finishes.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.core.files import canonical_json, replaced, temporary_beside
from medtasks.core.schema import first_problem
from medtasks.runs.find import PLAN
from medtasks.runs.manifest import RunManifest
from medtasks.runs.replies import Answer, Reply, Slot

SUFFIX = "_unfinished"


_LINE = TypeAdapter(Answer)


class Plan(BaseModel, frozen=True):
    """An unfinished run: its manifest before any reply, and its document numbers by task."""

    manifest: RunManifest
    documents: dict[str, tuple[int, ...]]


def folder_key(identity: Mapping[str, Any]) -> str:
    """First 12 hex digits of the SHA-256 of everything that identifies a command."""
    return hashlib.sha256(canonical_json(identity).encode()).hexdigest()[:12]


class AnswerStore:
    """Appends replies to the files of one process; a batch is on disk when :meth:`add` returns.

    Replies are read from disk when they are needed. Those of earlier, unfinished runs of the command are found as well,
    of whatever process.

    Args:
        folder: the command's directory; created if missing.
        rank: of this process among those that run the command.

    Raises:
        UsageError: another process with that rank is using the directory.
        DataError: as :func:`read_answers`.
        OSError: the directory cannot be written.
    """

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self.folder = folder
        self.rank = rank
        self._files: dict[str, tuple[Path, IO[bytes]]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = (folder / f"rank{rank}.lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.close()
            raise UsageError(
                f"{folder}: another process runs the same command at this time; wait for it, or give another "
                "--output_path."
            ) from error
        except OSError:  # a file system without locks
            pass
        self._readers: dict[Path, IO[bytes]] = {}
        self._places: dict[bytes, tuple[Path, int]] = {}
        self._failed: set[bytes] = set()
        for path, begin, answer in _read_lines(folder):
            self._note(answer, path, begin)

    def _note(self, answer: Answer, path: Path, begin: int) -> None:
        """Remember where a reply is: the last one to its request, but a failed one never replaces a response."""
        key, failed = answer.slot.key, answer.reply.failed is not None
        if failed and key in self._places and key not in self._failed:
            return
        self._places[key] = (path, begin)
        (self._failed.add if failed else self._failed.discard)(key)

    def is_answered(self, slot: Slot) -> bool:
        """Whether the request has a response."""
        key = slot.key
        return key in self._places and key not in self._failed

    @property
    def answered(self) -> int:
        """Number of requests with a response."""
        return len(self._places) - len(self._failed)

    def reply(self, slot: Slot) -> Reply | None:
        """The reply to a request, read from disk; None if there is none."""
        if slot.key not in self._places:
            return None
        path, begin = self._places[slot.key]
        if path not in self._readers:
            self._readers[path] = path.open("rb")
        self._readers[path].seek(begin)
        answer = _read_line(path, self._readers[path].readline())
        return None if answer is None else answer.reply

    def write_plan(self, plan: Plan) -> None:
        """Write ``run.json`` atomically, replacing an earlier one; see :func:`read_plan`."""
        with replaced(self.folder / PLAN) as partial:
            partial.write_text(canonical_json(plan.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8")

    def add(self, answers: Iterable[Answer]) -> None:
        """Append replies and sync them to disk, so that they survive a crash of the process or the machine."""
        touched, added = set(), []
        for answer in answers:
            path, file = self._file(answer.slot.task)
            added.append((answer, path, file.tell()))
            # in ASCII: a response may have half a surrogate pair
            file.write(json.dumps(_LINE.dump_python(answer, exclude_none=True)).encode() + b"\n")
            touched.add(file)
        for file in touched:
            file.flush()
            os.fsync(file.fileno())
        for one in added:
            self._note(*one)

    def _file(self, task: str) -> tuple[Path, IO[bytes]]:
        if task not in self._files:
            path = self.folder / f"{task}.rank{self.rank}.jsonl"
            torn = path.is_file() and path.stat().st_size > 0 and path.read_bytes()[-1:] != b"\n"
            self._files[task] = (path, path.open("ab"))
            if torn:  # the process was killed while writing a line
                self._files[task][1].write(b"\n")
        return self._files[task]

    @property
    def is_empty(self) -> bool:
        """Whether no process has received a reply."""
        return not any(path.stat().st_size for path in self.folder.glob("*.rank*.jsonl"))

    def close(self) -> None:
        """Close the files and release the lock."""
        for file in (*(file for _, file in self._files.values()), *self._readers.values(), self._lock):
            with contextlib.suppress(OSError):  # a full disk, which `add` has reported
                file.close()
        self._files, self._readers = {}, {}

    def remove(self) -> None:
        """Close the store and delete its directory at once, when the replies are in the result directory."""
        self.close()
        with contextlib.suppress(OSError), temporary_beside(self.folder) as removed:
            self.folder.rename(removed / self.folder.name)


def run_of(folder: Path, rank: int = 0) -> str | None:
    """The name of the run to which the replies of a process belong; None if there is none yet."""
    with contextlib.suppress(FileNotFoundError):
        return _run_file(folder, rank).read_text(encoding="utf-8")
    return None


def name_run(folder: Path, rank: int, run: str) -> None:
    """Note that the replies of a process belong to ``run``."""
    folder.mkdir(parents=True, exist_ok=True)
    with replaced(_run_file(folder, rank)) as partial:
        partial.write_text(run, encoding="utf-8")


def drop_other_runs(folder: Path, run: str) -> None:
    """Delete replies that belong to another run than ``run``: the first process, on another node, has finished it and
    could not delete them here. Replies whose run is not noted stay."""
    for path in folder.glob("rank*.run"):
        rank = path.stem.removeprefix("rank")
        if path.read_text(encoding="utf-8") != run:
            for replies in folder.glob(f"*.rank{rank}.jsonl"):
                replies.unlink(missing_ok=True)


def _run_file(folder: Path, rank: int) -> Path:
    return folder / f"rank{rank}.run"


def read_answers(folder: Path, task: str = "*") -> list[Answer]:
    """The replies in ``folder`` from all processes, of one task or of all; one per request: the last that did not fail,
    else the last one.

    A line cut off by a crash is skipped, so its request counts as unanswered.

    Raises:
        DataError: a complete line is not a reply; names file and line.
    """
    found: dict[bytes, Answer] = {}
    for _, _, answer in _read_lines(folder, task):
        earlier = found.get(answer.slot.key)
        if earlier is None or earlier.reply.failed is not None or answer.reply.failed is None:
            found[answer.slot.key] = answer
    return list(found.values())


def read_work(folder: Path) -> dict[int, list[Answer]]:
    """All replies in ``folder`` without their texts, by the number of their process, with those that were asked for
    again.

    Raises:
        DataError: as :func:`read_answers`.
    """
    found: dict[int, list[Answer]] = {}
    for path, _, answer in _read_lines(folder):
        rank = path.stem.rpartition(".rank")[2]
        light = Answer(replace(answer.slot, prompt=""), replace(answer.reply, text="", probabilities=None))
        found.setdefault(int(rank) if rank.isdecimal() else 0, []).append(light)
    return found


def _read_lines(folder: Path, task: str = "*") -> Iterator[tuple[Path, int, Answer]]:
    """Each reply, with its file and where it begins there."""
    for path in sorted(folder.glob(f"{task}.rank*.jsonl")):
        begin = 0
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                answer = _read_line(path, line, number)
                if answer is not None:
                    yield path, begin, answer
                begin += len(line)


def _read_line(path: Path, line: bytes, number: int = 0) -> Answer | None:
    if not line.strip():
        return None
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None  # cut off by a crash
    try:
        return _LINE.validate_python(fields)
    except ValidationError as error:
        raise DataError(f"{path}, line {number}: {first_problem(error)}; remove the line.") from error


def read_plan(folder: Path) -> Plan:
    """The plan of the unfinished run in ``folder``.

    Raises:
        DataError: its ``run.json`` is not valid; names the field.
        MedtasksError: its ``run.json`` cannot be read.
    """
    path = folder / PLAN
    try:
        return Plan.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; run the command again.") from error
    except OSError as error:
        raise MedtasksError(f"{path}: cannot be read ({error.strerror}).") from error


def by_document(answers: Sequence[Answer], task: str) -> dict[int, dict[int, Answer]]:
    """The final replies to the documents of ``task``, by document number and repeat."""
    found: dict[int, dict[int, Answer]] = {}
    for answer in answers:
        if answer.slot.task == task and answer.slot.outcome:
            found.setdefault(answer.slot.doc_id, {})[answer.slot.repeat] = answer
    return found
