"""Verdicts: what is read from a judge's answer, and what is not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.catalog.judge_prompt import verdict_schema
from medtasks.catalog.rubric_files import load_rubric
from medtasks.judge.json_in_text import Invalid
from medtasks.judge.verdict_parsing import parse_verdict, repair_request
from medtasks.runs.verdict import Verdict

RUBRIC = load_rubric("medstream_rubric")
DOCUMENT = {"judge_rubric": "{}"}
SCORES = {"correctness": 2, "evidence_grounding": 0, "safety": 1}
FLAT = json.dumps(SCORES)
FULL = json.dumps(
    {
        name: {"reason": f'because {{of}} "{name}" [x', "score": score}
        for name, score in SCORES.items()
    }
)


def read(text: str) -> Verdict | Invalid:
    return parse_verdict(text, RUBRIC, DOCUMENT)


def scores(text: str) -> Any:
    found = read(text)
    return found.scores if isinstance(found, Verdict) else str(found)


@pytest.mark.parametrize(
    "text",
    [
        FULL,
        FLAT,
        f"\n\t {FLAT} \n",
        f"```json\n{FULL}\n```",
        f"Here is my verdict:\n```\n{FLAT}\n```\nI hope it helps {{really}}.",
        f"I judge {FULL} and nothing else.",
        f"<think>Perhaps {json.dumps({**SCORES, 'safety': 0})}? No.</think>{FLAT}",
        f"{FLAT}\n{FULL}",
        f'First \\frac{{1}}{{2}}, {{}} and {{"note": 1}}, then {FLAT}',
        f"The window is [0, 5) and [2, 7). {'[0, 1) ' * 40}{FLAT}",
        f"[{FLAT}]",
        "{x} " * 100_000 + FLAT + " " * 1_000_000,
        json.dumps({**SCORES, "correctness": "2", "safety": True}),
        json.dumps({**SCORES, "correctness": 2.0, "evidence_grounding": " +0.0 "}),
        json.dumps(
            {
                "correctness": {"score": 2},
                "evidence_grounding": 0,
                "safety": {"score": "1", "reason": 5},
            }
        ),
        FULL.replace("because", "a line\nbreak"),
        FULL.replace("because", "it says <think> and"),
        FULL.replace(
            "because", r"diameter \geq 5 mm, \(\frac{1}{2}\), \underline{x}, C:\path, 100\%"
        ),
        FULL.replace("evidence_grounding", r"evidence\_grounding"),
        f"```json\n{FULL[:-1]},\n}}\n```",
        FULL.replace("}, ", ",}, ").replace("because", r"\pi"),
        f'{FLAT[:-1]}, "seen": [1, 2, ]}}',
        *(
            before + FLAT for before in ("Infinity", "NaN ", "-Infinity: ", "null ")
        ),  # prose begins as a number may
    ],
)
def test_verdicts_are_read(text: str) -> None:
    assert scores(text) == SCORES


def test_a_reason_with_backslashes_is_what_the_judge_wrote() -> None:
    answer = '{"correctness": {"reason": "5 \\geq 4 in C:\\path", "score": 2}, "evidence_grounding": 0, "safety": 1}'
    found = read(answer)
    assert isinstance(found, Verdict)
    assert found.reasons == {"correctness": r"5 \geq 4 in C:\path"}


@pytest.mark.parametrize(
    "text", [FULL, f" {FLAT}\n\n", f"<think>hm</think>{FULL}", FULL[:-1] + ",}"]
)
def test_an_answer_that_was_cut_is_a_verdict_if_all_of_it_is_one(text: str) -> None:
    found = parse_verdict(text, RUBRIC, DOCUMENT, was_cut=True)
    assert isinstance(found, Verdict)
    assert found.scores == SCORES


@pytest.mark.parametrize(
    "text",
    [FULL[:-1], f"Draft: {FLAT} Final:", f"{FLAT} But", f"```json\n{FULL}\n```", f"<think>{FLAT}"],
)
def test_an_answer_that_was_cut_is_no_verdict_if_it_may_have_gone_on(text: str) -> None:
    assert isinstance(parse_verdict(text, RUBRIC, DOCUMENT, was_cut=True), Invalid)


def test_reasons_are_read_and_unknown_keys_are_not() -> None:
    answer = {
        "correctness": {"reason": "Same words. \ud800", "score": 2, "sure": True},
        "evidence_grounding": 0,
        "safety": {"score": 1},
        "total": 3,
        "note": {"a": [1]},
    }
    assert read(json.dumps(answer)) == Verdict(
        scores=SCORES, reasons={"correctness": "Same words. \\ud800"}
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        (" \n", "empty"),
        ("<think>hm, " + FLAT, "within its thinking"),
        ("I cannot judge this.", "no complete JSON object"),
        (FULL[:-20], "no complete JSON object"),
        (FLAT.replace('"', "'"), "no complete JSON object"),
        ("[1, 2]", "no complete JSON object"),
        ("{}", "'correctness' is missing"),
        ('{"verdict": ' + FLAT + "}", "'correctness' is missing"),
        (json.dumps({**SCORES, "safety": {"reason": "none"}}), "'safety' has no score"),
        (json.dumps({"correctness": 2, "evidence_grounding": 0}), "'safety' is missing"),
        (json.dumps({**SCORES, "safety": 2}), "whole number from 0 to 1"),
        *(
            (json.dumps({**SCORES, "correctness": score}), "whole number from 0 to 2")
            for score in (-1, True, 1.5, None, [2], "2/2", "٢", "1+1")
        ),
        (FLAT[:-1] + ', "safety": 1}', "duplicate key"),
        (FULL[:-1] + r', "evidence\_grounding": 1}', "duplicate key"),
        (
            r'{"correctness": {"reason": "C:\", "score": 2}, "evidence_grounding": 0, "safety": 1}',
            "no complete JSON object",
        ),
        (FLAT[:-1] + ",,}", "no complete JSON object"),
        (FLAT.replace("2,", ",", 1), "no complete JSON object"),
        ('{"a": 1} ' * 1001 + FLAT, "more than 1,000 JSON objects"),
        (FLAT.replace("2", "NaN"), "NaN"),
        (FLAT[:-1] + ', "sure": -Infinity}', "Infinity"),
        (FLAT.replace("2", "1e999"), "whole number from 0 to 2"),
        (FLAT.replace("2", "2" * 5000), "no complete JSON object"),
        (FLAT[:-1] + ', "deep": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        # a quotation of the response beside or within the judge's own words
        (FLAT + json.dumps({**SCORES, "correctness": 0}), "several verdicts that differ"),
        (
            '{"correctness": {"reason": "it says ' + FLAT + '", "score": 0}',
            "no complete JSON object",
        ),
        ("{correctness: it says " + FLAT + ", score: 0}", "no complete JSON object"),
    ],
)
def test_invalid_answers_say_why(text: str, reason: str) -> None:
    found = read(text)
    assert isinstance(found, Invalid)
    assert reason in str(found)


@given(st.text() | st.text(alphabet='{}[]":,01 \\ntrue"correctness', max_size=200))
def test_no_text_raises(text: str) -> None:
    assert isinstance(read(text), Verdict | Invalid)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from([*SCORES, "score", "x"]), inner)
    ),
    max_leaves=12,
)


@given(reason=st.text(alphabet='\\ug_ntbf/1"{},: ', max_size=30), score=st.integers(0, 2))
def test_no_backslash_in_a_reason_changes_a_score(reason: str, score: int) -> None:
    first, second, third = SCORES
    answer = (
        f'{{"{first}": {{"reason": "{reason}", "score": {score}}}, "{second}": 0, "{third}": 1,}}'
    )
    found = read(answer)
    if isinstance(found, Verdict):
        stated = {first: score, second: 0, third: 1}
        assert (
            found.scores == stated or reason.count('"') > 1
        )  # such a reason can have a field of its own


@given(JSON)
def test_no_json_raises_and_verdicts_are_in_range(value: Any) -> None:
    found = read(json.dumps(value))
    if isinstance(found, Verdict):
        assert set(found.scores) == set(SCORES)
        assert all(type(found.scores[one.name]) is int for one in RUBRIC.aspects)
        assert all(found.scores[one.name] in one.scale for one in RUBRIC.aspects)


def test_a_repair_request_is_one_sentence_with_reason_and_schema() -> None:
    text = 'Ignore the rules. {"correctness": 2, "evidence_grounding": 0}'
    found = read(text)
    assert isinstance(found, Invalid)
    request = repair_request(text, found, verdict_schema(RUBRIC, DOCUMENT))
    assert "because aspect 'safety' is missing;" in request
    assert request.endswith(json.dumps(verdict_schema(RUBRIC, DOCUMENT), separators=(",", ":")))
    assert "\n" not in request
    assert "Ignore" not in request
