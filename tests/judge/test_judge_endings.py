"""How a judge's answer ended: cut off, refused, broken off or too large; and asking again what was
kept.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from judged_run import content, judged, manifest_of, settings_of
from test_judge_pipeline import broken_once, documents, judge, one_question, questions
from tiny_endpoint import Arrival, Http, TinyEndpoint, problem, question, run

from medtasks.core.errors import MedtasksError
from medtasks.judge.client import JudgeAnswer
from medtasks.judge.reply import LARGEST_REPLY, Ending
from medtasks.judge.settings import Budget
from medtasks.judge.store import VerdictStore
from medtasks.judge.stub import StubJudge, completion, rule_based

CUT = "cut off at the token limit: raise `max_tokens` above 1,024 in the judge's settings"


class EndingJudge(StubJudge):
    """A stub judge whose every answer is changed by ``spoil``, which gets the choice of a chat
    completion.
    """

    def __init__(self, spoil: Any) -> None:
        super().__init__()
        self._spoil = spoil

    async def _respond(self, _: web.Request, body: Mapping[str, Any]) -> web.StreamResponse:
        answer = completion(body, self._decide(body))
        self._spoil(answer["choices"][0])
        return web.json_response(answer)


def spend_on_reasoning(choice: dict[str, Any]) -> None:
    """As a reasoning model whose tokens ran out before its answer."""
    choice["message"] |= {
        "content": None,
        "reasoning_content": f"Let me see: {choice['message']['content']}",
    }
    choice["finish_reason"] = "length"


def cut_in_the_middle(choice: dict[str, Any]) -> None:
    choice["message"]["content"] = choice["message"]["content"][:20]
    choice["finish_reason"] = "length"


def cut_after_blanks(choice: dict[str, Any]) -> None:
    """As servers whose grammar allows blanks without end after the object."""
    choice["message"]["content"] += "\n" * 500
    choice["finish_reason"] = "length"


def ended(reason: str, text: str = "yes") -> Http:
    choice = {
        "index": 0,
        "finish_reason": reason,
        "message": {"role": "assistant", "content": text},
    }
    return Http(body=json.dumps({"choices": [choice]}))


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        *(
            (reason, Ending.CUT)
            for reason in ("length", "max_tokens", "MAX_TOKENS", "model_length")
        ),
        *(
            (reason, Ending.REFUSED)
            for reason in ("content_filter", "SAFETY", "RECITATION", "refusal")
        ),
        *(
            (reason, Ending.COMPLETE)
            for reason in ("stop", "STOP", "end_turn", "eos", "", "something new")
        ),
    ],
)
def test_how_an_answer_ended_is_read_whichever_server_says_it(reason: str, ending: Ending) -> None:
    asked = run(TinyEndpoint(ended(reason)), [question("q")])
    outcome = asked.outcomes["q"]
    assert isinstance(outcome, JudgeAnswer)
    assert (outcome.text, outcome.ending) == ("yes", ending)


FILTERED = {
    "Azure OpenAI": problem(400).body.replace('"message"', '"code": "content_filter", "message"'),
    "Azure's inner error": json.dumps(
        {"error": {"innererror": {"code": "ResponsibleAIPolicyViolation"}}}
    ),
    "DashScope": json.dumps({"error": {"code": "data_inspection_failed", "message": "no"}}),
}


@pytest.mark.parametrize("server", FILTERED)
def test_a_filter_that_answers_with_an_error_is_a_refusal(server: str) -> None:
    schema = {"type": "object"}
    filtered = TinyEndpoint(Http(400, FILTERED[server]))
    asked = run(filtered, [question("q", schema)])
    outcome = asked.outcomes["q"]
    assert isinstance(outcome, JudgeAnswer)
    assert outcome.ending is Ending.REFUSED
    assert len(filtered.arrivals) == 1  # the schema was not the reason
    assert asked.client.structured is None


def test_a_blocked_prompt_is_a_refusal() -> None:
    blocked = Http(body=json.dumps({"choices": [], "promptFeedback": {"blockReason": "SAFETY"}}))
    asked = run(TinyEndpoint(blocked), [question("q")])
    assert asked.outcomes["q"] == JudgeAnswer("", ending=Ending.REFUSED)


def test_an_answer_that_the_endpoint_broke_off_is_asked_for_again() -> None:
    server = TinyEndpoint(
        lambda arrival: ended("error", "half") if arrival.nth == 1 else ended("stop")
    )
    assert run(server, [question("q")]).text("q") == "yes"
    asked = run(TinyEndpoint(ended("error", "half")), [question("q")], retries=0)
    assert (
        asked.reason("q") == "bad reply: the endpoint broke the answer off (finish_reason 'error')"
    )


@pytest.mark.parametrize("spoil", [spend_on_reasoning, cut_in_the_middle])
def test_an_answer_that_was_cut_is_not_repaired_and_the_field_to_raise_is_named(
    spoil: Any, tmp_path: Path
) -> None:
    with EndingJudge(spoil) as stub:
        result = judge(stub, tmp_path / "v")
        assert len(stub.requests) == len(documents())
        assert judge(stub, tmp_path / "v").spent.requests == 0
        other = judge(stub, tmp_path / "w", max_completion_tokens=77)
    assert set(result.unjudged.values()) == {CUT}
    assert set(other.unjudged.values()) == {
        CUT.replace("max_tokens", "max_completion_tokens").replace("1,024", "77")
    }
    assert all(verdict.completion_tokens > 0 for verdict in result.by_question.values())


def test_a_repair_that_was_cut_is_named_as_well(tmp_path: Path) -> None:
    def spoil(choice: dict[str, Any]) -> None:
        if choice["message"]["content"] != "Let me think.":
            cut_in_the_middle(choice)

    with EndingJudge(spoil) as stub:
        stub._decide = broken_once
        assert list(judge(stub, tmp_path / "v", [one_question()]).unjudged.values()) == [CUT]


def test_a_whole_verdict_counts_although_the_limit_cut_what_followed(tmp_path: Path) -> None:
    with EndingJudge(cut_after_blanks) as stub:
        first, again = judge(stub, tmp_path / "v"), judge(stub, tmp_path / "v")
    assert len(first.valid) == len(documents())
    assert (again.valid, again.spent.requests) == (first.valid, 0)


@pytest.mark.parametrize("spoil", [spend_on_reasoning, cut_in_the_middle])
def test_the_command_names_the_cause_and_a_higher_limit_judges_all(
    folder: Path, tmp_path: Path, spoil: Any
) -> None:
    """The sample `judge_cut_by_max_tokens`."""
    before = content(folder)
    with EndingJudge(spoil) as stub, pytest.raises(MedtasksError) as raised:
        judged(folder, settings_of(stub), store=tmp_path / "v")
    said = str(raised.value)
    assert "responses was judged (" in said
    assert "× cut off at the token limit)" in said
    assert f"{CUT} (it has " in said
    assert "ask for them again with --again" in said
    assert content(folder) == before
    with StubJudge() as stub:
        judged(folder, settings_of(stub, max_tokens=8000), store=tmp_path / "v")
    facts = manifest_of(folder)["judge"]["med_cmr_open"]
    assert facts["judged"] == facts["asked"] > 0


# --- replies that are too large ---


def endless(arrival: Arrival) -> Http:
    """Ten times the bound, plain or packed, as an answer or as an error."""
    body = json.dumps({"choices": [{"message": {"content": "x" * (10 * LARGEST_REPLY)}}]}).encode()
    status = 500 if "error" in arrival.question else 200
    if "packed" in arrival.question:
        return Http(status, gzip.compress(body), {"Content-Encoding": "gzip"})
    return Http(status, body)


@pytest.mark.parametrize("name", ["plain", "packed", "error", "packed error"])
def test_a_reply_that_is_too_large_fails_its_request_at_once(name: str) -> None:
    server = TinyEndpoint(endless)
    asked = run(server, [question(name)])
    assert (
        asked.reason(name)
        == "bad reply: more than 4 MB, of which nothing is kept; lower `max_tokens`"
    )
    assert len(server.arrivals) == 1


def test_nothing_of_a_reply_that_is_too_large_is_stored(tmp_path: Path) -> None:
    def spoil(choice: dict[str, Any]) -> None:
        choice["message"]["content"] += " " * LARGEST_REPLY

    with EndingJudge(spoil) as stub:
        result = judge(stub, tmp_path / "v", [one_question()])
    (verdict,) = result.by_question.values()
    with VerdictStore(tmp_path / "v") as store:
        assert store.get(str(verdict.key)) == []


# --- asking again ---


def misconfigured(_: Mapping[str, Any]) -> str:
    return "I am a chat template without an instruction."


def test_what_a_misconfigured_judge_answered_is_asked_again_and_verdicts_are_not(
    tmp_path: Path,
) -> None:
    with StubJudge(misconfigured) as stub:
        assert len(judge(stub, tmp_path / "v", questions()[:2]).unjudged) == 2
    with StubJudge() as stub:
        judge(stub, tmp_path / "v", questions()[2:])
        asked = len(stub.requests)
        assert len(judge(stub, tmp_path / "v").unjudged) == 2
        assert len(stub.requests) == asked
        renewed = judge(stub, tmp_path / "v", again=True)
        assert len(stub.requests) == asked + 2
        assert renewed.unjudged == {}
        kept = judge(stub, tmp_path / "v")
        assert (kept.valid, len(stub.requests)) == (renewed.valid, asked + 2)


@pytest.mark.parametrize(
    "spoil", [cut_in_the_middle, lambda choice: choice.update(finish_reason="content_filter")]
)
def test_cut_and_refused_answers_are_asked_again(spoil: Any, tmp_path: Path) -> None:
    with EndingJudge(spoil) as stub:
        assert len(judge(stub, tmp_path / "v").unjudged) == len(documents())
    with StubJudge() as stub:
        assert judge(stub, tmp_path / "v", again=True).unjudged == {}


def test_asking_again_repairs_an_invalid_answer_once_more(tmp_path: Path) -> None:
    with StubJudge(misconfigured) as stub:
        judge(stub, tmp_path / "v", [one_question()])
    with StubJudge(broken_once) as stub:
        result = judge(stub, tmp_path / "v", [one_question()], again=True)
        assert (len(stub.requests), result.repaired) == (2, 1)
        assert judge(stub, tmp_path / "v", [one_question()]).valid == result.valid


def test_asking_again_without_success_forgets_nothing(tmp_path: Path) -> None:
    with StubJudge(misconfigured) as stub:
        (before,) = judge(stub, tmp_path / "v", [one_question()]).by_question.values()
        failed = judge(
            stub, tmp_path / "v", [one_question()], again=True, budget=Budget(max_requests=0)
        )
        assert list(failed.unjudged.values()) == ["budget"]
    with VerdictStore(tmp_path / "v") as store:
        assert [one.answer for one in store.get(str(before.key))] == [misconfigured({})] * 2


def test_the_command_says_that_unusable_answers_are_kept_and_asks_again(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = documents()[0]["target"]

    def sometimes(request: Mapping[str, Any]) -> str:
        is_wrong = wrong in request["messages"][0]["content"]
        return misconfigured(request) if is_wrong else rule_based(request)

    with StubJudge(sometimes) as stub:
        judged(folder, settings_of(stub), store=tmp_path / "v")
    assert "once the judge works, ask for them again with --again" in capsys.readouterr().out
    facts = manifest_of(folder)["judge"]["med_cmr_open"]
    assert facts["judged"] < facts["asked"]
    with StubJudge() as stub:
        judged(folder, settings_of(stub), store=tmp_path / "v", again=True)
        assert len(stub.requests) == facts["asked"] - facts["judged"]
    assert "--again" not in capsys.readouterr().out
    facts = manifest_of(folder)["judge"]["med_cmr_open"]
    assert facts["judged"] == facts["asked"]
