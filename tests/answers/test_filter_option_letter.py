"""Option letters: a table of responses as models write them, and properties of the rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers.option_letter import extract_option, option_status

SELECTED = {
    "B": "B", "b": "B", " B ": "B", "B.": "B", "(B)": "B", "[B]": "B", "{B}": "B", "**B**": "B", "B)": "B",
    "`B`": "B", '"B"': "B", "'B'": "B", "<B>": "B", "B:": "B", "B!": "B", "*B*": "B", "__B__": "B", "\nB\n": "B",
    "Ｂ": "B", "（Ｂ）": "B", "**(B)**": "B", "A": "A", "a": "A", "(e)": "E", "e.": "E",
    "\\boxed{B}": "B", "$\\boxed{\\text{B}}$": "B", "The result is \\boxed{D}.": "D",
    "Option B": "B", "option B.": "B", "**Option C**": "C", "Option (D)": "D",
    "B: T2 → T3": "B", "B. the effusion resolves": "B", "B) T2 → T3": "B", "(C) T3 → T4": "C", "[D] none": "D",
    "A. T1 → T2": "A", "A: T1 → T2": "A", "A) A small effusion appears": "A", "b) the effusion resolves": "B",
    "C - T3 → T4": "C", "C, because the effusion grows": "C", "- B. T2 → T3": "B",
    "Answer: B": "B", "answer: b": "B", "ANSWER: B": "B", "Answer : B": "B", "Answer - B": "B", "Answer = B": "B",
    "Answer is B": "B", "The answer is B": "B", "The answer is (B).": "B", "The answer is: **B**": "B",
    "The correct option is B": "B", "The correct answer is B, T2 → T3.": "B", "final answer - B": "B",
    "Final Answer: (C) T3 → T4": "C", "**Final answer:** D": "D", "**Answer: D**": "D", "Answer: **D**": "D",
    "My answer is option E.": "E", "The best choice is D.": "D", "The answer would be C": "C",
    "The most likely answer is A.": "A", "Therefore, the answer is A": "A", "So the answer must be E.": "E",
    '{"answer": "B"}': "B", "{'answer': 'C'}": "C", '{"choice": "D", "why": "it grows"}': "D",
    '```json\n{"answer": "E"}\n```': "E",
    "I choose B.": "B", "I would select option C.": "C", "I'd say nothing; I pick D": "D", "We go with (A).": "A",
    "B is correct.": "B", "C is the correct answer": "C", "(D) is the best answer because it grows.": "D",
    "Option B is correct.": "B",
    "A is wrong because it resolves. B is wrong too.\nAnswer: D": "D",
    "A small effusion appears between T2 and T3.\nAnswer: B": "B",
    "Between T1 and T2 it grows, so the answer is A.": "A",
    "The answer could be B or C. Looking again,\nFinal answer: C": "C",
    "Answer: B\nWait, it is smaller.\nFinal answer: C": "C",
    "Let me check.\n\nB": "B", "B\n\nThe effusion first appears at T3.": "B",
    "I first thought the answer is A.\nAnswer: C": "C",
    "<think>Maybe A, or B.</think>C": "C", "<think>A</think>\n\nAnswer: E": "E", "A or B? hmm</think>D": "D",
    "<THINK>A</THINK>(B)": "B", "◁think▷A◁/think▷B": "B",
    "Not A; not B. Answer: C.": "C", "Option A is incorrect. Option C is correct.": "C",
    "Alternatively, D could fit, but the answer is B.": "B", "Perhaps B, alternatively C. Final answer: C": "C",
    "Answer: B. Alternatively, the opacity could be an older one.": "B",
    "The right option: E": "E", "Choice: B": "B", "Selection: C": "C", "Option: D": "D",
    "The correct letter? Answer: e": "E",
}  # fmt: skip

REFUSED = {
    "none": [
        "A small effusion is seen.", "a small effusion", "A small effusion", "A new opacity appears at T3.",
        "Between T1 and T2 the effusion grows.", "T1", "T2 → T3", "T1 → T2, then T4 → T5", "I see A-lines.",
        "Low vitamin D.", "Known hepatitis B.", "Image A is darker.", "A C-shaped lesion.", "E. coli infection",
        "Patient A improved.",
        "A type B aortic dissection.", "a new opacity", "The effusion resolves.",
        "I cannot tell.", "It is not B.", "B is incorrect.", "Option B is wrong.", "The answer is a new opacity.",
        "The answer is A small effusion on the left.", "The answer is unclear.", "?", "42", "None of the above",
        "there is no interval", "Answer:", "The answer is:", "Neither B nor C.", "The answer is I think unclear.",
        "X-ray shows nothing", "D-dimer was raised.", "e.g. an effusion", "i.e. nothing changed", "It's C's turn.",
        "The patient has a B-cell lymphoma.", "Grade C disease.", "as seen in figure B",
    ],
    "multiple": [
        "A or B", "B and C", "B/C", "A, B", "Answer: B or C", "Answer: A and B", "The answer is B or C.",
        "Answer: B, C", "(A) or (B)", "Option A or option B", "Either (B) or (C).", "B or maybe C",
        "A. T1 → T2\nB. T2 → T3\nC. T3 → T4\nD. T4 → T5\nE. None", "A) x\nB) y", "Answer: B. Answer: C.",
        "A\nB", "I choose A. I choose B.", "**A** and **B**",
        "Answer: B. Alternatively D.", "Answer: B. Alternatively, D.", "B, or alternatively D", "B. Otherwise D.",
    ],
    "out_of_range": [
        "F", "(G)", "Answer: G", "The answer is F.", "Z", "Option H", "answer: z", "\\boxed{K}", "F. none of them",
    ],
    "empty": ["", " ", "\n\t", "<think>B</think>", "<think>The answer is B", "<think></think>  ", "***"],
}  # fmt: skip


@pytest.mark.parametrize(("response", "letter"), SELECTED.items(), ids=repr)
def test_one_selected_option(response: str, letter: str) -> None:
    extraction = extract_option(response)
    assert (extraction.status, extraction.letter) == ("ok", letter)


@pytest.mark.parametrize(
    ("response", "status"), [(text, status) for status, texts in REFUSED.items() for text in texts], ids=repr
)
def test_no_single_option(response: str, status: str) -> None:
    extraction = extract_option(response)
    assert (extraction.status, extraction.letter) == (status, None)


ENVELOPES = (
    "{}", "{}.", "({})", "[{}]", "**{}**", "Answer: {}", "The answer is {}.", "Final answer: ({})",
    '{{"answer": "{}"}}', "\\boxed{{{}}}", "The correct option is {}", "I looked at T1 to T5.\nAnswer: {}",
    "{}: T2 → T3", "{}. The effusion resolves.", "Option {}",
)  # fmt: skip
PROSE = st.lists(
    st.sampled_from(
        [
            "a",
            "the",
            "small",
            "effusion",
            "grows",
            "resolves",
            "between",
            "T1",
            "T2",
            "and",
            "T3",
            "lung",
            "opacity",
            "new",
            "no",
            "I",
            "see",
            "left",
            "upper",  # "right" would make "A is right."
            "A-line",
            "vitamin",
            "is",
            "not",
            "unclear",
            "image",
            "stable",
        ]
    ),
    min_size=2,
    max_size=20,
).map(lambda words: " ".join(words).capitalize() + ".")


@given(st.sampled_from("ABCDE"), st.sampled_from(ENVELOPES))
def test_every_envelope_yields_its_letter(letter: str, envelope: str) -> None:
    assert extract_option(envelope.format(letter)).letter == letter


@given(PROSE)
def test_prose_is_never_a_selection(prose: str) -> None:
    assert extract_option(prose).status == "none"


@given(PROSE, st.sampled_from("ABCDE"))
def test_the_last_answer_line_decides_after_any_prose(prose: str, letter: str) -> None:
    assert extract_option(f"{prose}\nAnswer: {letter}").letter == letter


@given(st.text(max_size=80), st.text(alphabet="ABCDE answer:. \n", max_size=40))
def test_thinking_never_counts(response: str, thought: str) -> None:
    assert extract_option(f"<think>{thought}</think>{response}") == extract_option(response)


@given(
    st.permutations("ABCDE").map(lambda letters: letters[:2]),
    st.sampled_from(("{} or {}", "Answer: {} or {}", "({}) or ({})", "The answer is {} and {}.", "{}/{}")),
)
def test_a_hedge_is_never_one_option(pair: list[str], hedge: str) -> None:
    assert extract_option(hedge.format(*pair)).status == "multiple"


@given(st.text())
def test_any_text_gives_a_status_and_filtering_is_idempotent(text: str) -> None:
    extraction = extract_option(text)
    assert (extraction.letter is not None) == (extraction.status == "ok")
    assert option_status(extraction.filtered) == extraction.status
    if extraction.letter:
        assert extract_option(extraction.filtered) == extraction


def test_fewer_options_narrow_the_range() -> None:
    assert extract_option("D", letters="ABC").status == "out_of_range"
