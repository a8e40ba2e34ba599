"""Questions to verdicts over real HTTP: stored ones are not asked again, invalid ones once more,
the rest is named.
"""

from __future__ import annotations

import asyncio
import functools
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from faulty_judge import FaultyJudge

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.rubric_totals import total
from medtasks.core.errors import UsageError
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.pipeline import Question, judge_questions
from medtasks.judge.settings import Budget, JudgeSettings
from medtasks.judge.store import VerdictStore
from medtasks.judge.stub import StubJudge, rule_based
from medtasks.runs.verdict import Verdict

RUBRIC = load_rubric("med_cmr_open")


@functools.cache
def documents() -> list[dict[str, Any]]:
    """The open-ended documents of three dimensions of the miniature Med-CMR."""
    return [
        document
        for dimension in ("sod", "cr", "ltg")
        for document in task_documents(f"med_cmr_open_{dimension}")
    ]


def questions(right: Callable[[int], bool] = lambda number: number % 2 == 0) -> list[Question]:
    return [
        Question(
            document["sample_id"],
            document,
            document["target"] if right(number) else "I do not know.",
        )
        for number, document in enumerate(documents())
    ]


@dataclass
class Verdicts:
    """What became of the questions, by name, and what was spent on them."""

    by_question: dict[str, Verdict]
    spent: Spent

    def __post_init__(self) -> None:
        self.valid = {name: one for name, one in self.by_question.items() if one.scores is not None}
        self.unjudged = {
            name: one.unjudged for name, one in self.by_question.items() if one.unjudged is not None
        }
        self.repaired = sum(one.repaired for one in self.by_question.values())


def judge(
    stub: StubJudge,
    store: Path,
    asked: list[Question] | None = None,
    rubric: Rubric = RUBRIC,
    again: bool = False,
    **settings: Any,
) -> Verdicts:
    client = JudgeClient(JudgeSettings(base_url=stub.url, model="stub", backoff=0.01, **settings))
    with VerdictStore(store) as opened:
        asking = judge_questions(
            questions() if asked is None else asked, rubric, client, opened, again=again
        )
        return Verdicts(asyncio.run(asking), client.spent)


def test_every_response_gets_the_verdict_that_it_deserves_whatever_fails_once_and_a_rubric_s_stranger_none(
    tmp_path: Path,
) -> None:
    stranger = Question("other", {"sample_id": "other", "question": "?"}, "yes")
    with FaultyJudge(seed=5, too_many=0.1, server_error=0.1, cut=0.1, prose=0.2) as stub:
        result = judge(stub, tmp_path / "verdicts.sqlite", [*questions(), stranger], retries=9)
        assert len(stub.counts) > 2
    totals = [
        total(RUBRIC, document, result.valid[document["sample_id"]].scores)["total"]
        for document in documents()
    ]
    assert totals == [100.0 if number % 2 == 0 else 0.0 for number in range(len(documents()))]
    assert (list(result.unjudged), result.repaired) == (["other"], 0)
    assert "rubric med_cmr_open shows to the judge, is missing" in result.unjudged["other"]
    assert result.spent.requests - result.spent.retries == len(documents())


def test_a_restart_asks_nothing_that_was_answered_and_another_judge_or_response_is_another_question(
    tmp_path: Path,
) -> None:
    with StubJudge() as stub:
        budgeted = judge(stub, tmp_path / "v", concurrency=2, budget=Budget(max_requests=3))
        assert len(budgeted.valid) == 3
        assert set(budgeted.unjudged.values()) == {"budget"}
        whole = judge(stub, tmp_path / "v")
        again = judge(stub, tmp_path / "v")
        bodies = [json.dumps(body) for body in stub.requests]
        assert (
            judge(stub, tmp_path / "v", questions(lambda _: True)).spent.requests
            == len(documents()) // 2
        )
        assert judge(stub, tmp_path / "v", max_tokens=77).spent.requests == len(documents())
    assert len(bodies) == len(set(bodies)) == len(documents())
    assert (whole.spent.requests, again.spent.requests) == (len(documents()) - 3, 0)
    assert again.valid == whole.valid


