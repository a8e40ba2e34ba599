"""The answers behind a judged score: verdicts on all of them, labels of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Rows

Mask: TypeAlias = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LabelledAnswers:
    """All answers behind a score with the judge's scores and, for a sample, people's.

    Arrays ``(n,)``, one entry an answer:

    Attributes:
        judged: the judge's sums, from 0; NaN without a verdict.
        human: people's sums, from 0; NaN without a label.
        sizes: what the score counts of each answer: 1, or the number of its aspects.
        weights: how many answers each label stands for, up to a factor within a stratum; 0 without
            a label.
        strata: number of each answer's stratum.
        tasks: number of each answer's task; a stratum with few labels is merged with others of the
            task.
        clusters: number of each answer's cluster, from 0.
        known: answers whose score is certain without a label, because the benchmark's rules give
            it: it is the judge's. They are in no stratum.
        width: the highest possible score; the lowest is 0.
    """

    judged: Array
    human: Array
    sizes: Array
    weights: Array
    strata: Rows
    tasks: Rows
    clusters: Rows
    known: Mask
    width: float = 1.0

    @cached_property
    def labelled(self) -> Mask:
        """Which answers have a label that counts."""
        has_label = ~np.isnan(self.human) & (self.weights > 0) & (self.sizes > 0)
        return np.asarray(has_label & ~self.known)

    @cached_property
    def labels(self) -> int:
        """Number of labelled answers."""
        return int(np.count_nonzero(self.labelled))

    @cached_property
    def labelled_clusters(self) -> int:
        """Number of clusters with a labelled answer."""
        return len(np.unique(self.clusters[self.labelled]))
