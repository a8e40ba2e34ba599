"""Batches that fail: halved until what cannot be answered is alone, and nothing of them held in memory meanwhile."""

from __future__ import annotations

import weakref
from pathlib import Path

from medtasks.harness.sending import Sender
from medtasks.runs.replies import Reply, Slot
from medtasks.runs.run import AnswerStore, read_work


class Tensor:
    """What a back-end may have on its device when it fails."""


def test_the_one_bad_request_fails_alone_and_a_failed_batch_holds_no_memory(tmp_path: Path) -> None:
    slots = [Slot("task", number, 0, f"prompt {number}") for number in range(8)]
    held: list[weakref.ref[Tensor]] = []
    alive: list[int] = []

    def call(batch: list[int]) -> list[Reply]:
        alive.append(sum(one() is not None for one in held))
        tensor = Tensor()
        held.append(weakref.ref(tensor))
        if 5 in batch:
            raise RuntimeError("CUDA out of memory")
        return [Reply(f"answer {number}") for number in batch]

    store = AnswerStore(tmp_path / "answers")
    Sender(store).ask(slots, [range(8)], call)

    replies = [store.reply(slot) or Reply.failure("no reply") for slot in slots]
    assert [reply.failed for reply in replies] == [None] * 5 + ["RuntimeError: CUDA out of memory"] + [None] * 2
    assert [reply.text for reply in replies[:3]] == ["answer 0", "answer 1", "answer 2"]
    assert len(alive) == 7
    assert not any(alive)


def test_each_reply_is_stored_with_its_share_of_the_time(tmp_path: Path) -> None:
    slots = [Slot("task", number, 0, f"prompt {number}") for number in range(5)]
    store = AnswerStore(tmp_path / "answers")

    def call(batch: list[int]) -> list[Reply]:
        if batch == [2, 3, 4]:  # two replies arrive before the batch is done
            sender.keep([(slots[2], Reply("early"))])
            sender.keep([(slots[3], Reply("later"))])
        return [Reply(f"answer {number}") for number in batch]

    sender = Sender(store, memory=lambda: (None, 77))
    sender.ask(slots, [[0], [2, 3, 4]], call)
    sender.keep([(Slot("task", 5, 0, ""), Reply("outcome of rounds"))], asked=False)

    (kept,) = read_work(tmp_path / "answers").values()
    works = {one.slot.doc_id: one.reply.work for one in kept}
    assert works[5] is None  # not asked
    timed = [work for work in works.values() if work is not None]
    assert [work.start for work in timed[1:]] == [work.end for work in timed[:-1]]
    assert timed[0].start >= 0
    assert all(abs(work.seconds - (work.end - work.start)) < 1e-5 for work in timed)  # each is alone in its interval
    assert {work.rss for work in timed} == {77}
