"""Options named by their text or place: as the whole answer, or somewhere in a response."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from medtasks.answers.markup import plain_text
from medtasks.answers.vocabulary import Vocabulary, vocabulary_of

_PATTERNS = Vocabulary("texts")
_FIRST_TEXT = 0xE100
"""The first of 32 characters that replace option texts; ``{text}`` in patterns."""

_COMMON = frozenset({"none", "true", "false", "left", "right", "both", "other", "unknown", "three", "four"})


@lru_cache(maxsize=4096)  # the options of a question are compared several times
def normal_form(text: str) -> str:
    """``text`` without case, articles, punctuation and the way arrows are written.

    >>> normal_form("The T3->T4 interval."), normal_form("from T3 to T4")
    ('t3 to t4', 't3 to t4')
    """
    plain = _PATTERNS["arrow"].sub(" to ", plain_text(unicodedata.normalize("NFKC", text)))
    plain = _PATTERNS["punctuation"].sub(" ", plain).strip()
    kept = " ".join(_PATTERNS["article"].sub(" ", plain).split())
    return _PATTERNS["copula"].sub("", (kept or plain).casefold())


def unique_forms(options: Mapping[str, str]) -> dict[str, str]:
    """The letter of each normal form that belongs to one option only."""
    forms = {letter: normal_form(text) for letter, text in options.items()}
    counts = Counter(forms.values())
    return {form: letter for letter, form in forms.items() if form and counts[form] == 1}


def whole_option(plain: str, options: Mapping[str, str]) -> str:
    """The letter of the one option whose text or place is the whole answer in ``plain``, or nothing.

    >>> options = {"A": "T1 → T2", "B": "T2 → T3", "C": "None of the intervals"}
    >>> whole_option("Answer: from T2 to T3.", options), whole_option("none of the intervals", options)
    ('B', 'C')
    >>> whole_option("la segunda opción", options), whole_option("It grows from T2 to T3.", options)
    ('B', '')
    """
    forms = unique_forms(options)
    for answer in _answers(plain):
        form = normal_form(answer)
        species = [
            letter for full, letter in forms.items() if form == f"{full[0]} {full.partition(' ')[2]}"
        ]  # "E. coli"
        letter = forms.get(form) or (species[0] if len(species) == 1 else "")
        place = _PATTERNS["place"].fullmatch(answer)
        if place and not letter and not any(map(str.isdigit, forms)):  # else *answer 3* may be the option's text
            letter = _letter_at(place, options)
        if letter:
            return letter
    return ""


def _answers(plain: str) -> Iterator[str]:
    """What may be the whole answer, the firmest first."""
    for name in ("final", "field", "only_field"):
        if found := list(_PATTERNS[name].finditer(plain)):
            yield found[-1][found[-1].lastgroup or 0]
    yield plain[:2_000]
    words = vocabulary_of(plain[-2_000:])
    last = words["sentence_ends"].split(plain[-1_000:].rstrip(" .!。"))[-1].strip()
    for said in (plain[:2_000], last):
        label = words["answer_label"].match(said)
        if label and not words["discredits"].search(label[0], max(label.start("claim"), 0)):
            yield said[label.end() :]
        if behind := words["answer_behind"].match(said):
            yield behind["text"]
    if _PATTERNS["place"].fullmatch(last):
        yield last


def yes_or_no(plain: str, options: Mapping[str, str]) -> str:
    """The letter of *yes* or *no* at the beginning, if an option is just that and nothing contradicts it.

    >>> yes_or_no("Yes, a tube is seen.", {"A": "Yes", "B": "No"})
    'A'
    """
    said = _PATTERNS["yes_or_no"].match(plain)
    letter = unique_forms(options).get(normal_form(said["said"])) if said else None
    if said is None or letter is None or named_letters(plain, options) - {letter}:
        return ""
    return "" if vocabulary_of(plain)["retracts"].search(plain, said.end()) else letter


def mark_places(plain: str, options: Mapping[str, str]) -> str:
    """``plain`` with places as letters.

    >>> mark_places("I choose the third one.", {"A": "Polyp", "B": "Adenoma", "C": "Carcinoma"})
    'I choose option C.'
    """
    numbered = any(map(str.isdigit, "".join(options.values())))

    def option(place: re.Match[str]) -> str:
        letter = "" if numbered and any(map(str.isdigit, place[0])) else _letter_at(place, options)
        return f"option {letter}" if letter else place[0]

    return _PATTERNS["placed"].sub(option, plain) if options else plain


def _letter_at(place: re.Match[str], options: Mapping[str, str]) -> str:
    number = int(str(place.lastgroup)[1:])
    return sorted(options)[number - 1] if number <= len(options) else ""


def mark_texts(plain: str, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """``plain`` with each option text as one character, and the letters of these characters.

    Texts that prose uses in passing (*left*, *normal*, numbers) are replaced only right behind their letter.
    """
    pattern, letters = _texts(tuple(sorted(options.items())))
    return pattern.sub(lambda match: chr(_FIRST_TEXT - 1 + (match.lastindex or 0)), plain), letters


def named_letters(plain: str, options: Mapping[str, str]) -> frozenset[str]:
    """The options whose texts ``plain`` contains.

    >>> sorted(named_letters("A hyperplastic polyp is seen.", {"A": "Adenoma", "B": "Hyperplastic polyp"}))
    ['B']
    """
    marked, letters = mark_texts(plain, options)
    return frozenset(letter for sign, letter in letters.items() if sign in marked)


def texts_within(sentence: str, options: Mapping[str, str], words: Vocabulary) -> frozenset[str]:
    """The options whose texts ``sentence`` has, those that prose uses in passing included, undenied.

    >>> sorted(texts_within("It is on the left, not the right.", {"A": "Left", "B": "Right"}, vocabulary_of("")))
    ['A']
    """
    found = set()
    for form, letter in unique_forms(options).items():
        for match in re.finditer(rf"(?<!\w){_spelt(form)}(?!\w)", sentence, re.IGNORECASE):
            clause = words["clause_turns"].split(sentence[: match.start()])[-1]
            if not words["denies_clause"].search(clause):
                found.add(letter)
    return frozenset(found)


@lru_cache(maxsize=4096)
def _texts(options: tuple[tuple[str, str], ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """A pattern with a group for each option text, the longest first, and the letters of the characters for them."""
    spelt, letters = [], {}
    forms = sorted(unique_forms(dict(options)).items(), key=lambda item: -len(item[0]))
    for sign, (form, letter) in enumerate(forms[:32], start=_FIRST_TEXT):
        telling = len(form) >= (4 if form.isascii() else 2) and form not in _COMMON and not form.isdecimal()
        before = r"(?<![A-Za-z0-9])(?:(?:the|an?)\s)?" if telling else rf"(?<=(?-i:{re.escape(letter)})(?:[.:)] | \())"
        spelt.append(rf"{before}({_spelt(form)}){'(?:e?s)?' if telling else ''}(?![A-Za-z0-9])")
        letters[chr(sign)] = letter
    return re.compile("|".join(spelt) or "(?!)", re.IGNORECASE), letters


def _spelt(form: str) -> str:
    """A regular expression of every way to write a normal form."""
    words = [re.escape(word) if word != "to" else r"(?:to|→|⟶|⇒|➔|➜|-{1,2}>|=>|[-–—])" for word in form.split()]
    return r"[^\w\n]{0,3}(?:(?:the|an?|from|between|interval)\s)?".join(words)
