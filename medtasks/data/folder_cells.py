"""The cells of a benchmark folder's rows: texts, lists of options, and gold answers."""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from medtasks.catalog.benchmark_file import LETTERS, AnswerForm
from medtasks.catalog.records import Where, is_text
from medtasks.core.schema import shown

_OWN_LETTER = re.compile(r"\s*\(?(?P<letter>[A-J])\s*[.):]\s*(?P<text>\S.*)", re.DOTALL)
_WHOLE_NUMBER = re.compile(r"(?P<number>[0-9]{1,3})(?:\.0+)?")
_BARE_LETTER = re.compile(r"\(?(?P<letter>[A-Ja-j])[).:]?")


class CellError(Exception):
    """A cell cannot be used: the message says what it is and what was expected."""

    def __init__(self, message: str, fix: str = "fix the row") -> None:
        super().__init__(message)
        self.fix = fix


def cell_text(value: Any) -> str:
    """The text of a cell without blanks around it; a number as it is written, null as empty.

    Raises:
        CellError: it is neither a text, a number nor a truth value.

    >>> cell_text("  left lung "), cell_text(2.0), cell_text(None)
    ('left lung', '2', '')
    """
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, int | float):
        return str(value)
    if is_text(value):
        return value.strip()
    raise CellError(f"is {shown(value)}, expected text")


def cell_list(value: Any) -> list[Any] | None:
    """The items of a cell that is a list, also one written as JSON or Python; None for another.

    >>> cell_list('["a.png", "b.png"]'), cell_list("['a', 'b']"), cell_list("a.png")
    (['a.png', 'b.png'], ['a', 'b'], None)
    """
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return list(value)
    items = _parsed(value, "[", "]")
    return items if isinstance(items, list) else None


def _parsed(value: Any, begin: str, end: str) -> Any:
    """The value of a text in JSON or Python's notation; None for anything else.

    Only texts that begin with ``begin`` and end with ``end``, such as brackets, are tried.
    """
    text = value.strip() if isinstance(value, str) else ""
    if not (text.startswith(begin) and text.endswith(end)):
        return None
    for parse in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return parse(text)
    return None


def listed_options(value: Any, where: Where) -> dict[str, str]:
    """The options by letter in a cell that lists them.

    A cell is a list, an object such as ``{"A": "left", "B": "right"}``, or has a bar or a line
    break between options: ``A. left | B. right``. Letters are removed if every option begins with
    that of its place.

    Raises:
        CellError: it is neither, or has an option that is empty.
    """
    del where
    lettered = _lettered_options(value)
    if lettered:
        return lettered
    items = cell_list(value)
    if items is None:
        text = cell_text(value)
        items = re.split(r"\s*\|\s*|\s*\n\s*", text) if text else []
    texts = [cell_text(item) for item in items]
    if len(texts) > len(LETTERS):
        raise CellError(f"has {len(texts)} options, expected at most {len(LETTERS)}")
    if "" in texts:
        raise CellError(f"is {shown(value)}, in which an option is empty")
    return _without_own_letters(dict(zip(LETTERS, texts, strict=False)))


def _without_own_letters(choices: Mapping[str, str]) -> dict[str, str]:
    """Options without the letter with which each text begins, if all begin with their own."""
    without_letters: dict[str, str] = {}
    for letter, text in choices.items():
        match = _OWN_LETTER.fullmatch(text)
        if match is None or match["letter"] != letter:
            return dict(choices)
        without_letters[letter] = match["text"].strip()
    return without_letters


def _lettered_options(value: Any) -> dict[str, str]:
    """The options in a cell that is an object with their letters; none if it is something else."""
    items = _parsed(value, "{", "}")
    if not isinstance(items, dict) or not set(items) <= set(LETTERS):
        return {}
    choices = {letter: cell_text(text) for letter, text in sorted(items.items())}
    return {letter: text for letter, text in choices.items() if text}


EXPECTED_ANSWERS: Mapping[AnswerForm, str] = {
    "letter or text": "the letter or text",
    "letter": "the letter",
    "text": "the text",
    "index0": "the number, counted from 0,",
    "index1": "the number, counted from 1,",
}
"""What a gold answer is expected to be in each form: for messages, before *of* and the options."""


def gold_letter(
    answer: str, choices: Mapping[str, str], form: AnswerForm = "letter or text"
) -> str:
    """The letter of the option that a gold answer names in this form; empty if it names none.

    >>> (gold_letter("b", {"A": "left", "B": "right"}),
    ...  gold_letter("Left", {"A": "left", "B": "right"}))
    ('B', 'A')
    >>> gold_letter("1", {"A": "left", "B": "right"}, "index0")
    'B'
    """
    if form in ("index0", "index1"):
        return _letter_at(answer, choices, first=int(form[-1]))
    if form == "letter":
        return _stated_letter(answer, choices)
    if form == "text":
        return _letter_of_text(answer, choices)
    return _stated_letter(answer, choices) or _letter_of_text(answer, choices)


def _letter_of_text(answer: str, choices: Mapping[str, str]) -> str:
    """The letter of the only option with this text, whatever its case; empty without one."""
    letters = [letter for letter, text in choices.items() if text.casefold() == answer.casefold()]
    return letters[0] if len(letters) == 1 else ""


def _letter_at(answer: str, choices: Mapping[str, str], first: int) -> str:
    """The letter of the option with this number; data frames write whole numbers as 1.0."""
    match = _WHOLE_NUMBER.fullmatch(answer)
    if match is None:
        return ""
    position = int(match["number"]) - first
    letter = LETTERS[position] if 0 <= position < len(LETTERS) else ""
    return letter if letter in choices else ""


def _stated_letter(answer: str, choices: Mapping[str, str]) -> str:
    """The letter that a gold answer is, alone or with the text of its option; empty without."""
    bare = _BARE_LETTER.fullmatch(answer)
    if bare and bare["letter"].upper() in choices:
        return bare["letter"].upper()
    own = _OWN_LETTER.fullmatch(answer)
    if own and choices.get(own["letter"], "").casefold() == own["text"].strip().casefold():
        return own["letter"]
    return ""


def folded_label(text: str) -> str:
    """What two spellings of one label have in common: their text without case and full stop.

    >>> folded_label("Ja."), folded_label("ja")
    ('ja', 'ja')
    """
    return text.strip().casefold().removesuffix(".").rstrip()


def gold_label(answer: str, labels: Sequence[str]) -> str:
    """The label that a gold answer is, apart from case and a full stop; empty if it is none.

    >>> gold_label("Yes.", ("yes", "no"))
    'yes'
    """
    for label in labels:
        if folded_label(answer) == folded_label(label):
            return label
    return ""
