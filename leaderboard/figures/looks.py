"""How the series of a figure look: colours, markers, hatches and lines that differ pairwise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Look:
    """The style of one series, which differs from every other style in each field.

    Colours are those of Okabe and Ito; grey replaces their yellow, which is faint on white.
    """

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


def looks_at(places: Iterable[int]) -> list[Look]:
    """The look of each model by its place on the board.

    A model whose look is taken gets the first free one; once all are taken, looks repeat.
    """
    free = list(range(len(LOOKS)))
    looks = []
    for place in places:
        if not free:
            looks.append(LOOKS[place % len(LOOKS)])
            continue
        number = place if place in free else free[0]
        free.remove(number)
        looks.append(LOOKS[number])
    return looks
