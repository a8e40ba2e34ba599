"""Agreement with a careful reader: what stands in ``responses.jsonl`` was judged by reading, not by
running the rules.

A row names the filter, the manner and the model family it is like, the response, what a reader
makes of it (a letter or a status) and why; ``letters`` where the options are not A to E, ``known``
where the rules are known to disagree.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from medtasks.answers import OptionLetterFilter, ReasonedAnswerFilter
from medtasks.answers.alert_state import parse_alert
from medtasks.answers.answerability import answerability_status
from medtasks.answers.option_letter import extract_option
from medtasks.answers.reasoned_answer import final_answer, reasoned_status

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "answer-extraction.md"


def _lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text(encoding="utf-8").splitlines()]


ROWS = _lines("responses.jsonl")
OPTIONS = [row for row in ROWS if row["filter"] == "option_letter"]
DISCUSSED, HEDGED, ANSWERED, MEDICAL = (
    [row["text"] for row in _lines("undecided.jsonl") if row["kind"] == kind]
    for kind in ("discussed", "hedged", "answered", "medical")
)


def _read(row: dict[str, Any]) -> str:
    """What the row's filter makes of its response: a letter, a state or a status."""
    text = row["response"]
    match row["filter"]:
        case "option_letter":
            found = extract_option(text, row.get("letters", "ABCDE"))
            return found.letter or found.status
        case "answerability":
            return answerability_status(text)
        case "reasoned_answer":
            (filtered,) = ReasonedAnswerFilter().apply([[text]], None)
            return reasoned_status(str(filtered))
        case _:
            alert = parse_alert(text)
            return alert.state or alert.status


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.get('like', row['filter'])}-{row['why']}"
)
def test_a_response_is_read_as_a_careful_reader_reads_it(row: dict[str, Any]) -> None:
    assert (_read(row) == row["expected"]) != ("known" in row), row.get(
        "known", "expected otherwise"
    )


def test_no_letter_is_returned_that_a_careful_reader_would_not_name() -> None:
    false = [
        row["response"] for row in OPTIONS if len(_read(row)) == 1 and _read(row) != row["expected"]
    ]
    assert false == []


def test_the_corpus_is_large_and_disagreement_is_rare() -> None:
    known = [row for row in ROWS if "known" in row]
    assert len(OPTIONS) >= 450
    assert len(known) <= 0.01 * len(ROWS)
    assert {row["expected"] for row in OPTIONS} >= {
        *"ABCDEFGHIJ",
        "none",
        "multiple",
        "out_of_range",
        "empty",
    }


def test_the_docs_state_the_agreement() -> None:
    stated = {
        manner: (int(agree), int(rows))
        for manner, rows, agree in re.findall(
            r"^\| ([^|]+?) \| (\d+) \| (\d+) \|$", DOCS.read_text("utf-8"), re.M
        )
    }
    rows, agree = Counter[str](), Counter[str]()
    for row in ROWS:
        rows[row["manner"]] += 1
        agree[row["manner"]] += _read(row) == row["expected"]
    assert stated == {manner: (agree[manner], count) for manner, count in rows.items()}


@pytest.mark.parametrize("text", DISCUSSED, ids=repr)
def test_an_option_that_is_only_discussed_is_no_answer(text: str) -> None:
    for letter in "ABCDE":
        assert extract_option(text.replace("{L}", letter)).status != "ok"


@pytest.mark.parametrize("text", HEDGED, ids=repr)
def test_two_options_are_never_one(text: str) -> None:
    for one, other in permutations("ABCDE", 2):
        assert extract_option(text.replace("{X}", one).replace("{Y}", other)).status != "ok"


@pytest.mark.parametrize("text", MEDICAL, ids=repr)
def test_letters_of_medicine_are_no_options(text: str) -> None:
    assert extract_option(text).status != "ok"


READERS: dict[str, Callable[[str], str]] = {
    "alert": lambda text: parse_alert(text).state or "invalid",
    "short": answerability_status,
    "reasoned": lambda text: (final_answer(text) or "none").rstrip("."),
}
SAME = {None: "none", "": "none", "answer": "ok", "answered": "ok", "no_final_answer": "none"}
"""Authors' words for the same reading."""


