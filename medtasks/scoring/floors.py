"""What an accuracy would be without reading the question: the floors that a score has to exceed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from medtasks.metrics.variants import PREFERENCE
from medtasks.scoring.columns import Rows
from medtasks.scoring.item_table import ItemTable


@dataclass(frozen=True)
class Floors:
    """The accuracy of guessing and of the best constant answer over some items, fractions.

    ``chance`` is that of uniform guessing, ``constant`` that of always giving ``constant_answer``,
    the most frequent correct option (of several the first in the alphabet). All are None if an item
    cannot be guessed, the last two also if the options were rotated: then no option is correct more
    often than another.
    """

    chance: float | None
    constant: float | None = None
    constant_answer: str | None = None

    @property
    def highest(self) -> float | None:
        """The higher of the two, None without any."""
        if self.chance is None or self.constant is None:
            return self.chance
        return max(self.chance, self.constant)

    def margins(self, accuracy: float) -> dict[str, float | None]:
        """How far an accuracy is above chance and above the highest floor."""
        if self.chance is None or self.highest is None:
            return {"margin_over_chance": None, "margin_over_floor": None}
        return {
            "margin_over_chance": accuracy - self.chance,
            "margin_over_floor": accuracy - self.highest,
        }


def floors_of(options: Sequence[int], targets: Sequence[str]) -> Floors:
    """The floors of items with so many ``options`` and these correct ones; a target may be empty.

    >>> floors_of([5, 5, 5, 5], ["A", "C", "B", "C"])
    Floors(chance=0.2, constant=0.5, constant_answer='C')
    """
    chance = _uniform_guessing(options)
    counts = Counter(targets)
    if chance is None or "" in counts:
        return Floors(chance)
    answer, times = min(counts.items(), key=lambda counted: (-counted[1], counted[0]))
    return Floors(chance, times / len(targets), answer)


def accuracy_floors(table: ItemTable, rows: Rows, accuracy: float) -> dict[str, Any]:
    """The fields of an accuracy over ``rows`` that are about its floors: those of `Floors`, and the
    margins over chance and over the highest floor."""
    numbers = rows.tolist()
    options = [table.options[row] for row in numbers]
    targets = [table.target[row] for row in numbers]
    if PREFERENCE in table.metrics:  # the options were rotated
        targets = [""] * len(numbers)
    floors = floors_of(options, targets)
    return asdict(floors) | floors.margins(accuracy)


def _uniform_guessing(options: Sequence[int]) -> float | None:
    """The mean of 1/options; None if an item cannot be guessed."""
    numbers, counts = np.unique(options, return_counts=True)
    if numbers[0] == 0:
        return None
    if len(numbers) == 1:  # divided once, so that 1/5 is not 0.2 with an error of rounding
        return 1 / int(numbers[0])
    return math.fsum((counts / numbers).tolist()) / len(options)
