"""Scores that people would give to all answers, estimated from a judge's scores of all answers and
people's scores of a probability sample.

Prediction-powered inference (Angelopoulos, Bates, Fannjiang, Jordan and Zrnic 2023) with power
tuning (PPI++: Angelopoulos, Duchi and Zrnic 2023), for answers in clusters and labels with sampling
weights. docs/statistics.md explains it, and has the coverage of its intervals
(``performance/corrected_coverage.py``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Rows
from medtasks.stats.labelled_answers import LabelledAnswers, Mask
from medtasks.stats.proportions import ASSUMED_CORRELATION, design_effect, kish_size
from medtasks.stats.strata import merged_strata

PSEUDO_LABELS = 2.0
"""As long as no label contradicts the prediction, the variance is that of so many labels more that
are wholly wrong: half of the four that Agresti and Coull (1998) add to a proportion.
"""
ENOUGH = 2.0
"""With so many clusters of deviating labels, half of the `PSEUDO_LABELS` are left."""
NEGLIGIBLE = 1e-9
"""A share of the range below this is rounding."""


@dataclass(frozen=True)
class CorrectedMean:
    """The estimate of the mean that people would give to all answers.

    Attributes:
        value: the estimate.
        tuning: λ, the weight of the judge: 0 if its verdicts do not help, at most 1.
        labels: number of labelled answers.
        width: the highest possible score.
        influences: what each cluster ``(k,)`` contributes to the error of the estimate; their sum
            of squares is its observed variance.
        label_variance: the part that is due to the choice of the labelled answers.
        question_variance: the variance due to the choice of the questions, shrunk while right or
            wrong answers are few (`medtasks.stats.proportions.design_effect`).
        pseudo_variance: what disagreements that were not seen may add (`PSEUDO_LABELS`).
        label_freedom, question_freedom: degrees of freedom of these parts.
        effective_labels: number of independent labels of equal weight that are as informative.
        worth: how many labels would give an estimate as precise without the judge; at most the
            number of answers that can be labelled.
    """

    value: float
    tuning: float
    labels: int
    width: float
    influences: Array
    label_variance: float
    question_variance: float
    pseudo_variance: float
    label_freedom: float
    question_freedom: float
    effective_labels: float
    worth: float = math.nan

    @property
    def variance(self) -> float:
        """The variance of the estimate."""
        observed = float((self.influences**2).sum())
        return max(observed, self.label_variance + self.question_variance) + self.pseudo_variance


def corrected_mean(answers: LabelledAnswers) -> CorrectedMean:
    """What people would give to all answers on average.

    With judged scores f, labels Y, sizes c, and weights w that are scaled to represent the size C_h
    of each stratum h, the estimate is ``(λ·Σf + Σ_h C_h·ē_h) / Σc``, where ``ē_h = Σw(Y - λf) /
    Σwc`` is what the judge leaves unexplained in the stratum. λ minimises the variance
    (`_Sample.tuning`).

    *Variance.* The estimate is the mean of ``m + w·(Y - m)`` over all answers. ``m = λf + c·ē_h``
    predicts a label; only labelled answers have the second term. The variance is that of the sums
    of this expression by cluster, so it covers the choice of the questions and that of the labelled
    answers, however both are clustered (the linearised variance of a two-phase estimator: Särndal,
    Swensson and Wretman 1992, section 9.7). The second term is multiplied by ``sqrt(n / (n - 1))``
    in a stratum with n labels.

    Raises:
        UsageError: a task has fewer than two labels.
    """
    strata = _strata_of_open(answers, answers.strata)
    sample = _Sample.of(answers, strata)
    estimate = sample.estimate(sample.tuning)
    only_tasks = _strata_of_open(answers, np.zeros_like(answers.strata))
    labels_only = _Sample.of(answers, only_tasks).estimate(0.0)
    # with equal allowances for what was not seen, so that only the judge makes a difference
    alike = replace(labels_only, pseudo_variance=estimate.pseudo_variance)
    worth = answers.labels * alike.variance / estimate.variance
    return replace(estimate, worth=min(worth, float(np.count_nonzero(~answers.known))))


def _strata_of_open(answers: LabelledAnswers, strata: Rows) -> Rows:
    """The merged strata of the answers that are not known; known ones have any number."""
    numbers = np.zeros_like(strata)
    is_open = ~answers.known
    numbers[is_open] = merged_strata(
        strata[is_open], answers.tasks[is_open], answers.labelled[is_open]
    )
    return numbers


@dataclass(frozen=True)
class _Sample:
    """The answers with complete verdicts, and weights that represent every stratum.

    ``labels_in`` and ``sizes_in`` ``(strata,)`` are the labels and the summed sizes in each
    stratum; ``judged`` and ``human`` are the sums, the latter 0 without a label. ``sizes`` are 0
    for known answers.
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
    def of(cls, answers: LabelledAnswers, strata: Rows) -> _Sample:
        """The sample with these ``strata``, numbered from 0, each of which has a label."""
        labelled = answers.labelled
        count = int(strata.max()) + 1
        sizes = np.where(answers.known, 0.0, answers.sizes)
        sizes_in = _sums(strata, sizes, count)
        weights = np.where(labelled, answers.weights, 0.0)
        represented = _sums(strata, weights * sizes, count)
        return cls(
            answers,
            strata,
            sizes,
            judged=_complete_verdicts(answers, strata),
            human=np.where(labelled, answers.human, 0.0),
            weights=weights * (sizes_in / represented)[strata],
            labels_in=_sums(strata, labelled, count),
            sizes_in=sizes_in,
        )

    def _mean_of_labelled(self, values: Array) -> Array:
        """The weighted mean ``(n,)`` of labelled answers in each answer's stratum."""
        sums = _sums(self.strata, self.weights * values, len(self.sizes_in))
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
        members = _sums(self.strata, self.sizes > 0, len(self.sizes_in))
        factors = self.sizes_in**2 * (1 / self.labels_in - 1 / members)
        explained = float((factors * self._judged_variance(members)).sum())
        if explained <= NEGLIGIBLE * self.answers.width**2 * float(factors.sum()):
            return 1.0
        return min(1.0, max(0.0, float((factors * self._covariance()).sum()) / explained))

    def _covariance(self) -> Array:
        """The covariance ``(strata,)`` of judged and human scores of the labelled answers."""
        judged_deviation = self.judged - self._mean_of_labelled(self.judged) * self.sizes
        human_deviation = self.human - self._mean_of_labelled(self.human) * self.sizes
        products = np.where(self.answers.labelled, judged_deviation * human_deviation, 0.0)
        covariance: Array = _sums(self.strata, products, len(self.sizes_in)) / self.labels_in
        return covariance

    def _judged_variance(self, members: Array) -> Array:
        """The variance ``(strata,)`` of the judged scores of all answers, of which each stratum has
        ``members``.
        """
        count = len(self.sizes_in)
        judged = np.where(self.sizes > 0, self.judged, 0.0)
        means = _sums(self.strata, judged, count) / self.sizes_in
        squares = (judged - means[self.strata] * self.sizes) ** 2
        variance: Array = _sums(self.strata, squares, count) / np.maximum(members - 1, 1.0)
        return variance

    def estimate(self, tuning: float) -> CorrectedMean:
        """The estimate with this λ, without its `CorrectedMean.worth`."""
        answers, clusters = self.answers, self.answers.clusters
        whole = float(answers.sizes.sum())
        unexplained = self._mean_of_labelled(self.human - tuning * self.judged) * self.sizes
        predicted = np.where(answers.known, self.judged, tuning * self.judged + unexplained)
        value = math.fsum(predicted) / whole
        errors = np.where(answers.labelled, self.human - predicted, 0.0)
        inflation = np.sqrt(self.labels_in / np.maximum(self.labels_in - 1, 1.0))
        label_terms = self.weights * errors * inflation[self.strata]
        label_sums = _sums(clusters, label_terms) / whole
        sums = _sums(clusters, predicted - value * answers.sizes + label_terms) / whole
        count = len(np.unique(clusters))
        error = answers.width * float(self.sizes.sum()) / whole / self.effective_labels
        return CorrectedMean(
            value=value,
            tuning=tuning,
            labels=answers.labels,
            width=answers.width,
            influences=sums * math.sqrt(count / (count - 1)),
            label_variance=float((label_sums**2).sum()),
            question_variance=self._question_variance(value, predicted),
            pseudo_variance=_pseudo_labels(label_sums, answers.width) * error**2,
            label_freedom=self._label_freedom(),
            question_freedom=_cluster_freedom(clusters, answers.sizes),
            effective_labels=self.effective_labels,
        )

    def _question_variance(self, value: float, predicted: Array) -> float:
        """The variance of the mean label of all answers: its design effect has the clustering of
        the predictions and the spread of the labels.
        """
        answers = self.answers
        sizes = _sums(answers.clusters, answers.sizes)
        used = sizes > 0
        share = min(1.0, max(0.0, value / answers.width))
        labels = np.where(answers.known, self.judged, self.human)
        weights = np.where(answers.known, 1.0, self.weights)
        squares = weights * labels**2 / np.maximum(answers.sizes, 1.0)
        effect = design_effect(
            np.array(share),
            sums=_sums(answers.clusters, predicted)[used] / answers.width,
            sizes=sizes[used],
            squares=squares.sum() / answers.width**2,
        )
        return share * (1 - share) * float(effect) * answers.width**2 / float(sizes.sum())

    @cached_property
    def effective_labels(self) -> float:
        """The number of labels of equal weight, divided by the square root of their design effect
        if labels of a cluster correlate by `ASSUMED_CORRELATION` (Kish 1965).
        """
        represented = self.weights * self.answers.sizes
        equal_labels = float(represented.sum()) ** 2 / float((represented**2).sum())
        labels = _sums(self.answers.clusters, self.answers.labelled)
        labels = labels[labels > 0]
        effect = 1 + (float(kish_size(labels)) - 1) * ASSUMED_CORRELATION
        return equal_labels / math.sqrt(effect)

    def _label_freedom(self) -> float:
        """The degrees of freedom of labelled clusters, less those that further strata take up."""
        labelled = self.answers.labelled
        freedom = _cluster_freedom(self.answers.clusters[labelled], self.weights[labelled])
        return max(1.0, freedom - (len(self.labels_in) - 1))


