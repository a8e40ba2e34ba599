"""Adjudication by several processes: what one interpreter can put and read is less than a quick endpoint can answer.

This process takes a share of the questions; each worker is an interpreter of its own (``python -m
medtasks.judge.parallel``) that gets another on standard input and says on standard output what became of it. All write
into one verdict store. Questions that are the same go to the same worker, so none is asked twice. A worker ends when
its standard input does, so none outlives the process that started it.

The places in flight that the settings allow are always in use, and never more: this process has all until a worker has
started, and whoever is done leaves its places to another.
"""

from __future__ import annotations

import asyncio
import contextlib
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
from dataclasses import dataclass, fields
from pathlib import Path
from queue import SimpleQueue
from typing import Any, BinaryIO

from medtasks.errors import MedtasksError
from medtasks.judge.adjudicate import Adjudication, Judgement, Progress, Question, adjudicate
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.places import Places
from medtasks.judge.scales import Rubric
from medtasks.judge.settings import Budget, JudgeSettings
from medtasks.judge.store import VerdictStore

__all__ = ["adjudicate_all", "adjudicate_in_processes", "useful_processes"]

LEAST_QUESTIONS = 1000  # for each worker: starting one takes as long as judging some hundreds
LEAST_CONCURRENCY = 16  # for each worker
OFTEN = 0.2  # seconds between two reports of a worker
STARTED = "started"  # a worker's first word


@dataclass(frozen=True)
class _Share:
    """What a worker is given; ``places`` in flight when it has started."""

    questions: list[Question]
    rubric: Rubric
    settings: JudgeSettings
    store: Path
    places: int


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
    shares: list[list[Question]] = [[] for _ in range(processes)]
    for question in questions:
        shares[_place(question, rubric, processes)].append(question)
    each, rest = divmod(settings.concurrency, processes)
    own, *others = [
        _Share(share, rubric, settings, store.path, each + (place < rest)) for place, share in enumerate(shares)
    ]
    inbox: SimpleQueue[tuple[_Worker, Any]] = SimpleQueue()
    workers = [_Worker(share, inbox) for share in others]
    here: list[Any] = [0, Spent()]

    def tell() -> None:
        if progress is not None:
            done = here[0] + sum(worker.done for worker in workers)
            progress(done, len(questions), _sum([here[1], *(worker.spent for worker in workers)]))

    def note(done: int, _: int, spent: Spent) -> None:
        here[:] = [done, spent]
        tell()

    client = JudgeClient(settings)
    places = Places(client)
    mine = asyncio.ensure_future(adjudicate(own.questions, rubric, client, store, note))
    mine.add_done_callback(lambda _: places.left())
    theirs = asyncio.ensure_future(asyncio.to_thread(_follow, workers, inbox, tell, places))
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


def _place(question: Question, rubric: Rubric, processes: int) -> int:
    """The worker of a question: the same one for questions that the rubric cannot tell apart."""
    seen = [question.document.get(field) for field in rubric.sees]
    text = json.dumps([seen, question.response], sort_keys=True, default=str).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") % processes


def _follow(
    workers: Sequence[_Worker], inbox: SimpleQueue[tuple[_Worker, Any]], tell: Callable[[], None], places: Places
) -> None:
    """Until every worker has said what became of its share."""
    busy = set(workers)
    while busy:
        worker, message = inbox.get()
        if isinstance(message, MedtasksError):
            raise message
        if message is None:
            if worker.judgements is _NONE_YET:
                raise MedtasksError(
                    f"a judging process ended with exit code {worker.process.wait()} before it was done; what was "
                    "answered is kept, the same command goes on."
                )
            busy.discard(worker)
            continue
        if message == STARTED:
            places.started(worker)
            continue
        worker.done, worker.spent, judgements = message
        if judgements is not None:
            worker.judgements = judgements
            places.ended(worker)
        tell()


_NONE_YET: dict[str, Judgement] = {}


class _Worker:
    """A process that has its share from the start, and what it said last; None in the inbox is its end."""

    def __init__(self, share: _Share, inbox: SimpleQueue[tuple[_Worker, Any]]) -> None:
        self.done, self.spent = 0, Spent()
        self.judgements = _NONE_YET
        self._share, self.places = share, share.places
        command = [sys.executable, "-m", "medtasks.judge.parallel"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        # Started here, not by whoever follows: this side may fail before anybody does.
        self._talking = threading.Thread(target=self._talk, args=(inbox,), daemon=True)
        self._talking.start()

    def _talk(self, inbox: SimpleQueue[tuple[_Worker, Any]]) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            pickle.dump(self._share, self.process.stdin)
            self.process.stdin.flush()
            while True:
                inbox.put((self, pickle.load(self.process.stdout)))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):  # ValueError: ended before it had begun
            inbox.put((self, None))

    def use_places(self, places: int) -> None:
        """Let it have so many requests in flight; the first call lets it begin."""
        assert self.process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, as whoever listens to it hears
            pickle.dump(places, self.process.stdin)
            self.process.stdin.flush()

    def end(self) -> None:
        """Stop it, where it still runs; whoever listens to it hears that it ended."""
        self.process.terminate()
        self.process.wait()
        self._talking.join()
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
    share: _Share = pickle.load(given)
    gc.freeze()  # the questions stay to the end: looking for cycles in them would hold up all that is in flight
    import openai  # noqa: F401 - before the first place is taken: it takes a second

    last = 0.0

    def report(done: int, _: int, spent: Spent) -> None:
        nonlocal last
        if time.monotonic() - last >= OFTEN:
            last = time.monotonic()
            _say(said, (done, spent, None))

    async def judge(store: VerdictStore) -> Adjudication:
        client, first = JudgeClient(share.settings), asyncio.Event()

        def use(places: int) -> None:
            client.use_places(places)
            first.set()

        loop = asyncio.get_running_loop()
        threading.Thread(target=_listen, args=(given, loop, use), daemon=True).start()
        _say(said, STARTED)
        await first.wait()
        return await adjudicate(share.questions, share.rubric, client, store, report)

    try:
        with VerdictStore(share.store) as store:
            found = asyncio.run(judge(store))
    except MedtasksError as error:
        _say(said, error)
        return
    _say(said, (len(found.judgements), found.spent, found.judgements))


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
