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
from typing import IO

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


class Plan(BaseModel, frozen=True):
    """An unfinished run: its manifest before any reply, and its document numbers by task."""

    manifest: RunManifest
    documents: dict[str, tuple[int, ...]]


class AnswerStore:
    """Appends replies to the files of the process ``rank``, and reads them when they are needed,
    also those of earlier, unfinished runs of the command, of whatever process.
    """

    def __init__(self, folder: Path, rank: int = 0) -> None:
        self.folder = folder
        self.rank = rank
        self._places: dict[
            bytes, tuple[Path, int, bool]
        ] = {}  # file, first byte, whether the request failed
        self._files: dict[Path, IO[bytes]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        self._open = contextlib.ExitStack()
        doing = "filled with replies to the same command"
        self._open.enter_context(
            held(folder / f"rank{rank}", doing, ", or give another --output_path")
        )
        for path, begin, answer in _read_lines(folder):
            self._note(answer, path, begin)

    def _note(self, answer: Answer, path: Path, begin: int) -> None:
        """Remember where a reply is: the last one to its request, but a failed one never replaces a
        response.
        """
        key, failed = answer.slot.key, answer.reply.failed is not None
        if not (failed and key in self._places and not self._places[key][2]):
            self._places[key] = (path, begin, failed)

    def is_answered(self, slot: Slot) -> bool:
        key = slot.key
        return key in self._places and not self._places[key][2]

    @property
    def answered(self) -> int:
        return sum(not failed for _, _, failed in self._places.values())

    @property
    def is_empty(self) -> bool:
        """Whether no process has received a reply."""
        return not any(path.stat().st_size for path in self.folder.glob("*.rank*.jsonl"))

    def reply(self, slot: Slot) -> Reply | None:
        """The reply to a request, read from disk; None if there is none."""
        if slot.key not in self._places:
            return None
        path, begin, _ = self._places[slot.key]
        stream = self._file(path)
        stream.seek(begin)
        return _LINE.validate_python(json.loads(stream.readline())).reply

    def _file(self, path: Path) -> IO[bytes]:
        if path not in self._files:  # opening a file for each reply is slow on network file systems
            self._files[path] = self._open.enter_context(path.open("a+b"))
        return self._files[path]

    def write_plan(self, plan: Plan) -> None:
        """Write ``run.json`` atomically, replacing an earlier one; see :func:`read_plan`."""
        with replaced(self.folder / PLAN) as partial:
            partial.write_text(
                canonical_json(plan.model_dump(mode="json"), indent=1) + "\n", encoding="utf-8"
            )

    def add(self, answers: Iterable[Answer]) -> None:
        """Append replies and sync them to disk, so that they survive a crash of the process or the
        machine.
        """
        by_task: dict[str, list[Answer]] = {}
        for answer in answers:
            by_task.setdefault(answer.slot.task, []).append(answer)
        for task, added in by_task.items():
            path = self.folder / f"{task}.rank{self.rank}.jsonl"
            stream, places = self._file(path), []
            stream.seek(0, os.SEEK_END)
            for answer in added:
                stream.write(b"\n")  # first: a killed process may have left part of a line
                places.append(stream.tell())
                # in ASCII: a response may have half a surrogate pair
                stream.write(json.dumps(_LINE.dump_python(answer, exclude_none=True)).encode())
            stream.flush()
            os.fsync(stream.fileno())
            for answer, begin in zip(added, places, strict=True):
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


def run_of(folder: Path) -> str | None:
    """The name of the run to which the replies of the first process belong."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / "rank0.run").read_text(encoding="utf-8")
    return None


def continue_run(folder: Path, rank: int, run: str) -> None:
    """Note that the replies of a process belong to ``run``, and delete those that belong to another
    one: the first process, on another node, has finished it and could not delete them here. Replies
    whose run is not noted stay.
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
    found: dict[bytes, Answer] = {}
    for _, _, answer in _read_lines(folder, task):
        earlier = found.get(answer.slot.key)
        if earlier is None or earlier.reply.failed is not None or answer.reply.failed is None:
            found[answer.slot.key] = answer
    return list(found.values())


def read_work(folder: Path) -> dict[int, list[Answer]]:
    """All replies in ``folder`` without their texts, also of requests that were sent again, by
    process.
    """
    found: dict[int, list[Answer]] = {}
    for path, _, answer in _read_lines(folder):
        light = Answer(
            replace(answer.slot, prompt=""), replace(answer.reply, text="", probabilities=None)
        )
        found.setdefault(int(path.stem.rpartition(".rank")[2]), []).append(light)
    return found


def _read_lines(folder: Path, task: str = "*") -> Iterator[tuple[Path, int, Answer]]:
    for path in sorted(folder.glob(f"{task}.rank*.jsonl")):
        begin = 0
        with path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                with contextlib.suppress(ValueError):  # empty, or cut off by a crash
                    fields = json.loads(line)
                    try:
                        yield path, begin, _LINE.validate_python(fields)
                    except ValidationError as error:
                        raise DataError(
                            f"{path}, line {number}: {first_problem(error)}; remove the line."
                        ) from error
                begin += len(line)


def read_plan(folder: Path) -> Plan:
    """The plan of the unfinished run in ``folder``."""
    path = folder / PLAN
    try:
        with reading(path, "run the command again"):
            return model_from_json(Plan, path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path}: {first_problem(error)}; run the command again.") from error


def by_document(answers: Sequence[Answer], task: str) -> dict[int, dict[int, Answer]]:
    """The final replies to the documents of ``task``, by document number and repeat."""
    found: dict[int, dict[int, Answer]] = {}
    for answer in answers:
        if answer.slot.task == task and answer.slot.outcome:
            found.setdefault(answer.slot.doc_id, {})[answer.slot.repeat] = answer
    return found