def _pseudo_labels(label_sums: Array, width: float) -> float:
    """How many wholly wrong labels are assumed besides those that were seen.

    `PSEUDO_LABELS` if no label deviates from its prediction; fewer the more clusters deviate. Their
    effective number is ``(Σq²)² / Σq⁴`` of their sums q.
    """
    largest = float(np.abs(label_sums).max())
    if largest <= NEGLIGIBLE * width:
        return PSEUDO_LABELS
    squares = (label_sums / largest) ** 2
    deviating = float(squares.sum()) ** 2 / float((squares**2).sum())
    return PSEUDO_LABELS / (1 + (deviating / ENOUGH) ** 2)


def _cluster_freedom(clusters: Rows, sizes: Array) -> float:
    """The degrees of freedom of clusters with these sizes, as in
    `medtasks.stats.proportions.student`.
    """
    sums = _sums(clusters, sizes)
    sums = sums[sums > 0]
    equal_clusters = float(sums.sum() / kish_size(sums))
    return max(1.0, math.sqrt(len(sums) * equal_clusters) - 1)


def _complete_verdicts(answers: LabelledAnswers, strata: Rows) -> Array:
    """The judge's sums; without a verdict, by the mean of the others in the stratum, or of all."""
    has_verdict = ~np.isnan(answers.judged)
    if has_verdict.all():
        return answers.judged
    if not has_verdict.any():
        return np.zeros(len(answers.judged))
    count = int(strata.max()) + 1
    sums = _sums(strata[has_verdict], answers.judged[has_verdict], count)
    sizes = _sums(strata[has_verdict], answers.sizes[has_verdict], count)
    overall = sums.sum() / sizes.sum()
    means = np.divide(sums, sizes, out=np.full(count, overall), where=sizes > 0)
    return np.where(has_verdict, answers.judged, means[strata] * answers.sizes)


def _sums(numbers: Rows, values: Array | Mask, count: int = 0) -> Array:
    """The sums of the values by number, from 0 to at least ``count - 1``."""
    return np.asarray(np.bincount(numbers, values, count), dtype=np.float64)
