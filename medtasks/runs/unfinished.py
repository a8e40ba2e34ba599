"""The replies of an unfinished run, saved to disk as they arrive.

Each command has its own directory: ``run.json`` describes the run, ``<task>.rank<N>.jsonl``
contains the replies to process N. Repeating an interrupted command reuses these replies and asks
only for the rest; ``medtasks score DIR`` scores what is there. The directory is removed when the
run finishes. The files are lines, not SQLite, whose write-ahead log does not work on the network
file systems that nodes share.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from pydantic import BaseModel, TypeAdapter, ValidationError

from medtasks.core.errors import DataError, reading
from medtasks.core.files import canonical_json
from medtasks.core.locks import held
from medtasks.core.replacement import replaced, temporary_beside
from medtasks.core.schema import first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.runs.find import PLAN
from medtasks.runs.manifest import RunManifest
from medtasks.runs.replies import Answer, Reply, Slot

SUFFIX = "_unfinished"

_LINE = TypeAdapter(Answer)


class RunPlan(BaseModel, frozen=True):
    """An unfinished run: its manifest before any reply, and its document numbers by task."""

    manifest: RunManifest
    documents: dict[str, tuple[int, ...]]


class _ReplyPlace(NamedTuple):
    """Where a reply is on disk, whether it is that of a failed request, and which attempt at a
    paced stream it belongs to.
    """

    path: Path
    begin: int
    failed: bool
    attempt: int


class AnswerStore:
    """The replies to a command's requests on disk: those of this process are appended, and those of
    all processes and of earlier, unfinished runs of the command are read when they are needed.

    A response is never replaced by a later failure, unless a paced stream was started again: then
    only the replies of its last attempt count.
    """

    def __init__(self, folder: Path, rank: int = 0) -> None:
        """Locks the files of the process ``rank`` in ``folder``, and indexes all replies there.

        Raises:
            UsageError: another process holds the lock.
        """
        self.folder = folder
        self.rank = rank
        self._places: dict[bytes, _ReplyPlace] = {}  # by the key of the request
        self._files: dict[Path, IO[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._open = contextlib.ExitStack()
        lock = held(
            folder / f"rank{rank}",
            "filled with replies to the same command",
            ", or give another --output_path",
        )
        self._open.enter_context(lock)
        for path, begin, answer in _read_lines(folder):
            self._note(answer, path, begin)

    def _note(self, answer: Answer, path: Path, begin: int) -> None:
        """Remember where a reply is, if it replaces the one before."""
        reply = answer.reply
        place = _ReplyPlace(path, begin, reply.failed is not None, reply.attempt)
        before = self._places.get(answer.slot.key)
        if before is None or _replaces(place, before):
            self._places[answer.slot.key] = place

    def is_answered(self, slot: Slot) -> bool:
        """Whether there is a response to a request."""
        place = self._places.get(slot.key)
        return place is not None and not place.failed

    @property
    def answered(self) -> int:
        """The number of requests with a response."""
        return sum(not place.failed for place in self._places.values())

    @property
    def is_empty(self) -> bool:
        """Whether no process has received a reply."""
        return not any(path.stat().st_size for path in self.folder.glob("*.rank*.jsonl"))

    def reply(self, slot: Slot) -> Reply | None:
        """The reply to a request, read from disk; None if there is none."""
        place = self._places.get(slot.key)
        if place is None:
            return None
        stream = self._file(place.path)
        stream.seek(place.begin)
        return _LINE.validate_python(json.loads(stream.readline())).reply

    def _file(self, path: Path) -> IO[bytes]:
        """The open file; opening one for each reply is slow on network file systems."""
        if path not in self._files:
            self._files[path] = self._open.enter_context(path.open("a+b"))
        return self._files[path]

    def write_plan(self, plan: RunPlan) -> None:
        """Write ``run.json`` atomically, replacing an earlier one; see :func:`read_plan`."""
        content = canonical_json(plan.model_dump(mode="json"), indent=1)
        with replaced(self.folder / PLAN) as partial:
            partial.write_text(content + "\n", encoding="utf-8")

    def add(self, answers: Iterable[Answer]) -> None:
        """Append replies and sync them to disk, so that they survive a crash of the process or the
        machine.
        """
        by_task: dict[str, list[Answer]] = {}
        for answer in answers:
            by_task.setdefault(answer.slot.task, []).append(answer)
        for task, added in by_task.items():
            path = self.folder / f"{task}.rank{self.rank}.jsonl"
            begins = _append_lines(self._file(path), added)
            for answer, begin in zip(added, begins, strict=True):
                self._note(answer, path, begin)

    def close(self) -> None:
        """Close the files and release the lock."""
        with contextlib.suppress(OSError):  # a full disk, which `add` has reported
            self._open.close()
        self._files = {}

    def remove(self) -> None:
        """Close the store and delete its directory at once, when the replies are in the result
        directory.
        """
        self.close()
        with contextlib.suppress(OSError), temporary_beside(self.folder) as removed:
            self.folder.rename(removed / self.folder.name)


def _replaces(place: _ReplyPlace, before: _ReplyPlace) -> bool:
    """Whether a later reply replaces the one ``before``, as `Reply.replaces` says."""
    return before.failed or not place.failed or place.attempt > before.attempt


def _append_lines(stream: IO[bytes], answers: Sequence[Answer]) -> list[int]:
    """Append a line for each reply and sync the file; returns the bytes at which the lines
    begin.
    """
    stream.seek(0, os.SEEK_END)
    begins: list[int] = []
    for answer in answers:
        stream.write(b"\n")  # first: a killed process may have left part of a line
        begins.append(stream.tell())
        # in ASCII: a response may have half a surrogate pair
        line = json.dumps(_LINE.dump_python(answer, exclude_none=True))
        stream.write(line.encode())
    stream.flush()
    os.fsync(stream.fileno())
    return begins


def run_of(folder: Path) -> str | None:
    """The name of the run to which the replies of the first process belong."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / "rank0.run").read_text(encoding="utf-8")
    return None


