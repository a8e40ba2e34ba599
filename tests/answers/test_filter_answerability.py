"""Abstentions: the word counts where it is what the reply says, not where it is mentioned."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers.answerability import (
    UNANSWERABLE,
    answer_or_unanswerable,
    answerability_status,
)

ABSTAINS = [
    "unanswerable", "Unanswerable", "UNANSWERABLE.", " unanswerable\n", "unanswerable!", "**unanswerable**",
    "*Unanswerable*",
    "`unanswerable`", '"unanswerable"', "'Unanswerable.'", "(unanswerable)", "[unanswerable]", "# Unanswerable",
    "- unanswerable",
    "> unanswerable", "```\nunanswerable\n```", "ｕｎａｎｓｗｅｒａｂｌｅ", "un-answerable", "Answer: unanswerable.",
    "answer: Unanswerable",
    "**Answer:** unanswerable", "**Answer: unanswerable**", "Final answer: unanswerable", "### Answer\nunanswerable",
    "Answer:\n\nunanswerable", "Answer: Answer: unanswerable", "The answer is unanswerable.", "Response: unanswerable",
    "<answer>unanswerable</answer>", "\\boxed{unanswerable}", '{"answer": "unanswerable"}',
    "<think>a polyp?</think>unanswerable",
    "a polyp?</think>\n\nUnanswerable.", "unanswerable - the evidence is not visible", "Unanswerable: smoke",
    "unanswerable (smoke)",
    "Unanswerable. The lens is covered.", "Unanswerable, because of smoke", "unanswerable because the lens is dirty",
    "Unanswerable\n\nThe lens is covered.", "unanswerable—smoke", "unanswerable; too dark",
    "The question is unanswerable.",
    "This question is unanswerable from the frames.", "It is unanswerable", "unanswerable</s>",
    "unanswerable<|im_end|>",
    "The lens is covered, the view dark.\nAnswer: unanswerable", "Perhaps a polyp.\n**Final answer:** unanswerable",
    "Answer: a polyp\nFinal answer: unanswerable", "Unanswerable from the visible frames.",
    "unanswerable\nunanswerable", "I cannot tell.", "I don't know.", "Not answerable from the given clip.",
    "The question cannot be answered because the instrument is outside the field of view.", "无法回答",
    "There isn't enough visual information.", "Based on the frames, unanswerable.", "Respond: unanswerable",
    "Insufficient evidence in the given window.", "The video does not show this.",
]  # fmt: skip

ANSWERS = {
    "a polyp": "a polyp", "Answer: a polyp": "a polyp", "**Answer:** a polyp": "a polyp",
    "<think>unanswerable</think>a polyp": "a polyp",
    "Answer: Answer: a polyp": "a polyp", "Final answer: B": "B", "**Biopsy**": "**Biopsy**",
    **{
        text: text
        for text in (
            "The question is not unanswerable: a polyp", "not unanswerable", "answerable",
            "I cannot determine the brand, but it is a stapler.", "The video does not show a polyp.",
            "It cannot be determined with certainty; it appears to be a hook.", "unanswerable | answer",
            "unanswerable/answer", "Unanswerable?", "Is it unanswerable? No, a polyp.",
            "I would not say unanswerable.",
            "A polyp; nothing here is unanswerable.", "unanswerableness", "unknown", "no_alert",
            "If the view is dark, respond exactly: unanswerable. Here it is a polyp.",
            "Unanswerable questions are rare.",
            "unanswerable or a polyp", "The view is dark.\nunanswerable?", "unanswerable\nAnswer: a polyp",
            "The answer is not unanswerable", "un", "42", "?",
        )
    },
}  # fmt: skip

NOTHING = [
    "",
    " ",
    "\n",
    "Answer:",
    "**Answer:**",
    "Answer: Answer:",
    "<think>a polyp</think>",
    "<think>cut off",
    "***",
    "[empty]",
]


@pytest.mark.parametrize("reply", ABSTAINS, ids=repr)
def test_an_abstention(reply: str) -> None:
    assert answer_or_unanswerable(reply) == UNANSWERABLE
    assert answerability_status(reply) == "unanswerable"


@pytest.mark.parametrize(("reply", "answer"), ANSWERS.items(), ids=repr)
def test_an_answer(reply: str, answer: str) -> None:
    assert answer_or_unanswerable(reply) == answer
    assert answerability_status(reply) == "ok"


@pytest.mark.parametrize("reply", NOTHING, ids=repr)
def test_nothing_left(reply: str) -> None:
    assert answer_or_unanswerable(reply) == "[empty]"
    assert answerability_status(reply) == "empty"


PIECES = st.lists(
    st.sampled_from(
        ["unanswerable", "Answer: ", "answer", ":", "**", "\n", " ", "not ", "a polyp", ".", "<think>", "</think>",
        "<", "think>",
         "Final answer: ", "[empty]", "|", " - ", "{", "}", "\\boxed{", "：", "`", "final ", "<answer>", "</answer>"]
    ),
    max_size=10,
).map("".join)  # fmt: skip
DECORATIONS = (
    "{}",
    "{}.",
    "**{}**",
    " {}\n",
    "`{}`",
    '"{}"',
    "- {}",
    "Answer: {}",
    "<think>x</think>{}",
    "{} - too dark",
)


@given(st.one_of(st.text(), PIECES))
def test_any_text_gives_a_status_and_filtering_is_idempotent(text: str) -> None:
    filtered = answer_or_unanswerable(text)
    assert filtered
    assert answer_or_unanswerable(filtered) == filtered
    assert answerability_status(filtered) == answerability_status(text)


@given(st.sampled_from(DECORATIONS), st.sampled_from((str, str.upper, str.title)))
def test_decoration_never_hides_an_abstention(decoration: str, case: type[str]) -> None:
    assert answer_or_unanswerable(decoration.format(case(UNANSWERABLE))) == UNANSWERABLE


@given(st.text(alphabet="bcdfghijkmopqtvxyz ,.\n", min_size=1))
def test_without_the_word_there_is_no_abstention(text: str) -> None:
    assert answer_or_unanswerable(text) != UNANSWERABLE
