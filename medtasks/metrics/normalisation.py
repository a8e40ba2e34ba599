"""Texts as closed answers are compared: without case, markup, punctuation and articles."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from medtasks.answers.markup import split_units

NORMALISED = "normalised-v2"
"""The rules of :func:`normalise` in signatures."""

_LATEX = re.compile(r"\\(?:boxed|text|textbf|textit|mathrm|mathbf)(?=\s{0,3}\{)")
_REPLACED = str.maketrans(
    dict.fromkeys("‐‑‒–—−", "-") | {"⁄": "/", "&": " and "} | dict.fromkeys("'’‘")
)
_QUOTED_LINE = re.compile(r"^[ \t]{0,3}[>+][ \t]{1,3}(?![\d.<>])", re.MULTILINE)
_IN_NUMBER = re.compile(r"(?<=\d)[./](?=\d)|(?<![\w.])\.(?=\d)|(?<![\w.)\-])-(?=\.?\d)")
_SYMBOLS = "%‰°+<>=±×÷≤≥≠≈→"
_BESIDE_SYMBOL = re.compile(rf" ?([{_SYMBOLS}]) ?")
# the slash of an end tag is gone by then
_TAG = re.compile(r"(?<!<)<+(?:b|i|u|em|strong|code|sub|sup|span|p|br|answer)>+")
_ARTICLES = frozenset(("a", "an", "the"))


@lru_cache(maxsize=2**15)  # options are compared with every answer
def normalise(text: str) -> str:
    """``text`` as it is compared: Unicode NFKC, case folded, without markup, punctuation and
    articles.

    Underscores, hyphens and blanks are one blank each. Numbers keep their decimal points, slashes
    and signs, symbols that carry meaning (``%``, ``+``, ``<``) stay, ``&`` is *and*, letters of all
    scripts are kept. An article stays if it is the last word (``type A``). A unit is a word of its
    own (``11-20mm``). Idempotent.

    >>> normalise("The **Needle_Driver**."), normalise("-1.5 %"), normalise("Type A")
    ('needle driver', '-1.5%', 'type a')
    """
    text = _QUOTED_LINE.sub("", _LATEX.sub("", unicodedata.normalize("NFKC", text)))
    text = split_units(_folded(text).translate(_REPLACED))
    kept_places = {match.start() for match in _IN_NUMBER.finditer(text)}
    characters = []
    for place, character in enumerate(text):
        is_kept = place in kept_places or _carries_meaning(character)
        characters.append(character if is_kept else " ")
    words = _joined(_folded("".join(characters)).split())
    *words_before, last = _TAG.sub(" ", words).split() or [""]
    return _joined([*(word for word in words_before if word not in _ARTICLES), last])


def verbatim(text: str) -> str:
    """``text`` without case and repeated blanks.

    For options that differ only in what `normalise` removes.
    """
    return " ".join(_folded(text).split())


def has_content(text: str) -> bool:
    """Whether anything of a text counts."""
    return normalise(text) != ""


def _carries_meaning(character: str) -> bool:
    return character in _SYMBOLS or unicodedata.category(character)[0] in "LMN"


def _folded(text: str) -> str:
    """Caseless compatibility form (Unicode, section 3.13, definition D146), without format
    characters.
    """
    for _ in range(2):
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return "".join(character for character in text if unicodedata.category(character) != "Cf")


def _joined(words: Sequence[str]) -> str:
    """The words with a blank between them, except beside symbols."""
    return _BESIDE_SYMBOL.sub(r"\1", " ".join(words))
