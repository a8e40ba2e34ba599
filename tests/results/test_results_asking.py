"""Batches that fail: halved until what cannot be answered is alone, and nothing of them held in memory meanwhile."""

from __future__ import annotations

import weakref
from pathlib import Path

from medtasks.results.answers import AnswerStore, Slot
from medtasks.results.asking import Asker
from medtasks.results.replies import Reply


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

    replies = Asker(AnswerStore(tmp_path / "answers"), []).ask(slots, [range(8)], call)

    assert [reply.failed for reply in replies] == [None] * 5 + ["RuntimeError: CUDA out of memory"] + [None] * 2
    assert [reply.text for reply in replies[:3]] == ["answer 0", "answer 1", "answer 2"]
    assert len(alive) == 7
    assert not any(alive)
