"""What is thought aloud is no part of an answer, nor are label and blanks of an open one; what is
empty stays empty.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers.markup import AnswerTextFilter
from medtasks.answers.thoughts import own_turn, strip_thinking

CASES = {
    "B": "B",
    "<think>A or B?</think>B": "B",
    "<THINK>A</Think> B": "B",
    "<thinking>A</thinking>B": "B",
    "<analysis>A</analysis>\n\nB": "B",
    "<reasoning>A</reasoning>B": "B",
    "◁think▷A◁/think▷B": "B",
    "the opening tag was prefilled</think>B": "B",
    "one</think>two</think>B": "B",
    "<think>A<think>deeper</think>still</think>B": "B",
    "<think>A</think>B<think>C</think>": "B",
    "<think>never closed, so the answer is B": "",
    "<think></think>": "",
    "B <think>and then cut off": "B",
    "I think B </ think >C": "C",
    "2 < 3 and thinking > 1": "2 < 3 and thinking > 1",
    "[THINK]A or B?[/THINK]B": "B",
    "[THINK]never closed, so B": "",
    "[Thinking] of the images": "[Thinking] of the images",
    "<thought>A</thought>B": "B",
    "<|begin_of_thought|>A<|end_of_thought|>B": "B",
    "<|START_THINKING|>A<|END_THINKING|>B": "B",
    "<unused94>thought\nA<unused95>B": "B",
    "## Thinking\n\nA or B?\n\n## Final Response\n\nB": "B",
    "### **Thinking**\nA\n### **Final Answer:**\nB": "B",
    "## Thinking\n\nnever closed, so B": "",
    "## Thinking\nA or B?</think>B": "B",
    "## Reasoning\nA\n## Final Response\nB": "## Reasoning\nA\n## Final Response\nB",
    "<|channel|>analysis<|message|>A?<|end|><|start|>assistant<|channel|>final<|message|>B<|return|>": "B",
    "<|channel|>final <|constrain|>json<|message|>B": "B",
    "<|channel|>analysis<|message|>never ended, so B": "",
    "<|channel|>commentary<|message|>B": "",
    "analysisWe see A. So B.assistantfinalB": "B",
    "analysisWe see A, so": "",
    "analysis of the images: B": "analysis of the images: B",
    "<|channel>thought\nA or B?\n<channel|>B<turn|>": "B<turn|>",
    "<|channel>thought\n<channel|>B": "B",
    "<|channel>thought\nnever closed, so B": "",
    "<|channel>thought\nA<channel|><|channel>thought\nB<channel|>C": "C",
    "<|turn>model\n<|channel>thought\nA<channel|>B": "B",
    "the opening marker was prefilled<channel|>B": "B",
    "<|inner_prefix|>A<|inner_suffix|>B<|assistant_end|>": "B<|assistant_end|>",
    "<|inner_prefix|>never closed, so B": "",
    "<|inner_prefix|><|inner_suffix|>B": "B",
    "<|thinking|>A<|/thinking|>B": "B",
    "<|start_of_reasoning|>A<|end_of_reasoning|>B": "B",
    "<|im_start|>assistant\nB": "B",
    "<|im_start|>assistant\n<think>A</think>B": "B",
    "<think>A</think><|START_RESPONSE|>B<|END_RESPONSE|>": "B<|END_RESPONSE|>",
    "<|start_header_id|>assistant<|end_header_id|>\n\nB": "B",
    "<start_of_turn>model\nB": "B",
    "ASSISTANT: B": "B",
    "### Assistant: B": "B",
    "<|Assistant|>: B": "B",
    "The assistant: B": "The assistant: B",
    "<think>at T3, so <answer>B</answer>": "<answer>B</answer>",
    "<think>the form is <answer>B</answer>, and": "",
}


@pytest.mark.parametrize(("text", "left"), CASES.items(), ids=repr)
def test_what_is_left(text: str, left: str) -> None:
    assert strip_thinking(text) == left


@pytest.mark.parametrize(
    "end",
    [
        "<turn|>",
        "<|im_end|>",
        "<|assistant_end|>",
        "<end_of_turn>",
        "</s>",
        "[|endofturn|]",
        "<|END_RESPONSE|>",
        "[e~[",
    ],
)
def test_the_token_that_ends_the_turn_ends_the_answer(end: str) -> None:
    assert own_turn(f"A polyp.{end}\nuser\nNext question?") == "A polyp."
    assert own_turn(f"{end} A polyp.{end}") == " A polyp."
    assert AnswerTextFilter().apply([[f"A polyp.{end}"]], None) == ["A polyp."]


def test_nothing_but_ends_of_a_turn_is_no_answer() -> None:
    assert own_turn("<turn|><turn|>") == own_turn("<|im_end|>\n") == ""
    assert own_turn("a < b, [c]") == "a < b, [c]"


@given(st.text(alphabet="ab<>/think ◁▷"), st.text(alphabet="xyz \n"))
def test_a_closed_block_before_plain_text_leaves_the_text(thought: str, answer: str) -> None:
    inside = thought.replace("<", "").replace("◁", "")
    assert strip_thinking(f"<think>{inside}</think>{answer}") == answer.strip()


ANSWERS = {
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


@pytest.mark.parametrize(("response", "answer"), ANSWERS.items(), ids=repr)
def test_what_is_scored(response: str, answer: str) -> None:
    assert AnswerTextFilter().apply([[response]], None) == [answer]


@given(st.text())
def test_an_answer_never_begins_or_ends_with_blanks(response: str) -> None:
    (answer,) = AnswerTextFilter().apply([[response]], None)
    assert isinstance(answer, str)
    assert answer == answer.strip()


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ('{"answer": "One polyp."}', "One polyp."),
        ('```json\n{"answer": "One polyp."}\n```', "One polyp."),
        ('{"finding": "One polyp."}', "One polyp."),
        ('{"answer": "One polyp.", "confidence": 0.9}', "One polyp."),
        ('{"reasoning": "A round elevation.", "final_answer": "One polyp."}', "One polyp."),
        ("{'answer': 'One polyp.'}", "One polyp."),
        ('<answer>{"answer": "One polyp."}</answer><|im_end|>', "One polyp."),
        (
            '{"finding": "One polyp.", "site": "caecum"}',
            '{"finding": "One polyp.", "site": "caecum"}',
        ),
        ('{"answer": ["One", "polyp"]}', '{"answer": ["One", "polyp"]}'),
        ('{"answer": "One polyp."', '{"answer": "One polyp."'),
    ],
)
def test_the_field_that_gives_the_answer_is_the_answer(reply: str, answer: str) -> None:
    assert AnswerTextFilter().apply([[reply]], None) == [answer]


@given(st.text(max_size=200) | st.text(alphabet='{}[]":,ab1\\n ', max_size=80))
def test_any_text_is_filtered(text: str) -> None:
    (filtered,) = AnswerTextFilter().apply([[text]], None)
    assert isinstance(filtered, str)
