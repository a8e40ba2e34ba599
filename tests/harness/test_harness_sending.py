"""Batches that fail: halved until what cannot be answered is alone, and nothing of them held in
memory meanwhile.
"""

from __future__ import annotations

import fcntl
import weakref
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lmms_eval.api.instance import Instance

from medtasks.core.errors import UsageError
from medtasks.harness.isolation import GIVE_UP, NOT_SENT, isolated
from medtasks.harness.memory import PeakMemory
from medtasks.harness.requests import Requests
from medtasks.runs.replies import Answer, Reply, Slot
from medtasks.runs.unfinished import AnswerStore, read_answers, read_work


class Tensor:
    """What a back-end may have on its device when it fails."""


def test_the_one_bad_request_fails_alone_and_a_failed_batch_holds_no_memory() -> None:
    held: list[weakref.ref[Tensor]] = []
    alive: list[int] = []

    def answer(batch: list[Slot]) -> list[Reply]:
        alive.append(sum(one() is not None for one in held))
        tensor = Tensor()
        held.append(weakref.ref(tensor))
        if 5 in [slot.doc_id for slot in batch]:
            raise RuntimeError("CUDA out of memory")
        return [Reply(f"answer {slot.doc_id}") for slot in batch]

    slots = [Slot("task", number, 0, "") for number in range(8)]
    replies = [pair for part in isolated([slots], answer) for pair in part]

    assert [slot for slot, _ in replies] == slots
    assert [reply.failed for _, reply in replies] == [None] * 5 + [
        "RuntimeError: CUDA out of memory"
    ] + [None] * 2
    assert [reply.text for _, reply in replies[:3]] == ["answer 0", "answer 1", "answer 2"]
    assert len(alive) == 7
    assert not any(alive)


def test_a_task_whose_requests_all_fail_is_given_up_and_others_are_not() -> None:
    asked: list[Slot] = []

    def answer(batch: list[Slot]) -> list[Reply]:
        asked.extend(batch if len(batch) == 1 else ())
        return [Reply("B" if slot.task == "sound" else str(1 / 0)) for slot in batch]

    broken = [Slot("broken", number, 0, "") for number in range(GIVE_UP + 9)]
    sound = [Slot("sound", number, 0, "") for number in range(2)]
    batches = [broken[:10], broken[10:GIVE_UP], [*broken[GIVE_UP:], *sound]]
    replies = dict(pair for part in isolated(batches, answer) for pair in part)

    assert asked == broken[:GIVE_UP]
    reasons = ["ZeroDivisionError: division by zero"] * GIVE_UP + [NOT_SENT] * 9
    assert [replies[request].failed for request in broken] == reasons
    assert [replies[request].text for request in sound] == ["B", "B"]


def test_each_reply_is_stored_with_its_share_of_the_time(tmp_path: Path) -> None:
    def stream(asked: list[Any]) -> Iterator[list[tuple[int, Reply]]]:
        for place in range(len(asked)):
            yield [(place, Reply(f"answer {place}"))]

    answered = Requests(
        AnswerStore(tmp_path / "answers"), lambda: PeakMemory(None, 77), {"task"}, False
    )
    given = [
        Instance(
            "generate_until",
            (f"prompt {number}",),
            0,
            {"task": "task", "doc_id": number, "repeats": 1},
        )
        for number in range(5)
    ]
    answered.execute(SimpleNamespace(stream=stream, describe=dict), "generate_until", given)
    answered._keep([(Slot("task", 5, 0, ""), Reply("outcome of rounds"))], asked=False)

    (kept,) = read_work(tmp_path / "answers").values()
    works = {one.slot.doc_id: one.reply.work for one in kept}
    assert works[5] is None  # not asked
    timed = [work for work in works.values() if work is not None]
    assert [work.start for work in timed[1:]] == [work.end for work in timed[:-1]]
    assert timed[0].start >= 0
    assert all(
        abs(work.seconds - (work.end - work.start)) < 1e-5 for work in timed
    )  # each is alone in its interval
    assert {work.rss for work in timed} == {77}


def test_a_failure_replaces_no_response_and_a_line_cut_off_is_no_answer(tmp_path: Path) -> None:
    first, second = (Slot("task", number, 0, "?") for number in range(2))
    for rank, reply in enumerate((Reply("A"), Reply.failure("gone"))):
        store = AnswerStore(tmp_path, rank)
        store.add([Answer(first, reply)])
        store.close()
    with (tmp_path / "task.rank0.jsonl").open("ab") as stream:
        stream.write(b'\n{"slot": {"task"')  # the process was killed
    again = AnswerStore(tmp_path)
    assert again.reply(first) == Reply("A")
    assert (again.is_answered(first), again.is_answered(second)) == (True, False)
    again.add([Answer(second, Reply("B"))])
    assert again.reply(second) == Reply("B")
    again.close()
    assert [one.reply.text for one in read_answers(tmp_path)] == ["A", "B"]


def test_the_same_command_is_run_by_one_process_at_a_time(tmp_path: Path) -> None:
    with (tmp_path / ".rank0.lock").open("ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(
            UsageError,
            match="rank0: is being filled with replies to the same command by another proc",
        ):
            AnswerStore(tmp_path)
