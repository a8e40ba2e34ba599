"""Reasoned answers: the whole reply is kept, the final answer is found in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers.markup import reply_text
from medtasks.answers.reasoned_answer import ReasonedAnswerFilter, final_answer, reasoned_status

ANSWER = "Left frontal meningioma, WHO grade 1"
LABELLED = [
    "Final answer: {}", "final answer: {}", "FINAL ANSWER: {}", "Final Answer : {}", "Final answer:{}",
    "Final answer： {}",
    "Final answer = {}", "Final answer - {}", "Final answer — {}", "**Final answer:** {}", "**Final answer**: {}",
    "**Final answer: {}**", "**Final answer:** **{}**", "*Final answer:* {}", "__Final answer:__ {}",
    "`Final answer:` {}",
    "Final answer: `{}`", 'Final answer: "{}"', "### Final answer\n{}", "### Final Answer:\n\n{}",
    "**Final Answer**\n\n{}",
    "Final answer\n{}", "- Final answer: {}", "> Final answer: {}", "2. Final answer: {}", "<b>Final answer:</b> {}",
    "<strong>Final Answer</strong>: {}", "<p>Final answer: {}</p>", "<h3>Final answer</h3>\n{}",
    "<final_answer>{}</final_answer>",
    "<final answer>{}</final answer>\nThat is all.", "\\boxed{{{}}}", "$\\boxed{{\\text{{{}}}}}$",
    "Final answer: \\boxed{{{}}}",
    "Final answer: $\\boxed{{{}}}$.", '{{"reasoning": "It enhances.", "final_answer": "{}"}}', "Final_answer: {}",
    "Final-answer: {}",
    "The final answer is {}", "The final answer is: {}", "My final answer: {}", "Final answer: {}</s>",
    "Final answer: {}<|im_end|>",
    "It enhances. Final answer: {}", "```\nFinal answer: {}\n```", "Final answer: a glioma\nNo.\nFinal answer: {}",
    "The final answer is a glioma?\nFinal answer: {}", "<think>Final answer: a glioma</think>Final answer: {}",
    "Final answer: {}\nFinal answer:", "I am sure that the final answer is right.\nFinal answer: {}",
]  # fmt: skip


@pytest.mark.parametrize("envelope", LABELLED, ids=repr)
def test_the_final_answer_is_found(envelope: str) -> None:
    reply = (
        "The mass enhances.\n\n" + envelope.format(ANSWER)
        if not envelope.startswith(("<think>", "{{"))
        else envelope.format(ANSWER)
    )
    assert final_answer(reply) == ANSWER
    assert reasoned_status(reply) == "ok"


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("Final answer: a cyst.\nIt is benign.", "a cyst.\nIt is benign."),
        ("Final answer:\n- a cyst\n- a polyp\n", "- a cyst\n- a polyp"),
        ("Final answer: CYP2C19*2, p < 0.05, 10^3 $/µl", "CYP2C19*2, p < 0.05, 10^3 $/µl"),
        ("Final answer: **cyst**, not **polyp**", "**cyst**, not **polyp**"),
        ("\\boxed{T_{2} lesion} as said", "T_{2} lesion"),
        ("Final answer: {cyst}", "{cyst}"),
        ("Final answer: `factor X`", "factor X"),
    ],
    ids=repr,
)
def test_the_answer_stays_as_written(reply: str, answer: str) -> None:
    assert final_answer(reply) == answer


PLAIN = [
    "Reasoning: It enhances.\nAnswer: {}", "**Reasoning:** It enhances.\n\n**Answer:** {}", "Answer: {}",
    "### Reasoning\nIt enhances.\n\n### Answer\n{}", '{{"reasoning": "It enhances.", "answer": "{}"}}',
    "It enhances. Answer: {}", "The answer: {}", "Finally, the answer: {}", "<answer>{}</answer>", "2. Answer: {}",
    "Answer: {}\nReasoning: It enhances.", "Answer: a glioma\nAnswer: {}", "Reasoning：It enhances.\nAnswer：{}",
]  # fmt: skip


@pytest.mark.parametrize("envelope", PLAIN, ids=repr)
def test_a_plain_answer_is_final_where_nothing_says_final(envelope: str) -> None:
    assert final_answer(envelope.format(ANSWER)) == ANSWER
    assert final_answer(envelope.format("a glioma") + f"\nFinal answer: {ANSWER}") == ANSWER
    assert reasoned_status(envelope.format(ANSWER)) == "ok"


UNLABELLED = [
    "It enhances. A meningioma.", "I can't tell from this slice.", "Answer: <your answer>",
    "I will now give the final answer.", "Reasoning: it enhances", "Reasoning: it enhances\nAnswer:",
    "The answer to this needs a biopsy.", "The answer is unknown.",
    "Final answer",
    "Final answer:", "**Final answer:**", "Final answer: ...", "final answers: two", "The semifinal answer: x",
    "Final diagnosis: cyst",
    "the final\nanswer", "\\boxed{}", "<think>Final answer: cyst</think>A cyst.\nIt is round.",
]  # fmt: skip


@pytest.mark.parametrize(
    "reply",
    [
        "a cyst",
        "<think>hm</think>a cyst",
        "它是圆的。\n答案：a cyst",
        "Es redondo.\nRespuesta: a cyst",
        "Es ist rund.\n**Antwort:** a cyst",
        "Answer: a cyst\n\nNote: it is round.",
        "Answer: a cyst\nQuestion: what is next?\nAnswer: <your answer>",
    ],
)
def test_one_line_alone_and_labels_in_other_languages_are_answers(reply: str) -> None:
    assert final_answer(reply) == "a cyst"


@pytest.mark.parametrize("reply", UNLABELLED, ids=repr)
def test_no_final_answer(reply: str) -> None:
    assert final_answer(reply) is None
    assert reasoned_status(reply) == "no_final_answer"


@pytest.mark.parametrize(
    "reply", ["", " \n", "<think>Final answer: cyst</think>", "<think>Final answer: cyst"], ids=repr
)
def test_nothing_left(reply: str) -> None:
    filtered = ReasonedAnswerFilter().apply([[reply]], None)
    assert filtered == ["[empty]"]
    assert reasoned_status("[empty]") == reasoned_status("") == "empty"


PIECES = st.lists(
    st.sampled_from(
        ["Final answer", ": ", "**", "\n", " ", "cyst", "<think>", "</think>", "<", "think>", "\\boxed{", "}", '"',
        "`", "$", "is ",
         "<final_answer>", "</final_answer>", "[empty]", "◁think▷", "◁/think▷"]
    ),
    max_size=10,
).map("".join)  # fmt: skip


@given(st.one_of(st.text(), PIECES))
def test_any_text_is_filtered_once(text: str) -> None:
    (filtered,) = ReasonedAnswerFilter().apply([[text]], None)
    assert ReasonedAnswerFilter().apply([[str(filtered)]], None) == [filtered]
    assert reasoned_status(str(filtered)) in ("ok", "no_final_answer", "empty")
    assert final_answer(str(filtered)) == final_answer(text)
    assert reply_text(reply_text(text)) == reply_text(text)


@given(st.text(alphabet="abcdefgh .,\n"), st.text(alphabet="xyz ", min_size=1).filter(str.strip))
def test_reasoning_before_the_label_is_kept_and_does_not_decide(
    reasoning: str, answer: str
) -> None:
    reply = f"{reasoning}\nFinal answer: {answer}"
    assert ReasonedAnswerFilter().apply([[reply]], None) == [reply.strip()]
    assert final_answer(reply) == answer.strip()
