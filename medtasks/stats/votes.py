"""The options that several models chose, and the gold answers that they are compared with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array

Integers: TypeAlias = npt.NDArray[np.int64]
Mask: TypeAlias = npt.NDArray[np.bool_]

NO_VOTE = -1
"""In place of an option: the model was not asked, or chose none of the options."""


@dataclass(frozen=True)
class Votes:
    """The options that models chose.

    ``chosen`` ``(questions, models)`` are options by number from 0, or `NO_VOTE`; ``gold``
    ``(questions,)`` are the gold answers; ``options`` ``(questions,)`` is how many options each
    question has, at least 2; ``clusters`` ``(questions,)`` are the numbers of the clusters, from 0.
    """

    chosen: Integers
    gold: Integers
    options: Integers
    clusters: Integers

    @property
    def questions(self) -> int:
        return len(self.gold)

    @property
    def models(self) -> int:
        return int(self.chosen.shape[1])

    @property
    def is_vote(self) -> Mask:
        """Whether ``(questions, models)`` each model chose an option."""
        is_vote: Mask = self.chosen != NO_VOTE
        return is_vote

    @property
    def is_right(self) -> Mask:
        """Whether ``(questions, models)`` each model chose the gold answer."""
        is_right: Mask = self.chosen == self.gold[:, None]
        return is_right

    @property
    def most_options(self) -> int:
        return int(self.options.max(initial=2))

    def of(self, rows: Integers) -> Votes:
        """The votes on some of the questions."""
        return Votes(self.chosen[rows], self.gold[rows], self.options[rows], self.clusters[rows])


def cluster_sums(values: Array, clusters: Integers) -> Array:
    """Summed rows ``(clusters, columns)`` of the values of each cluster."""
    sums = np.zeros((int(clusters.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, clusters, values)
    return sums
