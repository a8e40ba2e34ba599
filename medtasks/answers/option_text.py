"""Options named by their text: as the whole answer, or somewhere in a response."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache

from medtasks.answers.markup import plain_text
from medtasks.answers.vocabulary import Vocabulary, vocabulary_of

TEXTS = "\ue100-\ue11f"
"""The characters that replace option texts, as in a regular expression."""

_ARROW = re.compile(
    r"\s*(?:→|⟶|⇒|➔|➜|-{1,2}>|=>)\s*|(?<=[\dT])\s*[-–—]\s*(?=T\d)|(?<=T\d)\s+(?:and|until|through)\s+(?=T\d)"
)
_ARTICLE = re.compile(r"\b(?i:the|an|from|between|interval)\b|\ba\b|\AA\b")  # not the letter of "Grade A"
_SIGNS = re.compile(r"[\W_]+")
_COMMON = frozenset({"none", "true", "false", "left", "right", "both", "other", "unknown", "three", "four"})
_FINAL = re.compile(r"final answer: (?:\s{0,4}\{{1,2}(?P<box>[^{}]{0,600})\}|(?P<rest>[^\n]{0,600}))")
_FIELD = re.compile(
    r"^(?:(?:final|correct|predicted|selected|best|most likely|chosen) )?(?:answer|diagnosis|prediction|choice|option"
    r"|response|selection|label|result|conclusion|output|finding|interval)(?: text)?: \"(?P<value>[^\"\n]{0,600})\"",
    re.IGNORECASE | re.MULTILINE,
)
_ONE_FIELD = re.compile(r"\A\{\s*[\w -]{1,40}: (?P<value>[^\n{}]{0,600}?)\s*\}\Z")
_ORDINALS = (
    "first|1st",
    "second|2nd",
    "third|3rd",
    "fourth|4th",
    "fifth|5th",
    "sixth|6th",
    "seventh|7th",
    "eighth|8th",
)
_NUMBERS = ("one|1", "two|2", "three|3", "four|4", "five|5", "six|6", "seven|7", "eight|8")
_NOUN = "(?:option|choice|answer|one|statement|alternative|item|interval)"


def normal_form(text: str) -> str:
    """``text`` without case, articles, punctuation and the way arrows are written.

    >>> normal_form("The T3->T4 interval."), normal_form("from T3 to T4")
    ('t3 to t4', 't3 to t4')
    """
    plain = _ARROW.sub(" to ", plain_text(unicodedata.normalize("NFKC", text)))
    plain = _SIGNS.sub(" ", plain).strip()
    kept = " ".join(_ARTICLE.sub(" ", plain).split())
    return (kept or plain).casefold()


def unique_forms(options: Mapping[str, str]) -> dict[str, str]:
    """The letter of each normal form that belongs to one option only."""
    forms = {letter: normal_form(text) for letter, text in options.items()}
    counts = Counter(forms.values())
    return {form: letter for letter, form in forms.items() if form and counts[form] == 1}


def whole_option(plain: str, options: Mapping[str, str]) -> str | None:
    """The letter of the one option whose text or place is the whole answer in ``plain``; None if there is none.

    The answer is the response, or what follows its label; the content of its last box or answer tag; or the value of
    a JSON field.

    >>> options = {"A": "T1 → T2", "B": "T2 → T3", "C": "None of the intervals"}
    >>> whole_option("Answer: from T2 to T3.", options), whole_option("none of the intervals", options)
    ('B', 'C')
    >>> whole_option("the second option", options), whole_option("It grows from T2 to T3.", options)
    ('B', None)
    """
    forms = unique_forms(options)
    for answer in _answers(plain):
        form = normal_form(answer)
        letter = forms.get(form) or _abbreviated(form, forms)
        if letter is None and not any(map(str.isdigit, forms)):  # else *answer 3* may be the option's text
            letter = _at_position(form, sorted(options))
        if letter:
            return letter
    return None


def _answers(plain: str) -> Iterator[str]:
    """What may be the whole answer, the firmest first."""
    finals = list(_FINAL.finditer(plain))
    if finals:
        yield finals[-1]["box"] if finals[-1]["box"] is not None else finals[-1]["rest"]
    fields = list(_FIELD.finditer(plain))
    if fields:
        yield fields[-1]["value"]
    only = _ONE_FIELD.match(plain)
    if only:
        yield only["value"]
    yield plain if len(plain) < 2_000 else ""
    label = vocabulary_of(plain[:2_000])["answer_label"].match(plain)
    if label and len(plain) - label.end() < 1_000:
        yield plain[label.end() :]
    labels = list(vocabulary_of(plain[-2_000:])["answer_line"].finditer(plain, max(0, len(plain) - 2_000)))
    if labels:
        yield plain[labels[-1].end() :]


def _abbreviated(form: str, forms: Mapping[str, str]) -> str | None:
    """The option that a species with an abbreviated genus names, as in *E. coli*."""
    genus, _, species = form.partition(" ")
    if len(genus) != 1 or not species:
        return None
    found = [letter for full, letter in forms.items() if full[:1] == genus and full.partition(" ")[2] == species]
    return found[0] if len(found) == 1 else None


def _at_position(form: str, letters: list[str]) -> str | None:
    """The letter at the place that the answer names."""
    for number, (ordinal, cardinal) in enumerate(zip(_ORDINALS, _NUMBERS, strict=True)):
        if re.fullmatch(rf"(?:{ordinal}) {_NOUN}|{_NOUN} (?:number |no )?(?:{cardinal})", form):
            return letters[number] if number < len(letters) else None
    return letters[-1] if letters and re.fullmatch(rf"(?:very )?last {_NOUN}", form) else None


def mark_texts(plain: str, options: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """``plain`` with each option text as one character, and the letters of these characters.

    Texts that prose uses in passing (*left*, *normal*, numbers) are not replaced.
    """
    patterns, letters = _texts(tuple(sorted(options.items())))
    for pattern in patterns:
        plain = pattern.sub(lambda match: letters[str(match.lastgroup)][0], plain)
    return plain, dict(letters.values())


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
            clause = max((turn.end() for turn in words["clause_turns"].finditer(sentence, 0, match.start())), default=0)
            if not words["denies_clause"].search(sentence, clause, match.start()):
                found.add(letter)
    return frozenset(found)


@lru_cache(maxsize=4096)
def _texts(options: tuple[tuple[str, str], ...]) -> tuple[list[re.Pattern[str]], dict[str, tuple[str, str]]]:
    """Patterns of the option texts, the longest first, and the character and letter of each of their groups."""
    anywhere, behind, letters = [], [], {}
    found = sorted(unique_forms(dict(options)).items(), key=lambda one: -len(one[0]))[:32]
    for number, (form, letter) in enumerate(found):
        letters[f"t{number}"] = chr(0xE100 + number), letter
        if _is_telling(form):
            anywhere.append(f"(?P<t{number}>{_spelt(form)})")
        else:  # only right behind its letter
            behind.append(rf"(?<=(?-i:{re.escape(letter)})[.:)] )(?P<t{number}>{_spelt(form)})")
    article = r"(?:(?<![A-Za-z])(?:the|an?)\s)?"
    patterns = []
    if anywhere:
        patterns.append(rf"(?<![A-Za-z0-9]){article}(?:{'|'.join(anywhere)})(?:e?s)?(?![A-Za-z0-9])")
    if behind:
        patterns.append(rf"(?:{'|'.join(behind)})(?![A-Za-z0-9])")
    return [re.compile(pattern, re.IGNORECASE) for pattern in patterns], letters


def _is_telling(form: str) -> bool:
    long = len(form) >= 4 if form.isascii() else len(form) >= 2
    return long and form not in _COMMON and not form.isdecimal()


def _spelt(form: str) -> str:
    """A regular expression of every way to write a normal form."""
    words = [re.escape(word) if word != "to" else r"(?:to|→|⟶|⇒|➔|➜|-{1,2}>|=>|[-–—])" for word in form.split()]
    return r"[^\w\n]{0,3}(?:(?:the|an?|from|between|interval)\s)?".join(words)
