"""Texts of options: their normal form, and where a response contains them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from medtasks.answers.markup import plain_text, split_units
from medtasks.answers.vocabulary import Vocabulary

_PATTERNS = Vocabulary("texts")
_FIRST_TEXT = 0xE100
"""The first of 32 characters that replace option texts; ``{text}`` in patterns."""

_MOST_TEXTS = 32
_COMMON = frozenset(
    {"none", "true", "false", "left", "right", "both", "other", "unknown", "three", "four"}
)
_VISIT = re.compile(r"t\d")
_TO = r"(?:to|→|⟶|⇒|➔|➜|-{1,2}>|=>|[-–—])"
_TO_VISIT = r"(?:to|and|until|through|→|⟶|⇒|➔|➜|-{1,2}>|=>|[-–—])"
_BETWEEN_WORDS = r"[^\w\n]{0,3}(?:(?:the|an?|from|between|interval)\s)?"
_BETWEEN_NUMBERS = r"[^\w\n]{0,3}(?:to\s)?"
_BEFORE_TEXT = r"(?<![A-Za-z0-9])(?:(?:the|an?|from|between)\s){0,2}"
_BEHIND_TEXT = r"(?:e?s)?(?:\sinterval)?(?![A-Za-z0-9])"


@lru_cache(maxsize=4096)  # the options of a question are compared several times
def normal_form(text: str) -> str:
    """``text`` without case, articles, punctuation and the ways to write arrows, ranges and units.

    >>> normal_form("The T3->T4 interval."), normal_form("BETWEEN T3 AND T4")
    ('t3 to t4', 't3 to t4')
    >>> normal_form("11-20mm"), normal_form("11 to 20 mm")
    ('11 20 mm', '11 20 mm')
    """
    bare_text = split_units(plain_text(unicodedata.normalize("NFKC", text)))
    bare_text = _PATTERNS["range"].sub(" ", _PATTERNS["arrow"].sub(" to ", bare_text))
    bare_text = _PATTERNS["punctuation"].sub(" ", bare_text).strip()
    kept = " ".join(_PATTERNS["article"].sub(" ", bare_text).split())
    return _PATTERNS["copula"].sub("", (kept or bare_text).casefold())


def unique_forms(options: Mapping[str, str]) -> dict[str, str]:
    """The letter of each normal form that belongs to one option only."""
    forms = {letter: normal_form(text) for letter, text in options.items()}
    counts = Counter(forms.values())
    return {form: letter for letter, form in forms.items() if form and counts[form] == 1}


def text_letter(text: str, options: Mapping[str, str]) -> str:
    """The letter of the one option that ``text`` is, or nothing.

    A species may have its genus abbreviated.

    >>> options = {"A": "Klebsiella pneumoniae", "B": "Escherichia coli"}
    >>> text_letter("the Klebsiella pneumoniae.", options), text_letter("E. coli", options)
    ('A', 'B')
    """
    forms = unique_forms(options)
    form = normal_form(text)
    if form in forms:
        return forms[form]
    species = []
    for full, letter in forms.items():
        genus, _, epithet = full.partition(" ")
        if form == f"{genus[0]} {epithet}":
            species.append(letter)
    return species[0] if len(species) == 1 else ""


def exact_letter(text: str, options: Mapping[str, str]) -> str:
    """The letter of the one option whose text is ``text``, apart from case and a full stop, or
    nothing.

    >>> exact_letter("a. fumigatus", {"A": "Candida", "B": "A. fumigatus"})
    'B'
    """
    said = text.strip().rstrip(". ").casefold()
    letters = [
        letter
        for letter in unique_forms(options).values()
        if options[letter].strip().rstrip(". ").casefold() == said
    ]
    return letters[0] if len(letters) == 1 else ""


def mark_texts(bare_text: str, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """``bare_text`` with each option text as one character, and the letters of these characters.

    Texts that prose uses in passing (*left*, *normal*, numbers) are replaced only right behind
    their letter.
    """
    pattern, letters = _texts(tuple(sorted(options.items())))
    return pattern.sub(
        lambda match: chr(_FIRST_TEXT - 1 + (match.lastindex or 0)), bare_text
    ), letters


def named_letters(bare_text: str, options: Mapping[str, str]) -> frozenset[str]:
    """The options whose texts ``bare_text`` contains.

    >>> options = {"A": "Adenoma", "B": "Hyperplastic polyp"}
    >>> sorted(named_letters("A hyperplastic polyp is seen.", options))
    ['B']
    """
    marked, letters = mark_texts(bare_text, options)
    return frozenset(letter for sign, letter in letters.items() if sign in marked)


def texts_within(sentence: str, options: Mapping[str, str], words: Vocabulary) -> frozenset[str]:
    """The options whose texts ``sentence`` has, those that prose uses in passing included,
    undenied.

    >>> from medtasks.answers.vocabulary import vocabulary_of
    >>> sides = {"A": "Left", "B": "Right"}
    >>> sorted(texts_within("It is on the left, not the right.", sides, vocabulary_of("")))
    ['A']
    """
    letters = set()
    for form, letter in unique_forms(options).items():
        for match in re.finditer(rf"(?<!\w){_spelt(form)}(?!\w)", sentence, re.IGNORECASE):
            clause = words["clause_turns"].split(sentence[: match.start()])[-1]
            if not words["denies_clause"].search(clause):
                letters.add(letter)
    return frozenset(letters)


@lru_cache(maxsize=4096)
def _texts(options: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern with a group for each option text, the longest first, and the letters of the
    characters for them.
    """
    spelt: list[str] = []
    letters: dict[str, str] = {}
    longest_first = sorted(unique_forms(dict(options)).items(), key=lambda item: -len(item[0]))
    for sign, (form, letter) in enumerate(longest_first[:_MOST_TEXTS], start=_FIRST_TEXT):
        if _is_telling(form):
            spelt.append(f"{_BEFORE_TEXT}({_spelt(form)}){_BEHIND_TEXT}")
        else:
            behind_letter = rf"(?<=(?-i:{re.escape(letter)})(?:[.:)] | \())"
            spelt.append(f"{behind_letter}({_spelt(form)})(?![A-Za-z0-9])")
        letters[chr(sign)] = letter
    return re.compile("|".join(spelt) or "(?!)", re.IGNORECASE), letters


def _is_telling(form: str) -> bool:
    """Whether prose would not use a normal form in passing."""
    long_enough = len(form) >= (4 if form.isascii() else 2)
    return long_enough and form not in _COMMON and not form.isdecimal()


def _spelt(form: str) -> str:
    """A regular expression of every way to write a normal form."""
    words = form.split()
    spelt = ""
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        behind = words[place + 1] if place + 1 < len(words) else ""
        if place:
            spelt += _BETWEEN_NUMBERS if before.isdecimal() and word.isdecimal() else _BETWEEN_WORDS
        if word != "to":
            spelt += re.escape(word)
        elif _VISIT.fullmatch(before) and _VISIT.fullmatch(behind):
            spelt += _TO_VISIT
        else:
            spelt += _TO
    return spelt
