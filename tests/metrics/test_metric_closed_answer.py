"""Closed answers: normalisation, and a table of replies as models write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.metrics.closed_answer import closed_answer_matches
from medtasks.metrics.normalisation import normalise

TOOLS = ("hand", "forceps", "bovie", "needledriver")
TASKS = ("Knot_Tying", "Needle_Passing", "Suturing")
ACTIONS = ("cutting, tissue", "clip and cut", "clip", "cut", "grasp/retract", "irrigate")

NORMALISED = {
    "Forceps.": "forceps", "  the  Forceps ": "forceps", "A polyp": "polyp", "an AN": "an", "Type A": "type a",
    "a": "a", "The": "the", "Knot_Tying": "knot tying", "knot-tying": "knot tying", "Knot\u2011Tying": "knot tying",
    "**Knot Tying**": "knot tying", "<b>Knot</b> Tying": "knot tying", "# Suturing\n": "suturing",
    "\\text{Suturing}": "suturing", "Calot's triangle": "calots triangle", "Calot’s Triangle": "calots triangle",
    "ＦＯＲＣＥＰＳ": "forceps", "1.5 mm": "1.5 mm", "15 mm.": "15 mm", "-3": "-3", "−3": "-3", "- 3": "3",
    "2-3": "2 3", "BBPS 2–3": "bbps 2 3", ".5": ".5", "1/2": "1/2", "½": "1/2", "5 %": "5%", "5%": "5%",
    "< 5 mm": "<5 mm", "<5 mm": "<5 mm", ">5 mm": ">5 mm", "> 5 mm": ">5 mm", "> forceps": "forceps", "C++": "c++",
    "+1": "+1", "clip & cut": "clip and cut", "Straße": "strasse", "息肉。": "息肉", "पॉलिप": "पॉलिप", "é": "é",
    "e\u0301": "é", "": "", "...": "", "?!": "", "T1 → T2": "t1→t2", "37 °C": "37°c", "fore\u200bceps": "foreceps",
    "3.": "3", "x.y": "x y",
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NORMALISED.items(), ids=repr)
def test_what_counts(text: str, expected: str) -> None:
    assert normalise(text) == expected


FORCEPS = [
    "forceps", "Forceps", "FORCEPS.", " forceps\n", "the forceps", "A forceps", "a forceps.", "**forceps**",
    "`forceps`", '"forceps"', "- forceps", "> forceps", "### forceps", "1. forceps", "B", "b", "(B)", "[b]", "B.",
    "B)", "**B**", "Ｂ", "B:", "B. forceps", "B) Forceps", "(B) forceps", "B: forceps", "B - forceps", "B, forceps",
    "B – forceps", "B forceps", "**B.** forceps", "**B. forceps**", "Option B", "option b.", "Option B: forceps",
    "**Option B**: Forceps", "Choice B", "forceps (B)", "Forceps (option B).", "Answer: forceps", "Answer: B",
    "answer: (b) forceps", "**Answer:** B. forceps", "Answer:\nforceps", "### Answer\n\nforceps",
    "Final answer: forceps", "The answer is forceps.", "The answer is B.", "The correct answer is (B) forceps",
    "Correct option: B", "答案：B", "\\boxed{B}", "$\\boxed{\\text{forceps}}$", "<answer>forceps</answer>",
    "<think>hand? bovie?</think>forceps", "<think>A</think>B", '{"answer": "forceps"}',
    '{"answer": "B", "confidence": 0.9}', '["forceps"]', '["\\u0066orceps"]', '```json\n{"answer": "Forceps"}\n```',
    "```\nB\n```", "A hand holds a bovie.\nAnswer: forceps", "The hand is empty. Answer: B",
    "Not the hand.\n\nFinal answer: B. forceps", "The answer is unclear at first.\nAnswer: forceps",
    "Answer: hand\nNo, look again.\nFinal answer: forceps",
    "Answer: B\n\nExplanation: the answer is clear because of its jaws.", "Answer: forceps\nThe hand is not visible.",
    "B. forceps\n\nIts jaws are visible, unlike a hand.", "Its jaws are visible.\nforceps", "B\nforceps", "B</s>",
    "B<|im_end|>", "Response: forceps", "forceps\nforceps", "Jaws close.\nAnswer: B\nAnswer: forceps",
    "Answer: forceps, Confidence: 90%", "Answer: B, Confidence: 90%", "Answer: forceps; Confidence: 90 %",
    "Answer: forceps. Confidence: 90%.", "Answer: forceps (Confidence: 90%)", "Answer: forceps | Confidence: 0.9",
    "Answer: forceps Confidence: 90%", "Answer: **forceps** – **Confidence: 90%**", "forceps, 90% confident",
    "Answer: forceps. I am 90% confident.", "Answer：forceps，Confidence：90％",
]  # fmt: skip

NOT_FORCEPS = [
    "Answer: hand, Confidence: 90%", "Answer: C, Confidence: 90%", "forceps or hand, Confidence: 90%",
    "A. forceps, Confidence: 90%", "Confidence: 90%", "forceps, but I am not 90% confident",
    "forceps: confidence 90%\nhand: confidence 5%", "forceps, hand, confidence: 50%", "", " ", "[empty]", "hand", "A",
    "C", "E", "(D)", "Z", "A. forceps", "A) forceps", "(A) forceps", "Option A: forceps", "B. hand", "B: bovie",
    "B) needledriver", "C forceps", "forceps (A)", "forceps and hand", "forceps, hand", "hand or forceps", "A or B",
    "A, B", "B/C", "forceps\nhand", "hand\nforceps", "B\nC", "B. forceps\nC. bovie", "It is not forceps", "not B",
    "Answer: not clear\nforceps", "Answer: hand", "Answer: A. forceps", "Answer: not B", "Answer: B or C",
    "Answer: B\nAnswer: C", "Answer: hand\nFinal answer: C", "Answer: forceps\nThe final answer is hand.",
    "Final answer: B\nFinal answer: A", "forceps-like", "tissue forceps", "forcep", "unanswerable",
    "<think>forceps</think>", "<think>forceps", "A. hand\nB. forceps\nC. bovie\nD. needledriver",
    "The instrument in the frame is a pair of forceps.", "B-type", "Because of its jaws.", '{"answer": "hand"}', "{}",
    "[", "{", "forceps?\n\nhand", "Answer: forceps\nhand", '{"answer": ["forceps", "hand"]}', '{"answer": null}',
]  # fmt: skip


@pytest.mark.parametrize("reply", [*FORCEPS, *NOT_FORCEPS], ids=repr)
def test_a_reply_is_the_answer_or_not(reply: str) -> None:
    assert closed_answer_matches(reply, ["forceps"], TOOLS) == (reply in FORCEPS)


@pytest.mark.parametrize(
    ("reply", "answer", "choices", "matches"),
    [
        ("knot tying", "Knot_Tying", TASKS, True), ("Knot-Tying.", "Knot_Tying", TASKS, True),
        ("A", "Knot_Tying", TASKS, True), ("A knot tying", "Knot_Tying", TASKS, True),
        ("KnotTying", "Knot_Tying", TASKS, False), ("A", "A", ("B", "A", "C"), True),
        ("B", "A", ("B", "A", "C"), False), ("C", "D", ("A", "B", "D"), False), ("2", "2", ("1", "2", "3"), True),
        ("B", "2", ("1", "2", "3"), True), ("B. 2", "2", ("1", "2", "3"), True), ("B. 3", "2", ("1", "2", "3"), False),
        ("1", "2", ("1", "2", "3"), False), ("2.", "2", ("1", "2", "3"), True), ("-3", "-3", ("3", "-3"), True),
        ("3", "-3", ("3", "-3"), False), ("1.5", "1.5", ("15", "1.5"), True),
        ("> 5 mm", ">5 mm", ("<5 mm", ">5 mm"), True), ("< 5 mm", ">5 mm", ("<5 mm", ">5 mm"), False),
        ("B", ">5 mm", ("<5 mm", ">5 mm"), True), ("Yes.", "yes", ("yes", "no"), True),
        ("No", "yes", ("yes", "no"), False), ("A", "yes", ("yes", "no"), True),
        ("E. coli", "E. coli", ("a", "bb", "cc", "E. coli", "dd"), True),
        ("E. coli", "E. coli", ("aa", "bb", "cc", "E. coli", "dd"), True),
        ("Type A", "Type A", ("Type A", "Type B"), True), ("Type B", "Type A", ("Type A", "Type B"), False),
        ("Type", "Type A", ("Type A", "Type B"), False), ("B. forceps", "B. forceps", ("A. hand", "B. forceps"), True),
        ("forceps", "B. forceps", ("A. hand", "B. forceps"), True),
        ("B", "B. forceps", ("A. hand", "B. forceps"), True), ("forceps", "B", TOOLS, True), ("B", "B", TOOLS, True),
        ("clip and cut", "clip and cut", ACTIONS, True), ("clip", "clip and cut", ACTIONS, False),
        ("cutting, tissue", "cutting, tissue", ACTIONS, True),
        ("A. cutting, tissue", "cutting, tissue", ACTIONS, True), ("clip & cut", "clip and cut", ACTIONS, True),
        ("the left", "left", ("left", "right"), True), ("+", "+", ("+", "++"), True), ("++", "+", ("+", "++"), False),
        ("?", "?", ("?", "!"), True), ("A", "?", ("?", "!"), True), ("B", "?", ("?", "!"), False),
        ("息肉", "息肉", ("息肉", "出血"), True), ("C-arm", "C-arm", ("hand", "drill", "C-arm"), True),
        ("C-clamp", "C-arm", ("hand", "drill", "C-arm"), False), ("blue", "blue", (), True),
        ("Blue!", "blue", (), True), ("A", "blue", (), False), ("Answer: The blue.", "blue", (), True),
        ("dark blue", "blue", (), False), ("Final answer: 3.5 mm", "3.5 mm", (), True), ("35 mm", "3.5 mm", (), False),
        ("A", "A", (), True), ("unanswerable", "unanswerable", TOOLS, True), ("forceps", "unanswerable", TOOLS, False),
        ("b", "A small polyp", (), False),
    ],
    ids=repr,
)  # fmt: skip
def test_letters_texts_numbers_and_no_choices(
    reply: str, answer: str, choices: tuple[str, ...], matches: bool
) -> None:
    assert closed_answer_matches(reply, [answer], choices) == matches


@pytest.mark.parametrize(
    ("reply", "answers", "choices", "matches"),
    [
        (reply, ["hand", "bovie"], TOOLS, True)
        for reply in (
            "hand, bovie", "bovie, hand", "Bovie and hand.", "hand; bovie", "hand/bovie", "hand & bovie",
            "hand, and bovie", "hand\nbovie", "- hand\n- bovie", "* Hand\n* Bovie", "• hand • bovie",
            "1. hand\n2. bovie", "A, C", "C and A", "A/C", "A; C", "(A), (C)", "A\nC", "A. hand, C. bovie",
            "A) hand\nC) bovie", "**A** and **C**", "Options A and C", "A, bovie", "Answer: A, C",
            "Answer:\n- hand\n- bovie", "They hold.\nFinal answer: hand and bovie", "hand, bovie, hand",
            '["hand", "bovie"]', '{"answer": ["hand", "bovie"]}', '{"answer": "hand, bovie"}', "\\boxed{A, C}", "a, c",
            "A. hand\nC. bovie\n\nBoth are in view.", "The answers are A and C.", "hand (A), bovie (C)",
        )
    ]
    + [
        (reply, ["hand", "bovie"], TOOLS, False)
        for reply in (
            "hand", "A", "hand, forceps", "hand, bovie, forceps", "A, B, C", "hand or bovie", "hand, bovie, scissors",
            "", "and", "A. bovie, C. hand", "hand but not bovie", "hand\nThe view is dark.\nbovie", "not A, C",
        )
    ]
    + [
        ("clip and cut, irrigate", ["clip and cut", "irrigate"], ACTIONS, True),
        ("irrigate and clip and cut", ["clip and cut", "irrigate"], ACTIONS, True),
        ("clip, cut", ["clip", "cut"], ACTIONS, True),
        ("clip, cut", ["clip and cut"], ACTIONS, False),
        ("clip and cut", ["clip", "cut"], ACTIONS, False),
        ("cutting, tissue; clip", ["cutting, tissue", "clip"], ACTIONS, True),
        ("clip, cutting, tissue, cut", ["clip", "cutting, tissue", "cut"], ACTIONS, True),
        ("A. cutting, tissue, C. clip", ["cutting, tissue", "clip"], ACTIONS, True),
        ("grasp/retract/irrigate", ["grasp/retract", "irrigate"], ACTIONS, True),
        ("cutting, clip", ["cutting, tissue", "clip"], ACTIONS, False),
        ("blue, red", ["red", "blue"], (), True),
        ("blue", ["red", "blue"], (), False),
        ("1, 3", ["1", "3"], ("1", "2", "3"), True),
        ("1/3", ["1", "3"], ("1", "2", "3"), True),
        ("A, C", ["1", "3"], ("1", "2", "3"), True),
        ("1, 2", ["1", "3"], ("1", "2", "3"), False),
    ],
    ids=repr,
)  # fmt: skip
def test_several_answers_are_a_set(
    reply: str, answers: list[str], choices: tuple[str, ...], matches: bool
) -> None:
    assert closed_answer_matches(reply, answers, choices, multi_select=True) == matches


def test_several_answers_or_the_question_allow_several_selections() -> None:
    assert closed_answer_matches("hand", ["hand"], TOOLS, multi_select=True)
    assert not closed_answer_matches("hand, bovie", ["hand"], TOOLS, multi_select=True)
    assert closed_answer_matches("A and C", ["hand", "bovie"], TOOLS)
    assert not closed_answer_matches("", [], TOOLS)


MESSY = st.lists(
    st.sampled_from(
        [
         "a", "the", "b", "A.", "forceps", "hand", " ", "\n", ",", " and ", "-", "3", ".", "/", "%", "<", ">", "<b>",
         "</b>", "i", "+", "'", "_", "**", "Answer: ", "Final answer: ", "\\boxed{", "}", "{", "(", ")", "é", "\u0301",
         "\u200b", "ſ", "İ", "ﬁ", "°",
     ]
    ),
    max_size=10,
).map("".join)  # fmt: skip
ENVELOPES = (
    "{}", "{}.", "**{}**", " {}\n", "({})", '"{}"', "Answer: {}", "Final answer: {}", "<think>hand</think>{}", "- {}",
    "\\boxed{{{}}}", "A hand and a bovie are seen.\nAnswer: {}", '{{"answer": "{}"}}', "```\n{}\n```",
)  # fmt: skip
CASES = st.sampled_from((str, str.upper, str.lower, str.title))
SELECTIONS = st.sets(st.integers(0, len(TOOLS) - 1), min_size=1)


@given(st.one_of(st.text(), MESSY))
def test_normalising_twice_changes_nothing_more(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(
    st.sampled_from(TOOLS),
    st.sampled_from(TOOLS),
    st.sampled_from(ENVELOPES),
    st.sampled_from(("text", "letter", "both")),
    CASES,
)
def test_only_the_right_choice_matches(
    chosen: str, answer: str, envelope: str, form: str, case: type[str]
) -> None:
    letter = "ABCD"[TOOLS.index(chosen)]
    reply = {"text": case(chosen), "letter": letter, "both": f"{letter}. {case(chosen)}"}[form]
    assert closed_answer_matches(envelope.format(reply), [answer], TOOLS) == (chosen == answer)


@given(
    SELECTIONS,
    SELECTIONS,
    st.sampled_from((", ", "; ", " / ", " and ", "\n", "\n- ", ",")),
    st.booleans(),
    st.randoms(),
)
def test_sets_do_not_depend_on_order(
    chosen: set[int], right: set[int], joint: str, letters: bool, random: st.random.Random
) -> None:
    listed = sorted(chosen)
    random.shuffle(listed)
    reply = joint.join("ABCD"[index] if letters else TOOLS[index] for index in listed)
    answers = [TOOLS[index] for index in sorted(right)]
    assert closed_answer_matches(reply, answers, TOOLS, multi_select=True) == (chosen == right)


@given(
    st.lists(st.one_of(st.text(min_size=1, max_size=8), MESSY.filter(len)), min_size=1, max_size=6),
    st.data(),
)
def test_any_choices_match_their_own_letter(choices: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(choices) - 1))
    if not any(len(normalise(choice)) == 1 for choice in choices):
        assert closed_answer_matches("ABCDEF"[index], [choices[index]], choices)


@given(
    st.one_of(st.text(), MESSY),
    st.lists(MESSY, max_size=3),
    st.lists(MESSY, max_size=4),
    st.booleans(),
)
def test_any_text_is_judged(
    reply: str, answers: list[str], choices: list[str], multi_select: bool
) -> None:
    assert closed_answer_matches(reply, answers, choices, multi_select) in (True, False)


LONG = (
    "A, ", "a ", "Answer: ", "Answer: hand\n", "and ", "hand\n", "hand/", "(", "{", "[", "<b>", "<", "- ", "\n", "1. ",
    "confidence: 9% ", "9% sure ",
)  # fmt: skip


@pytest.mark.parametrize("piece", LONG)
@pytest.mark.parametrize("length", [20_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_long_repetitions_are_read(piece: str, length: int) -> None:
    long = piece * (length // len(piece))
    for multi_select in (False, True):
        assert not closed_answer_matches(f"{long}bovie x", ["forceps"], TOOLS, multi_select)
