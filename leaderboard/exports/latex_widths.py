"""How wide a text is in LaTeX's Computer Modern, so that tables fit a page without TeX."""

from __future__ import annotations

_CMR10 = {
    2.78: "ijl.,:;'!|[]",
    3.33: " -`",
    3.89: "frst()",
    4.44: "ceoz",
    5.0: '0123456789agy*/"?',
    5.56: "bdhknpquvxS<>J",
    7.0: "BELPFZ~^$&w",
    7.78: "ACDGHKNOQRTUVXY+=−#@_",
    8.33: "m%M\\{}",
    10.28: "W→…",
}
"""Widths of letters in points at 10 points, rounded within a group (Knuth's cmr10)."""
_WIDTHS = {letter: width for width, letters in _CMR10.items() for letter in letters}
_UNKNOWN = 10.0
"""Points of any other letter: few of a Latin script are wider."""
_BOLD = 1.16
"""How much wider bold type is."""
SMALL, SCRIPT = 0.93, 0.8
"""Widths in ``\\small`` and ``\\scriptsize`` type, as a share of those at 10 points."""


def text_width(text: str, size: float = SMALL, *, bold: bool = False) -> float:
    """The width of ``text`` in points, not too small.

    >>> round(text_width("100.0"), 1), round(text_width("100.0", bold=True), 1)
    (21.2, 24.6)
    """
    width = sum(_WIDTHS.get(letter, _UNKNOWN) for letter in text)
    return width * size * (_BOLD if bold else 1.0)
