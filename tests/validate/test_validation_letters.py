"""Option letters in prompts: every usual way to show a letter is accepted, and options without one
are found.
"""

from __future__ import annotations

import pytest

from medtasks.validate.prompts import without_letter

DOCUMENT = {"choices": {"A": "Left lung", "B": "right lung", "C": "<5 mm, both sides"}}


@pytest.mark.parametrize(
    "line",
    [
        "{letter}. {text}",
        "({letter}) {text}",
        "{letter}) {text}",
        "[{letter}] {text}",
        "Option {letter}: {text}",
        "**{letter}** {text}",
        "{letter}\n{text}",
        "| {letter} | {text} |",
        '"{letter}": "{text}",',
        "<b>{letter}</b> {text}",
        '<option letter="{letter}">{text}</option>',
        "{letter} is '{text}'",
        "{text} ({letter})",
        "{letter} → {text}",
    ],
)
def test_letters_beside_options(line: str) -> None:
    lines = [line.format(letter=letter, text=text) for letter, text in DOCUMENT["choices"].items()]
    assert without_letter(DOCUMENT, "Which is it?\n" + "\n".join(lines)) is None


@pytest.mark.parametrize(
    "prompt",
    [
        "- {A}\n- {B}\n- {C}\nReply with A, B or C.",
        "Reply with A, B or C: {A}, {B}, {C}",
        "1. {A}\n2. {B}\n3. {C}",
        "Is it a {A}, a {B}, or {C}?",
    ],
)
def test_options_without_letters(prompt: str) -> None:
    assert without_letter(DOCUMENT, prompt.format(**DOCUMENT["choices"])) in ("A", "B")


def test_the_first_option_without_its_letter_is_named() -> None:
    assert without_letter(DOCUMENT, "A. Left lung\nright lung\n<5 mm, both sides") == "B"


def test_open_questions_have_no_letters() -> None:
    assert without_letter({"choices": None}, "What is seen?") is None