def test_an_invalid_answer_is_asked_about_once_and_then_unjudged(tmp_path: Path) -> None:
    def confused(request: Mapping[str, Any]) -> str:
        repaired = len(request["messages"]) > 1
        said = json.loads(rule_based(request))
        if not repaired:
            said.pop("coherence")
        elif "I do not know." in request["messages"][0]["content"]:
            return "no JSON at all"
        return json.dumps(said)

    with StubJudge(confused) as stub:
        result = judge(stub, tmp_path / "v")
        before = len(stub.requests)
        again = judge(stub, tmp_path / "v")
        assert len(stub.requests) == before == 2 * len(documents())

    wrong = {document["sample_id"] for number, document in enumerate(documents()) if number % 2}
    assert set(result.unjudged) == wrong
    assert set(result.unjudged.values()) == {"invalid after one repair"}
    assert result.repaired == len(documents()) - len(wrong)
    assert (again.valid, again.unjudged) == (result.valid, result.unjudged)
    assert again.by_question == result.by_question


def test_what_is_refused_or_fails_is_unjudged_with_its_reason_and_failures_are_tried_again(
    tmp_path: Path,
) -> None:
    with FaultyJudge(refusal=1.0) as stub:
        refused = judge(stub, tmp_path / "refused")
        assert set(refused.unjudged.values()) == {"refused"}
        assert judge(stub, tmp_path / "refused").spent.requests == 0
    with FaultyJudge(server_error=1.0) as stub:
        failed = judge(stub, tmp_path / "failed", retries=1)
    assert all(reason.startswith("http 500") for reason in failed.unjudged.values())
    assert failed.valid == {}
    with StubJudge() as stub:
        assert judge(stub, tmp_path / "failed").unjudged == {}


def test_verdicts_are_in_the_order_of_the_questions_with_their_keys_and_tokens(
    tmp_path: Path,
) -> None:
    asked = [Question("stranger", {"sample_id": "stranger"}, "yes"), *reversed(questions())]
    with StubJudge() as stub:
        with pytest.raises(UsageError, match="'stranger' is duplicated"):
            judge(stub, tmp_path / "v", [asked[0], asked[0]])
        first, again = judge(stub, tmp_path / "v", asked), judge(stub, tmp_path / "v", asked)
    assert list(first.by_question) == [question.name for question in asked]
    assert first.by_question == again.by_question
    assert first.by_question.pop("stranger").key is None
    with VerdictStore(tmp_path / "v") as store:
        for verdict in first.by_question.values():
            (held,) = store.get(str(verdict.key))
            assert (verdict.prompt_tokens, verdict.completion_tokens) == (
                held.prompt_tokens,
                held.completion_tokens,
            )
            assert held.prompt_tokens > 0


def test_progress_begins_with_what_is_stored_and_ends_with_all(tmp_path: Path) -> None:
    reported: list[tuple[int, int, Spent, str | None]] = []

    async def run(url: str) -> None:
        client = JudgeClient(JudgeSettings(base_url=url, model="stub"))
        with VerdictStore(tmp_path / "v") as store:
            await judge_questions(questions()[:3], RUBRIC, client, store)
            await judge_questions(
                questions(), RUBRIC, client, store, lambda *said: reported.append(said)
            )

    with StubJudge() as stub:
        asyncio.run(run(stub.url))
    count = len(documents())
    done = [one[0] for one in reported]
    assert list(dict.fromkeys(done)) == list(range(1, count + 1))  # also reported once a second
    assert {(total, trouble) for _, total, _, trouble in reported} == {(count, None)}
    assert all(max(0, done - 3) <= spent.answered <= count - 3 for done, _, spent, _ in reported)
    assert reported[0][2] == Spent()


def test_a_stored_verdict_stays_what_it_was_where_answers_are_read_otherwise(
    tmp_path: Path,
) -> None:
    with StubJudge() as stub:
        first = judge(stub, tmp_path / "first")
        with (
            VerdictStore(tmp_path / "first") as store,
            VerdictStore(tmp_path / "unreadable") as unreadable,
        ):
            for verdict in first.valid.values():
                (stored,) = store.get(str(verdict.key))
                unreadable.put(stored._replace(answer="Correct."))
        again = judge(stub, tmp_path / "unreadable")
    assert (again.valid, again.spent.requests) == (first.valid, 0)
    assert len(first.valid) == len(documents())


def one_question(number: int = 0) -> Question:
    return questions()[number]


def broken_once(request: Mapping[str, Any]) -> str:
    """The verdict, but without JSON the first time that the question is asked."""
    return rule_based(request) if len(request["messages"]) > 1 else "Let me think."


