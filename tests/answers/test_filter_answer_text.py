"""Open answers: without thinking, label and blanks; what is empty stays empty."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers import AnswerTextFilter

CASES = {
    "One pink polyp.": "One pink polyp.",
    "  One pink polyp.\n": "One pink polyp.",
    "Answer: One polyp.": "One polyp.",
    "answer : One polyp.": "One polyp.",
    "**Answer:** One polyp.": "One polyp.",
    "Final answer: One polyp.": "One polyp.",
    "Answer：One polyp.": "One polyp.",
    "<think>Two?</think>\nAnswer: One polyp.": "One polyp.",
    "<think>Two?</think><answer>One polyp.</answer>": "One polyp.",
    "<answer>\nAnswer: One polyp.\n</answer>": "One polyp.",
    "<answer>One polyp.": "One polyp.",
    "<|begin_of_box|>One polyp.<|end_of_box|>": "One polyp.",
    "<answer>One.</answer> <answer>Two.</answer>": "<answer>One.</answer> <answer>Two.</answer>",
    "Perhaps two. <answer>One polyp.</answer>": "Perhaps two. <answer>One polyp.</answer>",
    "One polyp.<|im_end|>": "One polyp.",
    "One polyp.</s>": "One polyp.",
    "One polyp.<|im_end|>\n<|im_start|>user\nAnd now?": "One polyp.",
    "<|im_end|>One polyp.": "One polyp.",
    "Size <5 mm and > 3 mm.": "Size <5 mm and > 3 mm.",
    "The answer: one polyp.": "The answer: one polyp.",
    "Answered: none": "Answered: none",
    "": "",
    " \n ": "",
    "<think>cut off": "",
    "Answer:": "",
}


@pytest.mark.parametrize(("response", "answer"), CASES.items(), ids=repr)
def test_what_is_scored(response: str, answer: str) -> None:
    assert AnswerTextFilter().apply([[response]], None) == [answer]


@given(st.text())
def test_an_answer_never_begins_or_ends_with_blanks(response: str) -> None:
    (answer,) = AnswerTextFilter().apply([[response]], None)
    assert isinstance(answer, str)
    assert answer == answer.strip()
