r"""The confidence that a response states in words, as a share from 0 to 1.

1. Thinking is removed, and full-width signs become plain ones. A number counts after the word
   *confidence*, *confident*, *certainty* or *certain*, with at most a few words or signs between
   (``Confidence: 85 %``, ``my confidence is 0.85``), or right before it (``85 % sure``).
2. ``85 %``, ``85 percent`` and ``85/100`` are percentages, ``n/m`` a share of m. A bare number up
   to 1 with a decimal point is a share (``0.85``, ``1.0``), any other is a percentage (``1`` is 1
   %).
3. One value, however often repeated, is ``ok``. Several different ones, or a range, are
   ``several``, none is ``missing``; a value below 0 or above 100 % is ``out_of_range``. No value is
   ever assumed.
"""

from __future__ import annotations

import math
import re
import unicodedata

from medtasks.answers.base import ResponseFilter
from medtasks.answers.thoughts import strip_thinking
from medtasks.answers.vocabulary import Vocabulary

_PATTERNS = Vocabulary("confidences")
_PLACES = ("stated_behind", "stated_before")
_BETWEEN = " \t,;.|([–—-"


def stated_confidence(text: str) -> str:
    """The confidence that ``text`` states, up to four digits, or ``[status]``. Never raises.

    Several different confidences, and a range, are ``[several]``.

    >>> (stated_confidence("B\\nConfidence: 85%"),
    ...  stated_confidence("B"),
    ...  stated_confidence("Confidence: 120 %"))
    ('0.85', '[missing]', '[out_of_range]')
    """
    bare_text = unicodedata.normalize("NFKC", strip_thinking(text))
    shares: set[float] = set()
    is_range = False
    for place in _PLACES:
        for match in _PATTERNS[place].finditer(bare_text):
            shares.add(_share(match))
            is_range |= bool(match.groupdict().get("range"))
    if not shares:
        return "[missing]"
    if len(shares) > 1 or is_range:
        return "[several]"
    (share,) = shares
    return f"{round(share, 4):.4g}" if 0 <= share <= 1 else "[out_of_range]"


def without_confidence(text: str) -> str:
    """``text`` without the confidence that ends a line; several different ones rate the options,
    and stay.

    >>> (without_confidence("polyp, Confidence: 90%"),
    ...  without_confidence("polyp. I am 90% confident."))
    ('polyp', 'polyp')
    """
    if stated_confidence(text).startswith("["):
        return text
    lines = text.split("\n")
    for number, line in enumerate(lines):
        for place in _PLACES:
            stated = _PATTERNS[place].search(line)
            if stated and _PATTERNS["rest"].fullmatch(line, stated.end()):
                answer = line[: stated.start()].rstrip(_BETWEEN)
                lines[number] = _PATTERNS["lead"].sub("", answer).rstrip(_BETWEEN)
                break
    return "\n".join(lines)


def parse_confidence(filtered: str) -> float | str:
    """The share, or the status, in a result of :func:`stated_confidence`.

    >>> parse_confidence("0.85"), parse_confidence("[several]")
    (0.85, 'several')
    """
    text = filtered.strip()
    return float(text) if text and not text.startswith("[") else text.strip("[]") or "empty"


class StatedConfidenceFilter(ResponseFilter):
    """Raw responses become stated confidences, or ``[status]``."""

    version = "4"
    read = staticmethod(stated_confidence)

    @staticmethod
    def status(filtered: str) -> str:
        """``ok``, ``missing``, ``several`` or ``out_of_range``; ``empty`` for a blank text."""
        confidence = parse_confidence(filtered)
        return confidence if isinstance(confidence, str) else "ok"


def _share(match: re.Match[str]) -> float:
    """The confidence that was matched, 1 if it is complete; infinite if it is divided by 0."""
    number = float(match["number"].replace(",", "."))
    value = -number if match["sign"] else number
    if match["of"]:
        whole = float(match["of"])
        return value / whole if whole else math.inf
    is_share = match["unit"] is None and value <= 1 and not match["number"].isdecimal()
    return value if is_share else value / 100
