"""Adjudication by several processes: what one interpreter can put and read is less than a quick endpoint can answer.

This process begins with all questions. Each worker is an interpreter of its own (``python -m
medtasks.judge.parallel``); once it has started it gets its part of those that are left on standard input, and says on
standard output what became of them. All write into one verdict store. Questions that are the same stay together, so
none is asked twice. A worker ends when its standard input does, so none outlives the process that started it.

The places in flight that the settings allow are always in use, and never more: this process has all until a worker has
its questions, and whoever is done leaves its places to another.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import hashlib
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from medtasks.errors import MedtasksError
from medtasks.judge.adjudicate import AdjudicationRun, Progress, adjudicate
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.judgement import Adjudication, Judgement, Question
from medtasks.judge.places import Places
from medtasks.judge.scales import Rubric
from medtasks.judge.settings import Budget, JudgeSettings
from medtasks.judge.store import VerdictStore

__all__ = ["adjudicate_all", "adjudicate_in_processes", "useful_processes"]

LEAST_QUESTIONS = 1000  # for each worker: starting one takes as long as judging some hundreds
LEAST_CONCURRENCY = 16  # for each worker
OFTEN = 0.2  # seconds between two reports of a worker
PART = 250  # questions
STARTED = "started"  # a worker's first word


@dataclass(frozen=True)
class _Task:
    """What a worker is told first; its questions follow in parts, None after the last, then its places."""

    rubric: Rubric
    settings: JudgeSettings
    store: Path


async def adjudicate_all(
    questions: Sequence[Question],
    rubric: Rubric,
    settings: JudgeSettings,
    store: VerdictStore,
    progress: Progress | None = None,
) -> Adjudication:
    """:func:`medtasks.judge.adjudicate.adjudicate` in this process or, where that pays off, in several.

    Raises:
        MedtasksError: as there, and as :func:`adjudicate_in_processes`.
    """
    processes = useful_processes(questions, settings)
    if processes == 1:
        return await adjudicate(questions, rubric, JudgeClient(settings), store, progress)
    return await adjudicate_in_processes(questions, rubric, settings, store, processes, progress)


def useful_processes(questions: Sequence[Question], settings: JudgeSettings) -> int:
    """How many processes pay off for so many questions; 1 where a budget must be kept or images are shown."""
    if settings.budget != Budget() or any(question.images for question in questions):
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, len(questions) // LEAST_QUESTIONS, settings.concurrency // LEAST_CONCURRENCY))


async def adjudicate_in_processes(
    questions: Sequence[Question],
    rubric: Rubric,
    settings: JudgeSettings,
    store: VerdictStore,
    processes: int,
    progress: Progress | None = None,
) -> Adjudication:
    """As :func:`medtasks.judge.adjudicate.adjudicate`, by this process and ``processes - 1`` workers.

    They share ``settings.concurrency`` and the store's file.

    Raises:
        MedtasksError: as there, or a worker ended before its time; what was answered is in the store.
    """
    client = JudgeClient(settings)
    loop, inbox = asyncio.get_running_loop(), SimpleQueue[tuple[_Worker, Any]]()
    each, rest = divmod(settings.concurrency, processes)
    workers = [_Worker(inbox, each + (place < rest)) for place in range(1, processes)]
    here: list[Any] = [0, Spent()]

    def tell() -> None:
        if progress is not None:
            done = here[0] + sum(len(worker.judgements) for worker in workers)
            progress(done, len(questions), _sum([here[1], *(worker.spent for worker in workers)]))

    def note(done: int, _: int, spent: Spent) -> None:
        here[:] = [done, spent]
        tell()

    async def begin(worker: _Worker) -> None:
        """Give a worker that has started its part of the questions that nobody has begun."""
        if not digests:
            digests.update(await asyncio.to_thread(lambda: {one.sample_id: _digest(one, rubric) for one in questions}))
        asked = {digests[question.sample_id] for question in run.prepared}
        place = workers.index(worker) + 1

        def belongs(question: Question) -> bool:
            digest = digests[question.sample_id]
            return digest % processes == place and digest not in asked

        given = run.withdraw(belongs)
        await asyncio.to_thread(worker.give, _Task(rubric, settings, store.path), given)
        places.started(worker)

    run = AdjudicationRun(questions, rubric, client, store, note)
    digests: dict[str, int] = {}
    places = Places(client)
    mine = asyncio.ensure_future(run.judge())
    mine.add_done_callback(lambda _: places.left())
    follower = _Follower(
        workers, inbox, tell, places, lambda worker: asyncio.run_coroutine_threadsafe(begin(worker), loop)
    )
    theirs = asyncio.ensure_future(asyncio.to_thread(follower.follow))
    gc.freeze()  # looking for cycles among thousands of questions would hold up all that is in flight
    try:
        found, _ = await asyncio.gather(mine, theirs)
    finally:
        gc.unfreeze()
        mine.cancel()
        for worker in workers:
            worker.end()
        await asyncio.gather(mine, theirs, return_exceptions=True)
    judgements = {**found.judgements, **{name: one for worker in workers for name, one in worker.judgements.items()}}
    spent = _sum([found.spent, *(worker.spent for worker in workers)])
    return Adjudication({question.sample_id: judgements[question.sample_id] for question in questions}, spent)


def _digest(question: Question, rubric: Rubric) -> int:
    """A number that questions have in common which the rubric cannot tell apart."""
    seen = [question.document.get(field) for field in rubric.sees]
    text = json.dumps([seen, question.response], sort_keys=True, default=str).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


@dataclass(frozen=True)
class _Follower:
    """Listens to the workers until each has said what became of its questions."""

    workers: Sequence[_Worker]
    inbox: SimpleQueue[tuple[_Worker, Any]]
    tell: Callable[[], None]
    places: Places
    begin: Callable[[_Worker], Future[None]]

    def follow(self) -> None:
        busy = set(self.workers)
        while busy:
            worker, message = self.inbox.get()
            if isinstance(message, BaseException):
                raise message
            if message is None:
                if not worker.finished:
                    raise MedtasksError(
                        f"a judging process ended with exit code {worker.process.wait()} before it was done; what was "
                        "answered is kept, the same command goes on."
                    )
                busy.discard(worker)
            elif message == STARTED:
                self.begin(worker).add_done_callback(functools.partial(self._failed, worker))
            else:
                fresh, worker.spent, worker.finished = message
                worker.judgements.update(fresh)
                if worker.finished:
                    self.places.ended(worker)
                self.tell()

    def _failed(self, worker: _Worker, beginning: Future[None]) -> None:
        """Let what kept a worker from beginning end the whole."""
        error = None if beginning.cancelled() else beginning.exception()
        if error is not None:
            self.inbox.put((worker, error))


class _Worker:
    """A process, and what it said so far."""

    def __init__(self, inbox: SimpleQueue[tuple[_Worker, Any]], places: int) -> None:
        self.spent, self.places, self.finished = Spent(), places, False
        self.judgements: dict[str, Judgement] = {}
        command = [sys.executable, "-m", "medtasks.judge.parallel"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # Started here, not by whoever follows: this side may fail before anybody does.
        self._listening = threading.Thread(target=self._listen, args=(inbox,), daemon=True)
        self._listening.start()

    def _listen(self, inbox: SimpleQueue[tuple[_Worker, Any]]) -> None:
        assert self.process.stdout is not None
        try:
            while True:
                inbox.put((self, pickle.load(self.process.stdout)))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):  # ValueError: ended before it had begun
            inbox.put((self, None))

    def give(self, task: _Task, questions: Sequence[Question]) -> None:
        """Tell it what to do; in parts, since nothing else runs while one is packed."""
        self._tell(task)
        for begin in range(0, len(questions), PART):
            self._tell(questions[begin : begin + PART])
        self._tell(None)

    def use_places(self, places: int) -> None:
        """Let it have so many requests in flight; the first call lets it begin."""
        self._tell(places)

    def _tell(self, message: Any) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # it has ended, as whoever listens to it hears
            pickle.dump(message, self.process.stdin)
            self.process.stdin.flush()

    def end(self) -> None:
        """Stop it, where it still runs; whoever listens to it hears that it ended."""
        self.process.terminate()
        self.process.wait()
        self._listening.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what it did not read
                pipe.close()


def _sum(parts: Iterable[Spent]) -> Spent:
    whole = Spent()
    for part in parts:
        for one in fields(Spent):
            setattr(whole, one.name, getattr(whole, one.name) + getattr(part, one.name))
    return whole


def _work(given: BinaryIO, said: BinaryIO) -> None:
    """A worker's life."""
    import openai  # noqa: F401 - before the first place is taken: it takes a second

    _say(said, STARTED)
    task: _Task = pickle.load(given)
    questions: list[Question] = []
    while (part := pickle.load(given)) is not None:
        questions += part
    gc.freeze()  # as in the process that started this one
    last = 0.0

    async def judge(store: VerdictStore) -> Spent:
        client, first = JudgeClient(task.settings), asyncio.Event()

        def use(places: int) -> None:
            client.use_places(places)
            first.set()

        def report(_: int, __: int, spent: Spent) -> None:
            nonlocal last
            if time.monotonic() - last >= OFTEN:
                last = time.monotonic()
                fresh, run.fresh = run.fresh, {}
                _say(said, (fresh, spent, False))

        loop = asyncio.get_running_loop()
        threading.Thread(target=_listen, args=(given, loop, use), daemon=True).start()
        await first.wait()
        run = AdjudicationRun(questions, task.rubric, client, store, report)
        found = await run.judge()
        _say(said, (run.fresh, found.spent, True))
        return found.spent

    try:
        with VerdictStore(task.store) as store:
            asyncio.run(judge(store))
    except MedtasksError as error:
        _say(said, error)


def _say(said: BinaryIO, message: Any) -> None:
    pickle.dump(message, said)
    said.flush()


def _listen(given: BinaryIO, loop: asyncio.AbstractEventLoop, use: Callable[[int], None]) -> None:
    """Hear of places; end when the process that started us does: another run may already ask what we would ask."""
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            places: int = pickle.load(given)
            with contextlib.suppress(RuntimeError):  # we are done, and the loop is closed
                loop.call_soon_threadsafe(use, places)
    os._exit(1)


if __name__ == "__main__":
    # Under this name, so that both sides mean the same classes.
    from medtasks.judge import parallel

    # What anything prints must not get between the messages.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    parallel._work(sys.stdin.buffer, channel)
    channel.close()
    os._exit(0)  # a thread still listens, and an interpreter that ends under it calls that a fatal error
