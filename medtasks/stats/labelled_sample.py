"""Answers with labels of a stratified sample: weights, the weight of the judge, and what the labels
are worth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Rows
from medtasks.stats.labelled_answers import LabelledAnswers, Mask
from medtasks.stats.proportions import ASSUMED_CORRELATION, kish_size

NEGLIGIBLE = 1e-9
"""A share of the range below this is rounding."""


@dataclass(frozen=True)
class LabelledSample:
    """Answers whose missing verdicts are filled in, and weights that represent every stratum.

    Arrays ``(n,)``, one entry an answer, but for the last two:

    Attributes:
        answers: the answers as they are.
        strata: number of each answer's merged stratum, from 0.
        sizes: what the score counts of each answer; 0 for known answers.
        judged: the judge's sums, filled in where there is no verdict.
        human: people's sums; 0 without a label.
        weights: how many answers each label stands for, so that the sizes of the labelled answers
            add up to those of their stratum; 0 without a label.
        labels_in: number of labels ``(strata,)`` in each stratum.
        sizes_in: summed sizes ``(strata,)`` of each stratum.
    """

    answers: LabelledAnswers
    strata: Rows
    sizes: Array
    judged: Array
    human: Array
    weights: Array
    labels_in: Array
    sizes_in: Array

    @classmethod
    def of(cls, answers: LabelledAnswers, strata: Rows) -> LabelledSample:
        """The sample with these ``strata``, numbered from 0, each of which has a label."""
        labelled = answers.labelled
        count = int(strata.max()) + 1
        sizes = np.where(answers.known, 0.0, answers.sizes)
        sizes_in = sums_by_number(strata, sizes, count)
        weights = np.where(labelled, answers.weights, 0.0)
        represented = sums_by_number(strata, weights * sizes, count)
        return cls(
            answers,
            strata,
            sizes,
            judged=_complete_verdicts(answers, strata),
            human=np.where(labelled, answers.human, 0.0),
            weights=weights * (sizes_in / represented)[strata],
            labels_in=sums_by_number(strata, labelled, count),
            sizes_in=sizes_in,
        )

    def mean_of_labelled(self, values: Array) -> Array:
        """The weighted mean ``(n,)`` of labelled answers in each answer's stratum."""
        sums = sums_by_number(self.strata, self.weights * values, len(self.sizes_in))
        means: Array = (sums / self.sizes_in)[self.strata]
        return means

    @cached_property
    def tuning(self) -> float:
        """λ: ``Σ g·cov(Y, f) / Σ g·var(f)`` over strata with ``g = C_h²·(1/n - 1/N)``, clipped to 0
        and 1. It minimises the variance that is due to the choice of the labelled answers.

        1 if the judge gives all answers of a stratum the same score: then λ does not matter. In a
        single stratum, the estimate is that of PPI++, whose λ is smaller by the share of unlabelled
        answers, because it averages the judge's scores of these alone.
        """
        members = sums_by_number(self.strata, self.sizes > 0, len(self.sizes_in))
        factors = self.sizes_in**2 * (1 / self.labels_in - 1 / members)
        explained = float((factors * self._judged_variance(members)).sum())
        if explained <= NEGLIGIBLE * self.answers.width**2 * float(factors.sum()):
            return 1.0
        return min(1.0, max(0.0, float((factors * self._covariance()).sum()) / explained))

    def _covariance(self) -> Array:
        """The covariance ``(strata,)`` of judged and human scores of the labelled answers."""
        judged_deviation = self.judged - self.mean_of_labelled(self.judged) * self.sizes
        human_deviation = self.human - self.mean_of_labelled(self.human) * self.sizes
        products = np.where(self.answers.labelled, judged_deviation * human_deviation, 0.0)
        sums = sums_by_number(self.strata, products, len(self.sizes_in))
        covariance: Array = sums / self.labels_in
        return covariance

    def _judged_variance(self, members: Array) -> Array:
        """The variance ``(strata,)`` of the judged scores of all answers, of which each stratum has
        ``members``.
        """
        count = len(self.sizes_in)
        judged = np.where(self.sizes > 0, self.judged, 0.0)
        means = sums_by_number(self.strata, judged, count) / self.sizes_in
        squares = (judged - means[self.strata] * self.sizes) ** 2
        variance: Array = sums_by_number(self.strata, squares, count) / np.maximum(members - 1, 1.0)
        return variance

    @cached_property
    def effective_labels(self) -> float:
        """The number of labels of equal weight, divided by the square root of their design effect
        if labels of a cluster correlate by `ASSUMED_CORRELATION` (Kish 1965).
        """
        represented = self.weights * self.answers.sizes
        equal_labels = float(represented.sum()) ** 2 / float((represented**2).sum())
        labels = sums_by_number(self.answers.clusters, self.answers.labelled)
        labels = labels[labels > 0]
        effect = 1 + (float(kish_size(labels)) - 1) * ASSUMED_CORRELATION
        return equal_labels / math.sqrt(effect)

    @property
    def label_freedom(self) -> float:
        """The degrees of freedom of labelled clusters, less those that further strata take up."""
        labelled = self.answers.labelled
        freedom = cluster_freedom(self.answers.clusters[labelled], self.weights[labelled])
        return max(1.0, freedom - (len(self.labels_in) - 1))


def cluster_freedom(clusters: Rows, sizes: Array) -> float:
    """The degrees of freedom of clusters whose entries have these sizes, as in
    `medtasks.stats.proportions.student`; at least 1.
    """
    sums = sums_by_number(clusters, sizes)
    sums = sums[sums > 0]
    equal_clusters = float(sums.sum() / kish_size(sums))
    return max(1.0, math.sqrt(len(sums) * equal_clusters) - 1)


def _complete_verdicts(answers: LabelledAnswers, strata: Rows) -> Array:
    """The judge's sums. A missing one is the mean of the verdicts in its stratum, or of all if the
    stratum has none, times the answer's size; 0 without any verdict.
    """
    has_verdict = ~np.isnan(answers.judged)
    if has_verdict.all():
        return answers.judged
    if not has_verdict.any():
        return np.zeros(len(answers.judged))
    count = int(strata.max()) + 1
    sums = sums_by_number(strata[has_verdict], answers.judged[has_verdict], count)
    sizes = sums_by_number(strata[has_verdict], answers.sizes[has_verdict], count)
    overall = sums.sum() / sizes.sum()
    means = np.divide(sums, sizes, out=np.full(count, overall), where=sizes > 0)
    return np.where(has_verdict, answers.judged, means[strata] * answers.sizes)


def sums_by_number(numbers: Rows, values: Array | Mask, count: int = 0) -> Array:
    """The sums of the values by number, from 0 to at least ``count - 1``."""
    return np.asarray(np.bincount(numbers, values, count), dtype=np.float64)