def continue_run(folder: Path, rank: int, run: str) -> None:
    """Note that the replies of the process ``rank`` belong to ``run``; delete those of other runs.

    Another run is finished: its first process, on another node, could not delete the replies on
    this one. Replies without a noted run are kept.
    """
    for path in folder.glob("rank*.run"):
        if path.read_text(encoding="utf-8") != run:
            for replies in folder.glob(f"*.{path.stem}.jsonl"):
                replies.unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    with replaced(folder / f"rank{rank}.run") as partial:
        partial.write_text(run, encoding="utf-8")


def read_answers(folder: Path, task: str = "*") -> list[Answer]:
    """The replies in ``folder`` of one task or of all; one per request, the last that did not fail,
    else the last.
    """
    answers: dict[bytes, Answer] = {}
    for _, _, answer in _read_lines(folder, task):
        earlier = answers.get(answer.slot.key)
        if earlier is None or answer.reply.replaces(earlier.reply):
            answers[answer.slot.key] = answer
    return list(answers.values())


def read_work(folder: Path) -> dict[int, list[Answer]]:
    """All replies in ``folder`` without their texts, also of requests that were sent again, by
    process.
    """
    answers: dict[int, list[Answer]] = {}
    for path, _, answer in _read_lines(folder):
        slot = replace(answer.slot, prompt="")
        reply = replace(answer.reply, text="", probabilities=None)
        rank = int(path.stem.rpartition(".rank")[2])
        answers.setdefault(rank, []).append(Answer(slot, reply))
    return answers


def _read_lines(folder: Path, task: str = "*") -> Iterator[tuple[Path, int, Answer]]:
    """The replies, each with its file and the byte at which its line begins."""
    for path in sorted(folder.glob(f"{task}.rank*.jsonl")):
        begin = 0
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                answer = _answer_in(line, path, number)
                if answer is not None:
                    yield path, begin, answer
                begin += len(line)


def _answer_in(line: bytes, path: Path, number: int) -> Answer | None:
    """The reply in a line; None if the line is empty, or cut off by a crash."""
    try:
        fields = json.loads(line)
    except ValueError:
        return None
    try:
        return _LINE.validate_python(fields)
    except ValidationError as error:
        problem = f"{path}, line {number}: {first_problem(error)}; remove the line."
        raise DataError(problem) from error


def read_plan(folder: Path) -> RunPlan:
    """The plan of the unfinished run in ``folder``."""
    path = folder / PLAN
    try:
        with reading(path, "run the command again"):
            return model_from_json(RunPlan, path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; run the command again.") from error


def by_document(answers: Sequence[Answer], task: str) -> dict[int, dict[int, Answer]]:
    """The final replies to the documents of ``task``, by document number and repeat."""
    by_number: dict[int, dict[int, Answer]] = {}
    for answer in answers:
        slot = answer.slot
        if slot.task == task and slot.outcome:
            by_number.setdefault(slot.doc_id, {})[slot.repeat] = answer
    return by_number