def _blind(number: int) -> list[tuple[str, str, str]]:
    """Kind, the author's reading and ours, of every response in a set that is not arguable."""
    readings = []
    for row in _lines(f"blind_{number}.jsonl"):
        kind, reading = row["kind"], SAME.get(row["reading"], row["reading"])
        if kind != "choice":
            ours = READERS[kind](row["response"])
        else:
            ours = (
                extract_option(row["response"], "".join(row["options"]), row["options"]).letter
                or "none"
            )
            if len(reading) != 1 or (row.get("by") == "prose-text" and ours == "none"):
                kind, reading = "no letter", "none"
        if not row.get("arguable"):
            readings.append((kind, reading.rstrip("."), ours))
    return readings


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("number", "agreeing"),
    [
        pytest.param(
            1,
            {"choice": 199, "no letter": 41, "alert": 58, "short": 50, "reasoned": 50},
            marks=SLOW,
        ),
        pytest.param(
            2,
            {"choice": 169, "no letter": 41, "alert": 40, "short": 39, "reasoned": 19},
            marks=SLOW,
        ),
        pytest.param(
            3,
            {"choice": 172, "no letter": 39, "alert": 44, "short": 44, "reasoned": 30},
            marks=SLOW,
        ),
        pytest.param(
            4,
            {"choice": 172, "no letter": 44, "alert": 39, "short": 41, "reasoned": 27},
            marks=SLOW,
        ),
        pytest.param(
            5,
            {"choice": 149, "no letter": 40, "alert": 41, "short": 42, "reasoned": 25},
            marks=SLOW,
        ),
        pytest.param(
            6,
            {"choice": 344, "no letter": 86, "alert": 59, "short": 60, "reasoned": 40},
            marks=SLOW,
        ),
        pytest.param(
            7,
            {"choice": 372, "no letter": 63, "alert": 60, "short": 60, "reasoned": 40},
            marks=SLOW,
        ),
        pytest.param(8, {"choice": 191, "no letter": 148, "alert": 60, "short": 60}, marks=SLOW),
        pytest.param(9, {"choice": 181, "no letter": 160, "alert": 57, "short": 57}, marks=SLOW),
        pytest.param(10, {"choice": 298, "no letter": 60, "alert": 60, "short": 60}, marks=SLOW),
        pytest.param(11, {"choice": 297, "no letter": 60, "alert": 58, "short": 60}, marks=SLOW),
        pytest.param(12, {"choice": 295, "no letter": 60, "alert": 60, "short": 60}, marks=SLOW),
        pytest.param(13, {"choice": 295, "no letter": 60, "alert": 60, "short": 59}, marks=SLOW),
        pytest.param(14, {"choice": 287, "no letter": 60, "alert": 60, "short": 60}, marks=SLOW),
        pytest.param(15, {"choice": 295, "no letter": 60, "alert": 60, "short": 60}, marks=SLOW),
        pytest.param(16, {"choice": 298, "no letter": 60, "alert": 59, "short": 59}, marks=SLOW),
        pytest.param(17, {"choice": 293, "no letter": 60, "alert": 60, "short": 60}, marks=SLOW),
        pytest.param(18, {"choice": 296, "no letter": 60, "alert": 60, "short": 60}, marks=SLOW),
        pytest.param(19, {"choice": 296, "no letter": 60, "alert": 59, "short": 60}, marks=SLOW),
        (20, {"choice": 293, "no letter": 60, "alert": 60, "short": 60}),
        pytest.param(21, {"choice": 96, "no letter": 20}, marks=SLOW),
        pytest.param(22, {"choice": 307, "no letter": 80}, marks=SLOW),
        pytest.param(23, {"choice": 304, "no letter": 80}, marks=SLOW),
        pytest.param(24, {"choice": 317, "no letter": 80}, marks=SLOW),
        pytest.param(25, {"choice": 310, "no letter": 80}, marks=SLOW),
        (26, {"alert": 100, "short": 100}),
        (27, {"alert": 98, "short": 100}),
        (28, {"alert": 95, "short": 97}),
        (29, {"choice": 182, "no letter": 71, "alert": 77, "short": 79}),
    ],
)
def test_sets_of_other_authors_are_read_as_they_read_them(
    number: int, agreeing: dict[str, int]
) -> None:
    readings = _blind(number)
    counts = Counter(kind for kind, theirs, ours in readings if theirs == ours)
    assert all(counts[kind] >= number for kind, number in agreeing.items()), counts
    letters = [(theirs, ours) for kind, theirs, ours in readings if kind in ("choice", "no letter")]
    wrong = [pair for pair in letters if len(pair[1]) == 1 and pair[0] != pair[1]]
    assert wrong == (
        [("none", "B")] if number == 6 else []
    )  # "The diagnosis is pneumothorax.", which is B's text


def _read_adversarial(rows: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """The author's reading and ours of responses that authors wrote so that another letter looks
    chosen.
    """
    found = [
        (row, extract_option(row["response"], "".join(row["options"]), row["options"]))
        for row in rows
    ]
    return [(row["reading"], one.letter or one.status) for row, one in found]


def test_corrected_wrong_letters_stay_corrected() -> None:
    readings = _read_adversarial(
        [row for row in _lines("adversarial.jsonl") if row.get("corrected")]
    )
    assert len(readings) >= 80
    assert [pair for pair in readings if len(pair[1]) == 1 and pair[0] != pair[1]] == []


@pytest.mark.slow
def test_few_adversarial_responses_yield_a_wrong_letter() -> None:
    readings = _read_adversarial(_lines("adversarial.jsonl"))
    wrong = [pair for pair in readings if len(pair[1]) == 1 and pair[0] != pair[1]]
    agree = [
        theirs for theirs, ours in readings if theirs == ours or (len(theirs) > 1 and len(ours) > 1)
    ]
    assert len(wrong) <= 62
    assert len(agree) >= 655


PAIR = st.permutations("ABCDE").map(lambda letters: letters[:2])


@settings(max_examples=300)
@given(
    st.sampled_from(DISCUSSED),
    st.sampled_from(ANSWERED),
    PAIR,
    st.sampled_from([" ", "\n", "\n\n"]),
    st.booleans(),
)
def test_an_answer_is_never_taken_for_the_option_discussed_beside_it(
    discussed: str, answered: str, pair: list[str], between: str, first: bool
) -> None:
    parts = [discussed.replace("{L}", pair[0]), answered.replace("{L}", pair[1])]
    found = extract_option(between.join(parts if first else parts[::-1]))
    assert found.letter in (pair[1], None)


@given(st.sampled_from(ANSWERED), st.sampled_from("ABCDEFGHIJ"))
def test_an_answer_is_found_among_the_letters_that_are_declared(answered: str, letter: str) -> None:
    text = answered.replace("{L}", letter)
    assert extract_option(text, "ABCDEFGHIJ").letter == letter
    assert extract_option(text, "ABCDE").letter == (letter if letter in "ABCDE" else None)
    assert OptionLetterFilter("ABCDEFGHIJ").apply([[text]], None) == [letter]
