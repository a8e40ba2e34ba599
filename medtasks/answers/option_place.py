"""Options named by their place: *the second option*, *la última opción*, *Option 3*."""

from __future__ import annotations

import re
from collections.abc import Mapping

from medtasks.answers.vocabulary import Vocabulary

_PATTERNS = Vocabulary("texts")
_PLACES = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")


def place_letter(answer: str, options: Mapping[str, str]) -> str:
    """The letter of the option whose place is the whole ``answer``, or nothing.

    Nothing either if an option's text is a number: *answer 3* may be that text.

    >>> (place_letter("la segunda opción", {"A": "Polyp", "B": "Adenoma"}),
    ...  place_letter("A polyp", {"A": "Polyp"}))
    ('B', '')
    """
    place = _PATTERNS["place"].fullmatch(answer)
    if place is None or any(text.strip().isdigit() for text in options.values()):
        return ""
    return _letter_at(place, options)


def mark_places(bare_text: str, options: Mapping[str, str]) -> str:
    """``bare_text`` with places as letters.

    >>> mark_places("I choose the third one.", {"A": "Polyp", "B": "Adenoma", "C": "Carcinoma"})
    'I choose option C.'
    """
    if not options:
        return bare_text
    numbered = any(map(str.isdigit, "".join(options.values())))

    def lettered(place: re.Match[str]) -> str:
        if numbered and any(map(str.isdigit, place[0])):
            return place[0]
        letter = _letter_at(place, options)
        return f"option {letter}" if letter else place[0]

    return _PATTERNS["placed"].sub(lettered, bare_text)


def _letter_at(place: re.Match[str], options: Mapping[str, str]) -> str:
    """The letter at the place that a pattern's last group names, or nothing if there are fewer
    options.
    """
    letters = sorted(options)
    name = str(place.lastgroup).removesuffix("_place")
    if name == "last":
        return letters[-1]
    index = _PLACES.index(name)
    return letters[index] if index < len(letters) else ""
