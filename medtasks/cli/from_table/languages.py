"""A guess at the language of questions, by their script or their most frequent words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

_SCRIPTS: Mapping[str, re.Pattern[str]] = {
    "ja": re.compile(r"[\u3040-\u30ff]"),
    "ko": re.compile(r"[\uac00-\ud7a3]"),
    "zh": re.compile(r"[\u4e00-\u9fff]"),
    "ar": re.compile(r"[\u0600-\u06ff]"),
    "hi": re.compile(r"[\u0900-\u097f]"),
    "ru": re.compile(r"[\u0400-\u04ff]"),
}
"""Letters by which a language is recognised; Japanese also has Chinese ones, so it comes first."""
_WORDS: Mapping[str, str] = {
    "en": "the is are what which of in this does how there and with",
    "de": "der die das ist sind welche was wie im auf dem und es mit einer",
    "fr": "le la les est sont quelle quel des du dans cette y une avec et",
    "es": "el la los es son qué cuál del en esta hay una con y las",
    "it": "il la gli è sono quale che del nel questa una con di della",
    "pt": "o a os é são qual que do na esta há uma com da em",
    "nl": "de het een is zijn welke wat van op deze er met en in",
}
"""Frequent words of languages in Latin letters."""


def guess_language(texts: Iterable[str]) -> tuple[str, str]:
    """The ISO 639 code of the language that most ``texts`` are in, and why; English by default."""
    votes: Counter[str] = Counter()
    for text in texts:
        language = _language_of(text)
        if language:
            votes[language] += 1
    if not votes:
        return "en", "the default"
    language, number = votes.most_common(1)[0]
    if 2 * number <= votes.total():
        return "en", "the default: questions are in several languages"
    return language, "the words of the questions"


def _language_of(text: str) -> str:
    """The language of a text; empty if two are as likely as each other, or none is."""
    for language, letters in _SCRIPTS.items():
        if len(letters.findall(text)) >= 2:
            return language
    words = set(re.findall(r"\w+", text.casefold()))
    scores = {code: len(words.intersection(frequent.split())) for code, frequent in _WORDS.items()}
    (first, first_score), (_, second_score) = Counter(scores).most_common(2)
    return first if first_score > second_score else ""
