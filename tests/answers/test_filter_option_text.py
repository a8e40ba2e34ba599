"""Options named by their text, and responses in which only the options' texts show what the answer
is not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks.answers import OptionLetterFilter
from medtasks.answers.option_letter import extract_option

FINDINGS = {
    "A": "Pneumonia",
    "B": "Pleural effusion",
    "C": "Pneumothorax",
    "D": "Atelectasis",
    "E": "Normal",
}
INTERVALS = {
    "A": "T1 → T2",
    "B": "T2 → T3",
    "C": "T3 → T4",
    "D": "T4 → T5",
    "E": "None of them are true",
}
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "with_options.jsonl")
    .read_text(encoding="utf-8")
    .splitlines()
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["response"][:80])
def test_a_response_is_read_beside_its_options(row: dict[str, Any]) -> None:
    found = extract_option(row["response"], "".join(row["options"]), row["options"])
    assert (found.letter or found.status) in row["expected"]


@pytest.mark.parametrize(
    ("response", "options", "letter", "kind"),
    [
        ("C", FINDINGS, "C", "letter"),
        ("C. Pneumothorax", FINDINGS, "C", "letter"),
        ("Pneumothorax (C)", FINDINGS, "C", "letter"),
        ("A pneumothorax.", FINDINGS, "C", "text"),
        ("T3-T4", INTERVALS, "C", "text"),
        ("the last option", INTERVALS, "E", "text"),
        ("Right", {"A": "Left", "B": "Right"}, "B", "text"),
        ("2", {"A": "1", "B": "2"}, "B", "text"),
        ("E. coli.", {"A": "Klebsiella pneumoniae", "B": "Escherichia coli"}, "B", "text"),
        ("B. No", {"A": "Yes", "B": "No"}, "B", "letter"),
    ],
)
def test_how_the_option_was_named_is_recorded(
    response: str, options: dict[str, str], letter: str, kind: str
) -> None:
    found = extract_option(response, "".join(options), options)
    assert (found.letter, found.how) == (letter, kind)
    (((filtered, how),),) = OptionLetterFilter("".join(options)).readings(
        [[response]], [{"choices": options}]
    )
    assert (filtered, how) == (letter, kind)


@pytest.mark.parametrize(
    ("response", "how"),
    [
        ("The image shows a pneumothorax.", "named"),
        ("Either pneumonia or pneumothorax.", ""),
        ("The view is dark.", ""),
    ],
)
def test_a_response_that_is_not_read_but_has_one_options_text_is_told_apart(
    response: str, how: str
) -> None:
    ((reading,),) = OptionLetterFilter("ABCDE").readings([[response]], [{"choices": FINDINGS}])
    assert reading == ("[none]", how)


def test_every_document_is_read_with_its_own_options() -> None:
    documents = [
        {"choices": {"A": "Polyp", "B": "Ulcer"}},
        {"choices": {"A": "Ulcer", "B": "Polyp"}},
        {},
    ]
    assert OptionLetterFilter("AB").apply([["Polyp"], ["Polyp"], ["Polyp"]], documents) == [
        "A",
        "B",
        "[none]",
    ]


def test_two_options_with_the_same_text_are_read_by_their_letters_only() -> None:
    options = {"A": "Polyp", "B": "the polyp", "C": "Ulcer"}
    assert extract_option("Polyp", "ABC", options).letter is None
    assert extract_option("B. Polyp", "ABC", options).letter == "B"


@given(
    st.sampled_from("ABCDE"),
    st.permutations(list(FINDINGS.values())),
    st.sampled_from(["{}", "**{}**", "Answer: {}"]),
)
def test_a_whole_answer_selects_the_letter_that_has_its_text(
    letter: str, texts: list[str], manner: str
) -> None:
    options = dict(zip("ABCDE", texts, strict=True))
    assert extract_option(manner.format(options[letter]), "ABCDE", options).letter == letter


@given(st.permutations("ABCDE").map(lambda letters: letters[:2]))
def test_a_label_never_wins_over_another_options_text(pair: list[str]) -> None:
    discussed, named = pair
    for text in (
        f"The image shows {FINDINGS[named]}.\n{discussed}. {FINDINGS[discussed]}: not what I would expect here.",
        f"{FINDINGS[named]} is what I see, and one may think of {FINDINGS[discussed]} ({discussed}).",
    ):
        assert extract_option(text, "ABCDE", FINDINGS).status in ("none", "multiple")


@given(
    st.text(max_size=200),
    st.dictionaries(st.sampled_from("ABCDE"), st.text(max_size=20), max_size=5),
)
def test_any_text_and_any_options_give_a_status(text: str, options: dict[str, str]) -> None:
    found = extract_option(text, "ABCDE", options)
    assert (found.letter is not None) == (found.status == "ok") == (found.how in ("letter", "text"))
