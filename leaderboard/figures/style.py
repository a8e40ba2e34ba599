"""Colours, markers and hatches: every series can be told from the others without its colour."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

__all__ = ["DARK", "GRID", "INK", "LOOKS", "MOST_MODELS", "MUTED", "PAPER", "SPAN", "WIDTH", "Drawn", "Look"]

Drawn: TypeAlias = "dict[str, Any]"
"""How matplotlib is to draw something."""

WIDTH = 4.8
"""Inches: at the width of a phone the text is still about 10 pixels high."""

MOST_MODELS = 8
"""How many models bars, radars, dumbbells, letters and timelines show; more cannot be told apart."""

INK, MUTED, GRID, PAPER = "#1b2026", "#59636e", "#cfd6dd", "#fefefe"
"""Text and axes, lesser text, grid lines, and the page: no series has these colours, so a dark page can change them."""

DARK = {INK: "#e9edf1", MUTED: "#a7b0ba", GRID: "#3b434c", PAPER: "#14181d"}
"""What takes their place on a dark page."""

SPAN = "#56b4e9"


class Look(NamedTuple):
    """One series: Okabe and Ito's colours (grey for their yellow, which fades on white), and signs without colour."""

    colour: str
    marker: str
    hatch: str
    line: tuple[int, tuple[float, ...]]


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
