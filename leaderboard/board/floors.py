"""The floors of a board's column: what guessing, a constant answer or a run without media
reaches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from medtasks.scoring.scores import MetricScore

from ..schema.numbers import UNITS, number
from ..schema.score_tables import BoardColumn

Source = Literal["chance", "constant", "blind"]
NO_FLOORS = dict.fromkeys(("chance", "constant", "constant_answer", "blind", "blind_model"))
"""Fields of a column that is not a score itself, such as a rank or a gain."""


@dataclass(frozen=True)
class Floor:
    """A score that needs no reading of the question, or no look at the media.

    ``level`` is in the column's unit, ``name`` its label and ``phrase`` its name in a sentence.
    """

    source: Source
    level: float
    name: str
    phrase: str


def column_floors(column: BoardColumn) -> tuple[Floor, ...]:
    """Chance, the best constant answer and the best blind run, as far as the column has them."""
    floors = []
    if column.chance is not None:
        floors.append(Floor("chance", column.chance, name="chance", phrase="chance"))
    if column.constant is not None:
        answer = column.constant_answer
        floors.append(
            Floor(
                "constant",
                column.constant,
                name=f"always {answer}",
                phrase=f"always answering {answer}",
            )
        )
    if column.blind is not None:
        floors.append(
            Floor("blind", column.blind, name="best blind run", phrase="the best blind run")
        )
    return tuple(floors)


def highest_floor(column: BoardColumn) -> Floor | None:
    """The floor that is hardest to exceed; of equal ones the first. None without any."""
    sign = 1 if column.higher_is_better else -1
    return max(column_floors(column), key=lambda floor: sign * floor.level, default=None)


def floors_text(column: BoardColumn, without: Floor | None = None) -> str:
    """The floors of a column with their levels; empty without a floor.

    >>> column = BoardColumn(key="k", task="t", metric="m", label="Accuracy", unit="fraction",
    ...                      higher_is_better=True, chance=0.2, constant=0.228, constant_answer="C")
    >>> floors_text(column)
    'chance 20.0, always C 22.8'
    """
    shown_floors = [floor for floor in column_floors(column) if floor != without]
    return ", ".join(f"{floor.name} {number(floor.level, column.unit)}" for floor in shown_floors)


def level_text(floor: Floor, column: BoardColumn) -> str:
    """``22.8 %``: the floor's level with its unit."""
    unit = f" {UNITS[column.unit]}" if column.unit == "fraction" else ""
    return f"{number(floor.level, column.unit)}{unit}"


def held_floors(scores: Iterable[MetricScore]) -> dict[str, float | str | None]:
    """The column's fields about guessing and constant answers, by the run with the most items."""
    with_chance = [score for score in scores if score.chance is not None]
    if not with_chance:
        return {}
    largest = max(with_chance, key=lambda score: (score.known, score.chance or 0.0))
    return largest.model_dump(include={"chance", "constant", "constant_answer"})


def best_blind(
    scores: Sequence[tuple[str, MetricScore]], *, higher_is_better: bool
) -> dict[str, float | str]:
    """The column's fields about the best of the blind runs' ``scores``, each with its model."""
    values: dict[str, float] = {}
    sign = 1 if higher_is_better else -1
    for model, score in scores:
        if score.value is not None:
            earlier = values.get(model, -math.inf)
            values[model] = max(earlier, sign * score.value)
    if not values:
        return {}
    best = max(values.values())
    best_models = [model for model, value in values.items() if value == best]
    return {"blind": sign * best, "blind_model": min(best_models)}
