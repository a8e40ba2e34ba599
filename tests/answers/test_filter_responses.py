"""Responses as models write them, with markup, JSON, chat tokens, names and hedges: one outcome
each.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import process_time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks.answers import FILTER_VERSIONS, OptionLetterFilter
from medtasks.answers.markup import PATTERNS
from medtasks.answers.option_letter import Extraction, extract_option, option_status
from medtasks.answers.vocabulary import Vocabulary
from medtasks.catalog.registry import get_filter

HERE = Path(__file__).parent
THOUGHTS = Vocabulary("thoughts")
OUTCOMES: dict[str, list[str]] = yaml.safe_load(
    (HERE / "outcomes.yaml").read_text(encoding="utf-8")
)
TABLE = [(response, outcome) for outcome, responses in OUTCOMES.items() for response in responses]


@pytest.mark.parametrize(("response", "outcome"), TABLE, ids=repr)
def test_every_response_has_one_outcome(response: str, outcome: str) -> None:
    extraction = extract_option(response)
    assert (extraction.letter or extraction.status) == outcome


SENTENCES = """A small effusion is seen between T1 and T2 → T3. No new left opacity, or an I see A-lines C-shaped.
unclear; vitamin D hepatitis B image A E. coli patient A type B aortic dissection grows.
It resolves, stable H. pylori not"""
WORDS = st.sampled_from(SENTENCES.split())
MARKED = st.sampled_from(
    ["Answer: {}", "Final answer: {}", "The answer is {}.", "\\boxed{{{}}}", '{{"answer": "{}"}}']
)
SOLE = st.sampled_from(
    ["{}", "({})", "[{}]", "**{}**", "`{}`", "{}.", "Option {}", "{}: T2 → T3", "({}) T2 → T3"]
)
LETTER = st.sampled_from("ABCDE")
PAIR = st.permutations("ABCDE").map(lambda letters: letters[:2])
HEDGE = st.sampled_from(
    [
        "{} or {}",
        "{}/{}",
        "{}, {}",
        "either {} or {}",
        "both {} and {}",
        "**{}** or **{}**",
        "({}) or maybe ({})",
    ]
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
    st.lists(WORDS, max_size=25).map(" ".join),
    LETTER,
    st.sampled_from(["think", "THINKING", "analysis", "reasoning"]),
)
def test_a_thinking_block_changes_nothing(response: str, thought: str, tag: str) -> None:
    block = f"<{tag}>Final answer: {thought}</{tag}>"
    expected = extract_option(response)
    assert extract_option(f"{block}\n{response}") == expected
    assert extract_option(f"Answer: {thought}</{tag}>{response}") == expected


NOISE = st.text(max_size=60) | st.text(
    alphabet="ABCDEFabe answr:.,()[]*_`{}\\$<>|/#\n→✓Ｂ", max_size=60
)


@settings(max_examples=400)
@given(NOISE)
def test_any_text_has_a_status_and_filtering_twice_is_filtering_once(text: str) -> None:
    extraction = extract_option(text)
    assert (extraction.letter is not None) == (extraction.status == "ok")
    (filtered,) = OptionLetterFilter("ABCDE").apply([[text]], None)
    assert extract_option(str(filtered)) == extraction
    assert option_status(str(filtered)) == extraction.status


LOOPS = {
    "OptionLetterFilter": (
        ("x{}y",),
        ("\n", "- ", "the ", "answer ", "B or ", "(", "*", "_", "<think>", "< ", "not ", "final ", "a ", "B, ", "(A) ",
         "The answer is B. ", "A. T1 → T2\n", "\\boxed{", "therefore B. ", "B x or ", "| A | ", "Wait, B. ", '"a": ',
         "选B", "<answer>", "## Thinking\n", "final<|message|>", "assistantfinal"),
    ),
    "AlertStateFilter": (
        ("{}", "alert: {}", "{}alert", "no_alert{}x"),
        ("alert: ", "alert", "no ", "no_alert. ", "{", "{\n", "<", "<think>", "Answer: ", "Answer: alert. ", " ", "\n",
         "-", "Final answer: no alert is ", "because ", "alert: because ", "Reason: ", "**", "`", '{"a": 1}', "(", "1.",
         "alert . ", "uncertain|"),
    ),
    "AnswerabilityFilter": (
        ("{}", "unanswerable{}x", "{}a polyp?"),
        ("Answer: ", "answer ", "unanswerable ", "unanswerable\n", "**", "<", "<think>", "-", " ", "\n", "(", "the "),
    ),
    "ReasonedAnswerFilter": (
        ("{}", "Final answer{}", "Final answer: {}x", "{}final answer: x{}"),
        ("Final answer: ", "final answer is ", "Final answer", "\\boxed{", "{", "**", "`", "<", "<think>", " ", "\n",
         '"', "*_", "-", "#"),
    ),
}  # fmt: skip
"""Where a model may be stuck, and in what, by filter."""


@pytest.mark.parametrize(
    ("kind", "unit"), [(kind, unit) for kind, (_, units) in LOOPS.items() for unit in units]
)
@pytest.mark.parametrize("length", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_a_model_stuck_in_a_loop_is_read_in_linear_time(kind: str, unit: str, length: int) -> None:
    step = get_filter(kind).kind()
    for place in LOOPS[kind][0]:
        text = place.replace("{}", unit * (length // len(unit)))
        step.status(step.apply([[text]], None)[0])  # the suite's time limit is the assertion


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    ["选A", "alert: x, Option A ", "A) No\n", " ?", "<|", "<answer>", "final answer: ", ". "],
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
    assert extract_option("D", letters="ABC").status == "out_of_range"
    assert OptionLetterFilter(letters="ABCD").apply([["E"], ["d"], ["A", "?"]], None) == [
        "[out_of_range]",
        "D",
        ["A", "[none]"],
    ]


def test_a_filtered_response_is_read_back() -> None:
    assert extract_option(" C ") == Extraction("C", "ok")
    assert extract_option("[multiple]") == Extraction(None, "multiple")
    assert extract_option("") == Extraction(None, "empty")
    assert option_status(" J ") == "ok"


def test_responses_without_a_sign_of_markup_have_none_to_rewrite() -> None:
    """`marked` finds whatever its patterns begin with, which a later pattern could change."""
    rows = (HERE / "blind_20.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [json.loads(row)["response"] for row in rows]
    plain = [text for text in texts if PATTERNS["marked"].search(text) is None]
    untagged = [text for text in texts if THOUGHTS["marked"].search(text) is None]
    assert min(len(plain), len(untagged)) > 100
    assert plain == [PATTERNS.rewrite("plain", text) for text in plain]
    assert not any(map(THOUGHTS["boundary"].search, untagged))