def test_a_restart_between_answer_and_repair_asks_only_for_the_repair(tmp_path: Path) -> None:
    with StubJudge(broken_once) as stub:
        stopped = judge(stub, tmp_path / "v", [one_question()], budget=Budget(max_requests=1))
        resumed = judge(stub, tmp_path / "v", [one_question()])
        kept = judge(stub, tmp_path / "v", [one_question()])
        assert [len(body["messages"]) for body in stub.requests] == [1, 3]
    (before,), (after,), (again,) = (
        list(one.by_question.values()) for one in (stopped, resumed, kept)
    )
    assert (before.unjudged, after.repaired) == ("budget", True)
    assert 0 < before.prompt_tokens < after.prompt_tokens
    assert again == after


def test_a_repair_waits_for_no_other_question(tmp_path: Path) -> None:
    order: list[int] = []

    def note(request: Mapping[str, Any]) -> str:
        order.append(len(request["messages"]))
        return broken_once(request)

    with StubJudge(note) as stub:
        many = [replace(one_question(), name=str(n), response=f"answer {n}") for n in range(40)]
        assert judge(stub, tmp_path / "v", many, concurrency=1).repaired == 40
    assert 3 in order[:8]


def test_what_another_process_stored_meanwhile_counts(tmp_path: Path) -> None:
    """Two runs ask the same at once; the verdict that was put first is that of both, and what an
    export shows.
    """
    zeros = json.dumps({one.name: {"reason": "No.", "score": 0} for one in RUBRIC.aspects})

    def overtaken(request: Mapping[str, Any]) -> str:
        other = threading.Thread(target=judge, args=(quick, tmp_path / "v", [one_question()]))
        other.start()  # while this judge thinks, the other run gets its answer
        other.join()
        return rule_based(request)

    with StubJudge(lambda _: zeros) as quick, StubJudge(overtaken) as slow:
        result = judge(slow, tmp_path / "v", [one_question()])
        again = judge(slow, tmp_path / "v", [one_question()])
        assert (len(quick.requests), len(slow.requests)) == (1, 1)
    assert [set(verdict.scores.values()) for verdict in result.valid.values()] == [{0}]
    assert again.valid == result.valid


def test_equal_questions_are_asked_once(tmp_path: Path) -> None:
    asked = [one_question(), replace(one_question(), name="twin"), one_question(1)]
    with StubJudge() as stub:
        first, again = judge(stub, tmp_path / "v", asked), judge(stub, tmp_path / "v", asked)
        assert len(stub.requests) == 2
    assert first.valid["twin"] == first.valid[asked[0].name]
    assert first.valid == again.valid


def test_a_cost_needs_both_prices() -> None:
    settings = JudgeSettings(
        base_url="http://two/v1", model="judge", prompt_price=2.5, completion_price=10
    )
    assert settings.cost(2_000_000, 100_000) == pytest.approx(6.0)
    assert settings.model_copy(update={"completion_price": None}).cost(1, 1) is None


def test_what_had_arrived_is_stored_where_judging_ends_early(tmp_path: Path) -> None:
    def stop(done: int, *_: Any) -> None:
        if done == 3:
            raise KeyError("enough")

    async def run(store: VerdictStore) -> None:
        await judge_questions(questions(), RUBRIC, JudgeClient(settings), store, stop)

    with StubJudge() as stub, VerdictStore(tmp_path / "v") as store:
        settings = JudgeSettings(base_url=stub.url, model="stub", concurrency=1)
        with pytest.raises(KeyError, match="enough"):
            asyncio.run(run(store))
        again = JudgeClient(settings)
        asyncio.run(judge_questions(questions(), RUBRIC, again, store))
        assert (
            again.spent.requests <= len(documents()) - 3
        )  # an answer may arrive while the others are cancelled


def test_no_more_is_prepared_than_is_asked_soon(tmp_path: Path) -> None:
    read: list[int] = []
    ahead: list[int] = []

    class Noted(dict[str, Any]):
        """A document that notes when it is put into a prompt."""

        def __getitem__(self, field: str) -> Any:
            if field == "question":
                read.append(1)
            return super().__getitem__(field)

    def note(request: Mapping[str, Any]) -> str:
        ahead.append(len(read) - len(ahead))
        return rule_based(request)

    many = [Question(f"s{n}", Noted(documents()[0]), f"answer {n}") for n in range(60)]
    with StubJudge(note) as stub:
        judge(stub, tmp_path / "v", many, concurrency=2)
    assert max(ahead) <= 8
