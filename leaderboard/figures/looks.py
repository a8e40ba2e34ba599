"""What all figures share, on pages and as files: colours, marks, shortened names."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from medtasks.core.text import first_names, one_line

Drawn: TypeAlias = "dict[str, Any]"
"""Style arguments of matplotlib."""

MOST_MODELS = 8
"""Maximum number of models in all figures but heat maps; more could not be distinguished."""

INK, MUTED, GRID, PAPER = "#1b2026", "#59636e", "#cfd6dd", "#fefefe"
"""Text and axes, secondary text, grid lines, and the page. No series has these colours, so a dark page can replace
them by those of `DARK`."""

DARK = {INK: "#e9edf1", MUTED: "#a7b0ba", GRID: "#3b434c", PAPER: "#14181d"}

_EDGE: Drawn = {"markeredgecolor": INK, "markeredgewidth": 0.5}


class Look(NamedTuple):
    """The style of one series: a colour of Okabe and Ito (grey for their yellow, which fades on white), and marks."""

    colour: str
    marker: str
    hatch: str
    line: tuple[int, tuple[float, ...]]

    def mark(self, size: float) -> Drawn:
        return {"marker": self.marker, "markersize": size, "color": self.colour, **_EDGE}


LOOKS = (
    Look("#0072b2", "o", "", (0, ())),
    Look("#e69f00", "s", "////", (0, (6, 2))),
    Look("#009e73", "^", "||||", (0, (2, 2))),
    Look("#d55e00", "D", "\\\\\\\\", (0, (6, 2, 1, 2))),
    Look("#56b4e9", "v", "xxxx", (0, (1, 1))),
    Look("#cc79a7", "P", "----", (0, (9, 2, 2, 2, 2, 2))),
    Look("#8d96a0", "X", "++++", (0, (4, 1))),
    Look("#9b7a00", "*", "//", (0, (3, 1, 1, 1, 1, 1))),
)


def short(text: str, most: int = 30) -> str:
    """``text`` on one line; the middle of a long one is cut, because sizes and versions are at the end.

    >>> short("laboratory/Very-Long-Model-Name-72B-Instruct", 24)
    'laboratory/Ve…B-Instruct'
    """
    plain = one_line(text)
    if len(plain) <= most:
        return plain
    end = (most - 1) * 2 // 5
    return f"{plain[: most - 1 - end]}…{plain[len(plain) - end :]}"


def distinct(texts: Sequence[str], most: int = 30) -> list[str]:
    """`short` of each, with a number added to those that would be equal."""
    cut = [short(text, most) for text in texts]
    return [
        f"{text} ({cut[: place + 1].count(text)})" if cut.count(text) > 1 else text for place, text in enumerate(cut)
    ]


def wrapped(text: str, width: int) -> str:
    """``text`` in at most three lines of ``width`` characters."""
    return "\n".join(textwrap.wrap(one_line(text), width, max_lines=3, placeholder=" …"))


def listed(parts: Sequence[str], most: int = 8) -> str:
    """The first ``most`` parts as a list in a sentence, and the number of the others."""
    return first_names(parts, most, "; ")
