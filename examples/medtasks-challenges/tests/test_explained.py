"""Replies with explanations: what is read of them, and what counts as missing."""

from __future__ import annotations

import json

import pytest

from medtasks_challenges.explained import (
    ExplainedAnswerFilter,
    ExplainedOptionFilter,
    ExplainedReply,
    ExplainedReplyFilter,
    read_reply,
)

COMPLETE = '{"answer": "A polyp.", "explanation": "Round.", "confidence": 0.5}'


@pytest.mark.parametrize(
    "response",
    [
        COMPLETE,
        f"```json\n{COMPLETE}\n```",
        f'Here it is: {COMPLETE} I hope that {{this}} helps, {{"note": 1}}.',
        f'<think>{{"answer": "no"}}</think>{COMPLETE}',
        f'{{"answer": "first", "explanation": "first"}}\n{COMPLETE}',
        COMPLETE.replace("explanation", "textual_explanation"),
        f'{COMPLETE[:-1]}, "note": "two\nlines"}}',
        COMPLETE.replace("explanation", "reasoning_trace"),
    ],
)
def test_the_object_is_found(response: str) -> None:
    assert read_reply(response) == ExplainedReply("A polyp.", "Round.", 0.5)


@pytest.mark.parametrize(
    ("response", "status"),
    [
        (COMPLETE, "ok"),
        ("A polyp, because it is round.", "no_answer"),
        ('{"answer": "A polyp."}', "no_explanation"),
        ('{"answer": "A polyp.", "explanation": "  "}', "no_explanation"),
        ('{"answer": null, "explanation": "Round."}', "no_answer"),
        ('{"answer": "A polyp.", "explanation": "cut', "no_answer"),
        ("", "no_answer"),
        ("{" * 100_000, "no_answer"),
        ('{"a":' * 50_000, "no_answer"),
    ],
)
def test_what_is_missing_has_a_status(response: str, status: str) -> None:
    assert read_reply(response).status == status
    (filtered,) = ExplainedReplyFilter().apply([[response]], [{}])
    assert isinstance(filtered, str)
    assert ExplainedReplyFilter.status(filtered) == status
    (answer,) = ExplainedAnswerFilter().apply([[response]], [{}])
    assert isinstance(answer, str)
    assert ExplainedAnswerFilter.status(answer) == ("ok" if answer else "no_answer")
    assert bool(answer) == (status != "no_answer")  # a marker might overlap with the reference


def test_half_a_surrogate_pair_does_not_reach_a_file() -> None:
    reply = read_reply(r'{"answer": "\ud83d A", "explanation": "\ud83e\ude7a B \udc00"}')
    assert (reply.answer, reply.explanation) == ("\ufffd A", "\U0001fa7a B \ufffd")


@pytest.mark.parametrize(
    ("stated", "confidence", "is_invalid"),
    [(0, 0.0, False), (1, 1.0, False), (0.25, 0.25, False), (90, None, True), ("90%", None, True)]
    + [(True, None, True), (-0.1, None, True), (None, None, False), (float("nan"), None, True)],
)
def test_a_confidence_is_a_number_from_0_to_1(
    stated: object, confidence: float | None, is_invalid: bool
) -> None:
    reply = read_reply(json.dumps({"answer": "x", "explanation": "y", "confidence": stated}))
    assert (reply.confidence, reply.has_invalid_confidence) == (confidence, is_invalid)


def test_letters_in_the_explanation_select_no_option() -> None:
    document = {"choices": {"A": "polyp", "B": "ulcer", "C": "cancer"}}
    trace = "Option A is unlikely. It could be C. The answer is A or C."
    response = json.dumps({"reasoning_trace": trace, "answer": "B. ulcer"})
    assert ExplainedOptionFilter().apply([[response]], [document]) == ["B"]
    assert ExplainedOptionFilter().apply([["The answer is C."]], [document]) == ["C"]


@pytest.mark.parametrize(
    ("answer", "option"),
    [("", "[empty]"), (None, "[empty]"), (["B"], "B"), ({"label": "B", "text": "ulcer"}, "B")],
)
def test_without_a_text_as_the_answer_the_explanation_selects_no_option(
    answer: object, option: str
) -> None:
    document = {"choices": {"A": "polyp", "B": "ulcer", "C": "cancer"}}
    trace = "The correct answer is C because it is ulcerated."
    response = json.dumps({"reasoning_trace": trace, "answer": answer})
    assert ExplainedOptionFilter().apply([[response]], [document]) == [option]
