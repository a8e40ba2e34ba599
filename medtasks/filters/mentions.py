"""Single letters in running text that may name an option, with the text around them."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["OPEN", "Mention", "letters_alone", "mentions", "without_names"]

OPEN = r"[(\[{<\"'“‘«]{0,3}"
_CLOSE = r"[)\]}>\"'”’»]{0,3}"
_IN_WORD = r"[A-Za-z0-9_\u00c0-\u024f]"  # not \w: Chinese characters stand directly beside a letter
_NO_WORD_BEFORE = rf"(?<!{_IN_WORD})(?<!{_IN_WORD}[-‐‑'’.])(?<!°)"
_NO_WORD_AFTER = rf"(?!{_IN_WORD}|[-‐‑'’.]{_IN_WORD}|\+)"
_AFTER_LETTER = r"or|and|is|are|was|were|because|since|as|would|must|cannot|isn't|doesn't|does|seems|vs|versus"
# "A" and lower-case letters before a word are articles or parts of a sentence; "I" before a word is a pronoun
_LETTER = (
    rf"{_NO_WORD_BEFORE}(?:[B-HJ-Z]|[Aa-hj-z](?![ \t]+(?!(?:{_AFTER_LETTER})\b|T[1-9])[^\W\d_])|[Ii](?![ \t]+[^\W\d_]))"
    + _NO_WORD_AFTER
)
_JOINT = (
    r"\s{0,4}(?:,?\s{0,4}\b(?:and/or|or|and|as\s+well\s+as|versus|vs\.?)(?=[\s(\[\"'])|[,;/&+|])\s{0,4}"
    r"(?:(?:maybe|possibly|perhaps|probably|even|also|else|either|the|option|choice|letter|answer)\s+){0,3}"
)
_MENTION = re.compile(rf"{OPEN}(?P<letters>{_LETTER}(?:{_CLOSE}{_JOINT}{OPEN}{_LETTER}){{0,25}})(?P<close>{_CLOSE})")
_ONE_LETTER = re.compile(_LETTER)
_LETTERS_ALONE = re.compile(r"[\W_]*(?:[A-Za-z]|[A-Z](?:[\W_]+[A-Z])+|[a-z](?:\s*[^\w\s]\s*[a-z])+)[\W_]*")

_NAMED = re.compile(
    r"\b(?:vitamin|hepatitis|influenza|kerley|type|subtype|image|figure|fig|panel|patient|stage|group|zone|grade|class"
    rf"|case|scan|film|view|segment|factor|protein|streptococcus)s?\.?[ \t]{{1,3}}{_MENTION.pattern}",
    re.IGNORECASE,
)
_NAMED_LETTER = re.compile(
    r"\bN/A\b|\bE\.?\s?coli\b|\bH\.?\s?pylori\b|\bC\.?\s?diff(?:icile)?\b|\bS\.?\s?aureus\b|\bK\.?\s?pneumoniae\b"
    r"|\bP\.?\s?aeruginosa\b|\b[AB]\s(?:lines?|cells?)\b|\bD\sdimers?\b|\b[a-z]/[a-z]\b|\be\.\s?g\.|\bi\.\s?e\."
)

_DENIED_BEFORE = re.compile(
    r"(?:\b(?:not|never|neither|nor|cannot|except|than|unlike|without|none\s+of|instead\s+of|rul(?:e|es|ed|ing)\s+out"
    r"|(?:exclud|eliminat|reject|discard)\w{1,4})|n['’]t)\s+"
    rf"(?:(?:be|think|believe|choose|select|pick|say|option|choice|answer|that|the|it|is|either|both)s?\s+){{0,4}}{OPEN}$",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"\s{0,4}(?:[.:–-]?\s{0,4}(?:is|are|was|were|seems?|looks?|(?:can|would|could|must)\s+be)\s+(?:[a-z]{2,12}\s+){0,2}?"
    r"(?:not\b|n['’]t|in\s?correct|wrong|false|excluded|ruled\s+out|unlikely|eliminated|out\b)"
    r"|[:–-]?\s{0,4}(?:in\s?correct|wrong|false|not\s+(?:correct|right|true))\b"
    r"|(?:cannot|can\s+not|does\s+not|do\s+not|would\s+not|(?:can|is|are|does|do|would|was)n['’]t|can['’]t)\b)",
    re.IGNORECASE,
)

_WINDOW = 120


@dataclass(frozen=True)
class Mention:
    """Letters joined in one place, in upper case, with at most 120 characters of text on either side.

    ``text`` is the place itself with its brackets, ``upper`` whether all its letters were capitals, ``begin`` and
    ``end`` are offsets in the whole text.
    """

    letters: frozenset[str]
    text: str
    upper: bool
    begin: int
    end: int
    before: str
    after: str


def without_names(plain: str) -> str:
    """``plain`` with letters that belong to a name (``vitamin D``, ``image A``, ``E. coli``) put out of sight."""
    return _NAMED.sub(" named ", _NAMED_LETTER.sub(" named ", plain))


def letters_alone(plain: str) -> frozenset[str]:
    """The letters of a text that is nothing but single letters and punctuation; none for any other text."""
    if _LETTERS_ALONE.fullmatch(plain) is None:
        return frozenset()
    return frozenset(character.upper() for character in plain if character.isalpha())


def mentions(plain: str) -> list[Mention]:
    """Mentions in order, without those that the text denies (``not B``, ``B is wrong``)."""
    found = (_mention(plain, match) for match in _MENTION.finditer(plain))
    return [mention for mention in found if not _is_denied(mention)]


def _mention(plain: str, match: re.Match[str]) -> Mention:
    begin, end = match.start("letters"), match.end()
    letters = _ONE_LETTER.findall(plain, begin, match.end("letters"))
    return Mention(
        letters=frozenset(letter.upper() for letter in letters),
        text=match[0],
        upper=all(letter.isupper() for letter in letters),
        begin=begin,
        end=end,
        before=plain[max(0, begin - _WINDOW) : begin],
        after=plain[end : end + _WINDOW],
    )


def _is_denied(mention: Mention) -> bool:
    return bool(_DENIED_BEFORE.search(mention.before) or _DENIED_AFTER.match(mention.after))
