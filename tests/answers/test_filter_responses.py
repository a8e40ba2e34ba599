"""Responses as models write them, with markup, JSON, chat tokens, names and hedges: one outcome each."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks.answers import FILTER_VERSIONS, OptionLetterFilter
from medtasks.answers.option_letter import Extraction, extract_option, parse_filtered
from medtasks.catalog.registry import get_filter

OUTCOMES: dict[str, list[str]] = {
    "A": [
        "The answer is A, a small effusion.", "The answer is A because the effusion grows", "Answer: A T1 → T2",
        "Answer: A - T1 → T2", "The answer is a.", "the answer is a", "option a", "A. The patient", "A.", "A!",
        "A?", "a)", "Answer: A\nSmall effusion", "A\nsmall effusion",
        "Answer: A. A small effusion", "A. A small effusion resolves", "(A) A small effusion", "A: A new opacity",
        "{\"choice\":\"A\",\"text\":\"A small\"}", "A.\n\nThe images show", "A: T2, T4", "a.", "(a) new",
        "Answer: T1 → T2 (A)",
    ],
    "B": [
        "1. B", "1) B", "Answer # B", "So the answer is... B!", "B.The effusion", "B.T2 → T3",
        "The answer is B. Options to consider:\nA", "La réponse est B.", "Die Antwort ist B.", "选择B", "Réponse : B",
        "**Final Answer: B**\n\nThe effusion emerges between T2 and T3.", "### Answer\nB", "Answer:\nB",
        "Answer:\n\n**B**", "**Answer**\n\nB. T2 → T3", "The answer is option B.", "**B: T2 → T3**",
        "**B. T2 → T3**", "**(B) T2 → T3**", "<answer>B</answer>", "<answer>B. T2 → T3</answer>", "$B$",
        "\\text{B}", "[Answer] B", "ANSWER B", "answer B", "Ans: B", "Ans. B", "I think it is B", "I think B",
        "It's B", "It is (B)", "B because the effusion grows", "B is the best answer",
        "I am confident that B is correct", "Options A and C are wrong, so B is correct.",
        "(A) is wrong; (B) fits best.", "A. T1 → T2\nB. T2 → T3\nC. T3 → T4\nD. T4 → T5\nE. None\nAnswer: B",
        "Answer: B\nA. T1 → T2\nB. T2 → T3", "Answer: B?", "【B】", "（B）", "Ⓑ", "「B」", "Answer：Ｂ",
        "答案：B", "答案是B",
        "{\"answer\": \"B\", \"confidence\": 0.9}", "{\"answer\":\"B\"}", "{\"answer\": [\"B\"]}",
        "{\"Answer\": \"B: T2 → T3\"}", "\\boxed{\\text{B}}", "\\[\\boxed{B}\\]", "$$\\boxed{B}$$", "B B B",
        "B\nB\nB", "The answer is B.\n\nThe answer is B.", "B. B. B.",
        "Step 1: (A) says T1. Step 2: (B) says T2.\nTherefore B.", "Therefore, B.", "So B.", "Hence, (B)",
        "The interval is T2 → T3, which is option B.", "This corresponds to option B.", "which corresponds to B.",
        "The answer to the question is B.", "The answer for this question would be B", "The answer I choose is B",
        "The best answer among the options is B", "assistant\nB", "B<|im_end|>", "B</s>", "<|assistant|>B",
        "B.<|endoftext|>", "B\nUser: next question",
        "B. T2 → T3\n\nExplanation: A is wrong since T1 shows nothing. D. is too late.",
        "The opacity appears in T3.\n\nA: T1 → T2 is wrong.\nB: T2 → T3 it is.\nC: T3 → T4 grows.\n\nAnswer: B",
        "Answer: B, not C", "Answer: B rather than C", "Answer: B, because A and C are wrong.",
        "Answer: B. A and C are excluded.", "I'd go with B.", "I will go with option (B).",
        "A: incorrect\nB: correct\nC: incorrect", "B. A small effusion resolves", "The answer is (B) and not (C).",
        "**Answer:** B\n\n**Explanation:** The effusion (A) appears.", "Answer: B (T2 → T3)", "Answer:B",
        "answer:b", "Answer is:B.", "Answer->B", "Answer → B", "{\"answer\":\"b\"}", "answer=B", "```\nB\n```",
        "```B```", "> B", "- B", "* B", "B -", "--B--", "...B", "\\fbox{B}", "B: T2, T4", "Visit T3 (B)",
        "A small effusion.\n\nB", "So, the answer: B!!",
        "Answer with exactly one letter (A, B, C, D, or E).\nAnswer: B", "final answer B", "My answer is 'b'.",
        "The answer is b", "the answer is b because x", "Answer: B\nAnswer: B", "Option B.\nOption C is wrong.",
        "option b", "B:T2 → T3", "B)T2", "(B)T2", "The effusion is in the right lung, i.e. B is the answer", "B。",
        "答案为B。",
    ],
    "C": [
        "Not B but C", "The answer is A. Wait, no. The answer is C.",
        "The answer is choice (C)", "Based on the images, the correct answer is:\n\n**C: T3 → T4**",
        "Option A is wrong. Option B is wrong. Option C fits.",
        "A. T1 → T2\nB. T2 → T3\nC. T3 → T4\nD. T4 → T5\nE. None\n\nThe correct option is C.",
        "Answer: B. Actually, final answer: C", "{\"final_answer\": \"C\"}", "I do not choose A. I choose C.",
        "The answer cannot be A. The answer is C.", "Rather than B, the answer is C", "My final answer is: C",
        "The final answer is $\\boxed{C}$.", "Correct answer: C) T3", "Correct Option: C", "Correct: C",
        "We select C", "The answer isn't B, it's C.", "Option A: wrong. Option B: wrong. Option C: right.",
        "I. Findings\nAnswer: C", "A and B are wrong. C is right.", "• (C)", "Answer: B\nFinal answer: C",
        "The correct interval is C", "Correct option: (C) T3 → T4.", "correct option - c", "Selection - C",
    ],
    "D": [
        "I'm going with D",
        "A is wrong because it resolves. B is wrong because T1. C cannot be. Answer: D",
        "The correct answer is option D: T4 → T5", "{\"reason\": \"A small effusion\", \"answer\": \"D\"}",
        "Selected option: D", "Chosen answer: D", "Option selected: D", "Conclusion: D",
        "The correct choice is 'D'", "The answer is \"D\"", "The answer is `D`.", "the answer is d.",
        "Answer: D. All of B and C", "{\"option\": \"D\"}", "\\(\\boxed{D}\\)", "\\boxed{D. T4 → T5}",
        "\\boxed{Answer: D}", "Thus, D is the answer.", "Hence the answer is D.",
    ],
    "E": [
        "Answer: E (none of the above)", "Answer: E. None of these", "E. None", "e", "E",
        "A) incorrect\nB) incorrect\nC) incorrect\nD) incorrect\nE) correct", "$\\boxed{\\mathrm{E}}$",
        "The answer is E since none of A to D fit.", "E. There is no such interval.", "E: none of the intervals",
    ],
    "none": [
        "B is not the correct answer; C is.",
        "If the answer is A, then T2", "options: A) x B) y",
        "vitamin D", "hepatitis B", "Image A", "C-shaped", "E. coli", "Patient A", "type B aortic dissection",
        "A small effusion is seen", "I see A-lines", "The answer is not B.", "not B", "B is incorrect",
        "Answer: A small effusion", "Answer: None", "answer: a new effusion", "The answer is a pneumothorax",
        "I cannot determine", "Answer: T2", "Answer: T2 → T3", "The answer is D-dimer", "The answer is C-shaped",
        "Sorry, I can't help with that.", "As an AI model, I cannot", "C'est la vie", "D'accord", "Type A",
        "Grade B", "blood group A", "Group A strep", "A patient with effusion", "Vitamin D.", "Hepatitis C\n",
        "Kerley B lines", "Kerley B lines are seen at T3.", "Figure (A) shows an effusion", "hemoglobin A1c",
        "Stage B", "ABC", "AB", "BB", "I would not choose B.", "I don't think B is correct.", "The answer isn't A",
        "The answer is neither A nor B", "B is not correct",
        "Answer: not B", "A small", "A new", "A b", "[none]", "I don't choose B",
        "I did not select B.", "It is not A or B", "None of A, B, C, D apply.", "Is it B?", "Could it be B? No.",
        "The correct answer is not listed.", "The answer depends on whether it is A", "H. pylori gastritis",
        "C. difficile colitis", "Grade A esophagitis", "LA grade B", "The temperature was 37 °C.", "37℃",
        "COVID-19", "b/l effusions", "N/A", "n/a", "w/o effusion", "s/p surgery",
        "I. Findings\nII. Impression\nNo change", "Answer: I think it is unclear",
        "Answer: A Small effusion", "Answer: a Small", "\\boxed{A small}", "T2, T4", "T1→T2",
        "The patient's X-ray shows a C-shaped tube, an A-line and vitamin D.", "An A line is seen",
        "Kerley A and B lines", "Kerley B", "B-lines", "B lines are seen.", "Small effusion at T2. B",
        "Effusion (small)", "effusion (a new one)", "Between T1 and T2 there is a new left pleural effusion.",
        "There is an opacity in segment B.", "Answer: [Your choice]", "Answer: [A-E]",
        "Answer: A-E", "Answer: <letter>", "no", "yes", "None", "Therefore A small effusion", "So A is wrong",
        "So a new one", "<think>A or B. Final answer: C</think>\n\nI cannot decide.",
        "the answer is b cell lymphoma", "e.g. B", "pages C. and D.",

    ],
    "multiple": [
        "A and B", "Final answer: B\nFinal answer: C", "Final answer: C. Answer: B", "The answer is either B or D.",
        "Answer: (B) or (D)", "Answer: B / D", "Answer: both B and D", "Answers: B, D", "B or C, but most likely C",
        "It could be A or D", "I am torn between B and C.", "between A and B", "{\"answer\": [\"B\",\"C\"]}",
        "\\boxed{A} or \\boxed{B}", "see (A) and (B)", "A/B", "A, B, C", "Answer: **B** or **C**", "**B** or **C**",
        "[multiple]", "The answer is B: T2 → T3 or C: T3 → T4.", "Answer: B (or C)", "Both A and B are correct.",
        "The answer is B, C, or D", "A, B, C, D, E", "A B C D E", "Answer: A|B", "Answer: A & B", "A+B", "A vs B",
        "A versus B", "A and/or B", "Answer with exactly one letter: A, B, C, D or E", "Answer: B\nAnswer: C",
        "Final answer: B\nAnswer: C", "Options B and C",
    ],
    "out_of_range": [
        "The answer is I.", "I", "Answer: I",
    ],
}  # fmt: skip
TABLE = [(response, outcome) for outcome, responses in OUTCOMES.items() for response in responses]


@pytest.mark.parametrize(("response", "outcome"), TABLE, ids=repr)
def test_every_response_has_one_outcome(response: str, outcome: str) -> None:
    extraction = extract_option(response)
    assert (extraction.letter or extraction.status) == outcome


SENTENCES = """A small effusion is seen between T1 and T2 → T3. No new left opacity, or an I see A-lines C-shaped.
unclear; vitamin D hepatitis B image A E. coli patient A type B aortic dissection grows.
It resolves, stable H. pylori not"""
WORDS = st.sampled_from(SENTENCES.split())
MARKED = st.sampled_from(["Answer: {}", "Final answer: {}", "The answer is {}.", "\\boxed{{{}}}", '{{"answer": "{}"}}'])
SOLE = st.sampled_from(["{}", "({})", "[{}]", "**{}**", "`{}`", "{}.", "Option {}", "{}: T2 → T3", "({}) T2 → T3"])
LETTER = st.sampled_from("ABCDE")
PAIR = st.permutations("ABCDE").map(lambda letters: letters[:2])
HEDGE = st.sampled_from(
    ["{} or {}", "{}/{}", "{}, {}", "either {} or {}", "both {} and {}", "**{}** or **{}**", "({}) or maybe ({})"]
)
LOWER_WORDS = st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), max_size=15).map(" ".join)


@given(
    st.from_regex(r"[A-Z][a-z]{1,9}", fullmatch=True),
    st.lists(st.from_regex(r"[a-z]{2,9}", fullmatch=True), max_size=30),
)
def test_words_without_a_label_are_never_an_option(first: str, rest: list[str]) -> None:
    assert extract_option(" ".join([first, *rest]) + ".").status == "none"


@given(LOWER_WORDS, MARKED, LETTER)
def test_a_marked_letter_is_found_after_prose(prose: str, envelope: str, letter: str) -> None:
    assert extract_option(f"{prose}\n{envelope.format(letter)}").letter == letter


@given(SOLE, LETTER)
def test_a_label_that_stands_for_itself_is_found(envelope: str, letter: str) -> None:
    assert extract_option(envelope.format(letter)).letter == letter


@given(MARKED, HEDGE, PAIR)
def test_a_hedge_is_never_one_option(envelope: str, hedge: str, pair: list[str]) -> None:
    assert extract_option(hedge.format(*pair)).status == "multiple"
    assert extract_option(envelope.format(hedge.format(*pair))).status == "multiple"


@settings(max_examples=200)
@given(
    st.lists(WORDS, max_size=25).map(" ".join), LETTER, st.sampled_from(["think", "THINKING", "analysis", "reasoning"])
)
def test_a_thinking_block_changes_nothing(response: str, thought: str, tag: str) -> None:
    block = f"<{tag}>Final answer: {thought}</{tag}>"
    expected = extract_option(response)
    assert extract_option(f"{block}\n{response}") == expected
    assert extract_option(f"Answer: {thought}</{tag}>{response}") == expected


NOISE = st.text(max_size=60) | st.text(alphabet="ABCDEFabe answr:.,()[]*_`{}\\$<>|/#\n→✓Ｂ", max_size=60)


@settings(max_examples=400)
@given(NOISE)
def test_any_text_has_a_status_and_filtering_twice_is_filtering_once(text: str) -> None:
    extraction = extract_option(text)
    assert (extraction.letter is not None) == (extraction.status == "ok")
    assert extract_option(extraction.filtered) == parse_filtered(extraction.filtered) == extraction


@pytest.mark.parametrize(
    "unit",
    [
        "\n",
        "- ",
        "the ",
        "answer ",
        "B or ",
        "(",
        "*",
        "_",
        "<think>",
        "< ",
        "not ",
        "final ",
        "a ",
        "B, ",
        "(A) ",
        "The answer is B. ",
        "A. T1 → T2\n",
        "\\boxed{",
        "therefore B. ",
        "B x or ",
        "| A | ",
        "Wait, B. ",
        '"a": ',
        "选B",
        "<answer>",
        "## Thinking\n",
        "final<|message|>",
        "assistantfinal",
    ],
)
@pytest.mark.parametrize("times", [4_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_a_model_stuck_in_a_loop_is_read_in_linear_time(unit: str, times: int) -> None:
    extract_option("x" + unit * times + "y")  # the suite's time limit is the assertion


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["选A", "alert: x, Option A ", "A) No\n", " ?", "<|", "<answer>", "final answer: ", ". "]
)
@pytest.mark.parametrize("kind", sorted(FILTER_VERSIONS))
def test_every_filter_reads_a_megabyte_at_once(kind: str, unit: str) -> None:
    step = get_filter(kind).kind()
    step.apply([["B"]], None)  # its patterns are compiled once
    text = (unit * 1_000_000)[:1_000_000]
    before = process_time()
    step.status(step.apply([[text]], None)[0])
    assert process_time() - before < 3  # 1 s on an idle machine


def test_the_filter_takes_the_options() -> None:
    assert OptionLetterFilter(letters="ABCD").apply([["E"], ["d"], ["A", "?"]], None) == [
        "[out_of_range]",
        "D",
        ["A", "[none]"],
    ]


def test_a_filtered_response_is_read_back() -> None:
    assert parse_filtered(" C ") == Extraction("C", "ok")
    assert parse_filtered("[multiple]") == Extraction(None, "multiple")
    assert parse_filtered("") == Extraction(None, "empty")
