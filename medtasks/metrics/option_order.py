"""Scores of questions that are asked with their options in several orders (`medtasks.benchmarks.rotations`).

Circular accuracy is CircularEval of MMBench (Liu et al. 2023, arXiv 2307.06281): a question counts as right
only if every circular shift of its options is answered right. That models prefer letters whatever they stand for is
from Zheng et al. 2023 (arXiv 2309.03882).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from medtasks.metrics.base import Array, sign
from medtasks.metrics.item_metrics import ItemMetric, OverItems, means, sum_in_order

POSITIONS = 26
"""The largest number of options."""


class LetterPreference(OverItems):
    """How far the letters chosen are from those of a model that prefers none: total variation distance, 0..1.

    Over all rotations of a question each option is shown at each letter, and a seeded subset draws them at random. A
    model that reads the options therefore chooses each of a question's k letters in 1/k of its answers, whatever it
    believes. Responses without exactly one selectable option are left out. Statistics: by position of the letter, how
    many answers chose it, how many were expected to, and in how many it was correct.

    >>> metric = LetterPreference()
    >>> always_a = metric.item_statistics([(0, place) for place in range(4)], range(4))
    >>> float(metric.score(always_a)), metric.of_letter(always_a, 1).tolist()
    (0.75, [-1.0, 4.0])
    """

    name = "letter_preference"
    higher_is_better = False
    width = 3 * POSITIONS
    signature = sign(name, distance="total-variation", expected="uniform-over-options", unparsed="left-out")

    def item_statistics(self, answers: Sequence[tuple[int, int]], shown: Sequence[int]) -> Array:
        """Statistics ``(width,)`` of one question.

        Args:
            answers: position of the chosen and of the correct letter, for each rotation with a selected option.
            shown: positions of the question's letters.
        """
        rows = np.zeros((3, POSITIONS))
        for chosen, correct in answers:
            rows[0, chosen] += 1
            rows[2, correct] += 1
        rows[1, shown] = len(answers) / len(shown)
        return rows.reshape(self.width)

    def of_letter(self, statistics: Array, position: int) -> Array:
        """A mean's statistics ``(..., 2)``: how many more answers chose a letter than expected, and all answers."""
        rows = _rows(statistics)
        return np.stack([rows[..., 0, position] - rows[..., 1, position], sum_in_order(rows[..., 0, :])], axis=-1)

    def score(self, totals: Array) -> Array:
        """Scores ``(...)`` of totals ``(..., width)``; NaN without an answer."""
        rows = _rows(totals)
        return means(sum_in_order(np.abs(rows[..., 0, :] - rows[..., 1, :])) / 2, sum_in_order(rows[..., 0, :]))


def _rows(totals: Array) -> Array:
    totals = np.asarray(totals, dtype=np.float64)
    return totals.reshape(*totals.shape[:-1], 3, POSITIONS)


ORDER_METRICS: tuple[ItemMetric | LetterPreference, ...] = (
    ItemMetric("circular_accuracy", {"right": "in-every-rotation", "unparsed": "wrong"}),
    ItemMetric("rotation_consistency", {"same": "original-option-in-every-rotation", "unparsed": "inconsistent"}),
    LetterPreference(),
)
"""The scores that `medtasks.task_model.ORDER_METRICS` names."""
