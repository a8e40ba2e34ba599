"""Answers to closed questions: the one label that a response gives, or why there is none."""

from __future__ import annotations

import pytest

from medtasks.answers import ClosedAnswerFilter
from medtasks.answers.closed_answer import closed_answer

YES_NO = ("yes", "no")
NORMAL = ("normal", "abnormal")
FINDINGS = ("pneumonia", "effusion")
GRADES = tuple("01234")
CARCINOMAS = ("small cell", "non-small cell")


@pytest.mark.parametrize(
    ("response", "labels", "expected"),
    [
        ("Yes", YES_NO, "yes"),
        ("Yes, on the left.", YES_NO, "yes"),
        ("No, there is no effusion.", YES_NO, "no"),
        ("Yes, there is no shift.", YES_NO, "yes"),
        ("The answer is **no**.", YES_NO, "no"),
        ("<think>no, no</think>yes", YES_NO, "yes"),
        ('{"answer": "yes"}', YES_NO, "yes"),
        ("Yes and no", YES_NO, "[multiple]"),
        ("It is hard to say.", YES_NO, "[none]"),
        ("A", YES_NO, "[none]"),
        ("", YES_NO, "[empty]"),
        ("The image is abnormal.", NORMAL, "abnormal"),
        ("The radiograph is normal. There are no abnormal findings.", NORMAL, "normal"),
        ("The image is not normal", NORMAL, "[none]"),
        ("Either normal or abnormal.", NORMAL, "[multiple]"),
        ("There is no pneumonia; effusion is seen.", FINDINGS, "effusion"),
        ("Grade: 2.", GRADES, "2"),
        ("non-small cell", CARCINOMAS, "non-small cell"),
        ("It is a non-small cell carcinoma.", CARCINOMAS, "non-small cell"),
        ("It is a small cell carcinoma.", CARCINOMAS, "small cell"),
        ("图中正常", ("正常", "异常"), "正常"),
        ("CT.", (), "ct"),
    ],
)
def test_the_label_of_a_response(response: str, labels: tuple[str, ...], expected: str) -> None:
    assert closed_answer(response, labels) == expected
    assert closed_answer(expected, labels) == expected


def test_labels_are_options_or_guesses() -> None:
    documents = [{"options": ["left", "right"]}, {"guesses": ["yes", "no"]}, {}]
    responses = [["On the right side."], ["No"], ["Liver."]]
    assert ClosedAnswerFilter().apply(responses, documents) == ["right", "no", "liver"]
    statuses = [ClosedAnswerFilter.status(text) for text in ("no", "[none]", "[multiple]", "")]
    assert statuses == ["ok", "none", "multiple", "empty"]
