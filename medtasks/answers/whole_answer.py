"""Responses that are an option's text, place or letter with text, in whole or in the part that
states the answer.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from medtasks.answers.option_place import place_letter
from medtasks.answers.option_text import (
    exact_letter,
    named_letters,
    normal_form,
    text_letter,
    unique_forms,
)
from medtasks.answers.vocabulary import Vocabulary, vocabulary_of

_PATTERNS = Vocabulary("texts")
_BEGINNING = 2_000
_END = 1_000
"""Characters at the beginning and the end of a response that may be a whole answer."""

_HEADING_ENDS = (":", "?", "-", "–", "—")
_MOST_BESIDE_TEXT = 120
"""Characters that a whole answer may have beside the option's text: a label, a letter, markup,
other words for it.
"""

_WEIGHING_SIGNS = frozenset("|✓✗")
"""A line that ends or is marked so weighs an option: it is a heading, or a row of a table."""

_IN_WORD = r"[^\W\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]"
"""A character of a word, in scripts that have blanks between words."""

_MOST_LINES = 40
_MOST_PLACES = 20
"""Lines of a response, and places of a letter on a line, that are looked at: those at the ends."""


@dataclass(frozen=True)
class WholeAnswer:
    """The options that a whole answer names: one by its ``letter``, one by its ``text`` or place,
    or both.

    ``alone``: the response consists of it, apart from a label.
    """

    letter: str = ""
    text: str = ""
    alone: bool = False

    @property
    def letters(self) -> frozenset[str]:
        return frozenset(self.letter + self.text)


NO_ANSWER = WholeAnswer()


def whole_answer(bare_text: str, options: Mapping[str, str]) -> WholeAnswer:
    """The first part of ``bare_text`` that is an option's text or place, or a letter with the text
    of an option.

    >>> options = {"A": "T1 → T2", "B": "T2 → T3", "C": "None of the intervals"}
    >>> (whole_answer("Answer: from T2 to T3.", options).text,
    ...  whole_answer("la segunda opción", options).text)
    ('B', 'B')
    >>> answer = whole_answer("(A) none of the intervals", options)
    >>> answer.letter, answer.text
    ('A', 'C')
    >>> whole_answer("It grows from T2 to T3.", options).text
    ''
    """
    if not options:
        return NO_ANSWER
    for fields in (_only_field(bare_text, options), _fields(bare_text, options)):
        if fields.text:
            return fields
    for part, alone in _parts(bare_text):
        answer = _read(part, options, alone=alone)
        if answer.text:
            return answer
    return NO_ANSWER


def contradictions(bare_text: str, options: Mapping[str, str], letter: str) -> frozenset[str]:
    r"""The options that contradict ``letter``: their text stands beside it, or alone on a line or
    in a field of JSON.

    Texts that stand alone count only if all of them name the same option: else they are a list.

    >>> options = {"A": "left", "B": "right"}
    >>> sorted(contradictions("B. left\n\nThe mediastinum is shifted.", options, "B"))
    ['A']
    """
    beside: set[str] = set()
    alone: set[str] = set()
    words = vocabulary_of(bare_text[-_BEGINNING:])
    for line in _lines(bare_text):
        answer = _read(line, options)
        weighed = line.rstrip().endswith(_HEADING_ENDS) or not _WEIGHING_SIGNS.isdisjoint(line)
        if answer.text and not answer.letter and not weighed:
            alone.add(answer.text)
        for part in _around_letter(line, letter, words):
            answer = _read(part, options)
            if answer.letter == letter:
                beside.add(answer.text)
    for field in _PATTERNS["explained"].finditer(bare_text):
        if named := text_letter(field["value"], options):
            alone.add(named)
    if len(alone) == 1:
        beside |= alone
    return frozenset(beside - {letter})


def _around_letter(line: str, letter: str, words: Vocabulary) -> Iterator[str]:
    """``line`` from each place of ``letter`` on, and the sentences of ``line`` up to it."""
    places = list(re.finditer(rf"(?<!{_IN_WORD}){letter}(?!{_IN_WORD})[)\]}}›]{{0,2}}", line))
    if not places:
        return
    starts = [0, *(end.end() for end in words["sentence_ends"].finditer(line))]
    for place in places[-_MOST_PLACES:]:
        yield line[place.start() :]
        start = starts[bisect_right(starts, place.start()) - 1]
        yield line[start : place.end()].strip()


def _behind_labels(said: str, words: Vocabulary) -> Iterator[str]:
    """What follows *the answer is* or *therefore* at the beginning of ``said``, unless the label is
    taken back.
    """
    label = words["answer_label"].match(said)
    if label and not words["discredits"].search(label[0], max(label.start("claim"), 0)):
        yield said[label.end() :]
    if label := words["therefore_label"].match(said):
        yield said[label.end() :]


def _lines(bare_text: str) -> list[str]:
    """The lines that may be a whole answer, at the beginning and at the end of a response."""
    lines = [line for line in bare_text.split("\n") if line.strip()]
    if len(lines) > _MOST_LINES:
        lines = lines[: _MOST_LINES // 2] + lines[-_MOST_LINES // 2 :]
    return lines


def _read(part: str, options: Mapping[str, str], *, alone: bool = False) -> WholeAnswer:
    """What ``part`` names if it is an option's text or place, or a letter with an option's text."""
    if len(part) > _MOST_BESIDE_TEXT + max(map(len, options.values())):
        return NO_ANSWER
    if letter := exact_letter(
        part, options
    ):  # also "A. fumigatus", whose letter belongs to the text
        return WholeAnswer(text=letter, alone=alone)
    for name in ("letter_first", "bracketed_behind", "letter_behind"):
        pair = _PATTERNS[name].fullmatch(part)
        named = text_letter(pair["text"], options) if pair else ""
        if pair and named:
            return WholeAnswer(pair["letter"], named, alone)
    return WholeAnswer(text=text_letter(part, options) or place_letter(part, options), alone=alone)


def _only_field(bare_text: str, options: Mapping[str, str]) -> WholeAnswer:
    """What a JSON object of one field names, by its value, and by its key if that is a letter."""
    field = _PATTERNS["only_field"].fullmatch(bare_text)
    if field is None:
        return NO_ANSWER
    answer = _read(field["value"], options, alone=True)
    key = field["key"].strip()
    if key in options and not answer.letter:
        return WholeAnswer(key, answer.text, alone=True)
    return answer


def _fields(bare_text: str, options: Mapping[str, str]) -> WholeAnswer:
    """What the fields of a JSON object that give the answer name: the last letter and the last text
    of an option.
    """
    letter = text = ""
    for field in _PATTERNS["field"].finditer(bare_text):
        answer = _read(field["value"], options)
        letter_alone = field["value"].strip(" .()[]")
        if answer.text:
            letter, text = answer.letter or letter, answer.text
        elif letter_alone in options:
            letter = letter_alone
    return WholeAnswer(letter, text, alone=bare_text.startswith("{") and bare_text.endswith("}"))


def _parts(bare_text: str) -> Iterator[tuple[str, bool]]:
    """What may be the whole answer, the firmest first, and whether it is all of the response, apart
    from a label.
    """
    finals = list(_PATTERNS["final"].finditer(bare_text))
    if finals:
        yield finals[-1][finals[-1].lastgroup or 0], False
    yield bare_text[:_BEGINNING], True
    words = vocabulary_of(bare_text[-_BEGINNING:])
    last_sentence = words["sentence_ends"].split(bare_text[-_END:].rstrip(" .!。"))[-1].strip()
    for said, alone in ((bare_text[:_BEGINNING], True), (last_sentence, False)):
        for answer in _behind_labels(said, words):
            yield answer, alone
        if behind := words["answer_behind"].match(said):
            yield behind["text"], alone
    if _PATTERNS["place"].fullmatch(last_sentence):
        yield last_sentence, False


def yes_or_no(bare_text: str, options: Mapping[str, str]) -> str:
    """The letter of *yes* or *no* at the beginning, if an option is just that and nothing
    contradicts it.

    >>> yes_or_no("Yes, a tube is seen.", {"A": "Yes", "B": "No"})
    'A'
    """
    said = _PATTERNS["yes_or_no"].match(bare_text)
    letter = unique_forms(options).get(normal_form(said["said"])) if said else None
    if said is None or letter is None or named_letters(bare_text, options) - {letter}:
        return ""
    return "" if vocabulary_of(bare_text)["retracts"].search(bare_text, said.end()) else letter
