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

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import Rows
from medtasks.stats.labelled_answers import LabelledAnswers
from medtasks.stats.labelled_sample import (
    NEGLIGIBLE,
    LabelledSample,
    cluster_freedom,
    sums_by_number,
)
from medtasks.stats.proportions import design_effect
from medtasks.stats.strata import merged_strata

PSEUDO_LABELS = 2.0
"""As long as no label contradicts the prediction, the variance is that of so many labels more that
are wholly wrong: half of the four that Agresti and Coull (1998) add to a proportion.
"""
ENOUGH = 2.0
"""With so many clusters of deviating labels, half of the `PSEUDO_LABELS` are left."""


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
    (`medtasks.stats.labelled_sample.LabelledSample.tuning`).

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
    sample = LabelledSample.of(answers, strata)
    estimate = _estimate(sample, sample.tuning)
    only_tasks = _strata_of_open(answers, np.zeros_like(answers.strata))
    labels_only = _estimate(LabelledSample.of(answers, only_tasks), 0.0)
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


def _estimate(sample: LabelledSample, tuning: float) -> CorrectedMean:
    """The estimate with this λ, without its `CorrectedMean.worth`."""
    answers, clusters = sample.answers, sample.answers.clusters
    whole = float(answers.sizes.sum())
    predicted = _predicted(sample, tuning)
    value = math.fsum(predicted) / whole
    label_terms = _label_terms(sample, predicted)
    label_sums = sums_by_number(clusters, label_terms) / whole
    sums = sums_by_number(clusters, predicted - value * answers.sizes + label_terms) / whole
    count = len(np.unique(clusters))
    error = answers.width * float(sample.sizes.sum()) / whole / sample.effective_labels
    return CorrectedMean(
        value=value,
        tuning=tuning,
        labels=answers.labels,
        width=answers.width,
        influences=sums * math.sqrt(count / (count - 1)),
        label_variance=float((label_sums**2).sum()),
        question_variance=_question_variance(sample, value, predicted),
        pseudo_variance=_pseudo_labels(label_sums, answers.width) * error**2,
        label_freedom=sample.label_freedom,
        question_freedom=cluster_freedom(clusters, answers.sizes),
        effective_labels=sample.effective_labels,
    )


def _predicted(sample: LabelledSample, tuning: float) -> Array:
    """The predictions m ``(n,)`` of the labels; known answers have their scores."""
    unexplained = sample.mean_of_labelled(sample.human - tuning * sample.judged) * sample.sizes
    return np.where(sample.answers.known, sample.judged, tuning * sample.judged + unexplained)


def _label_terms(sample: LabelledSample, predicted: Array) -> Array:
    """``w·(Y - m)`` ``(n,)``, multiplied by ``sqrt(n / (n - 1))`` in a stratum with n labels; 0
    without a label.
    """
    errors = np.where(sample.answers.labelled, sample.human - predicted, 0.0)
    inflation = np.sqrt(sample.labels_in / np.maximum(sample.labels_in - 1, 1.0))
    terms: Array = sample.weights * errors * inflation[sample.strata]
    return terms


def _question_variance(sample: LabelledSample, value: float, predicted: Array) -> float:
    """The variance of the mean label of all answers: its design effect has the clustering of the
    predictions and the spread of the labels.
    """
    answers = sample.answers
    sizes = sums_by_number(answers.clusters, answers.sizes)
    used = sizes > 0
    share = min(1.0, max(0.0, value / answers.width))
    labels = np.where(answers.known, sample.judged, sample.human)
    weights = np.where(answers.known, 1.0, sample.weights)
    squares = weights * labels**2 / np.maximum(answers.sizes, 1.0)
    effect = design_effect(
        np.array(share),
        sums=sums_by_number(answers.clusters, predicted)[used] / answers.width,
        sizes=sizes[used],
        squares=squares.sum() / answers.width**2,
    )
    return share * (1 - share) * float(effect) * answers.width**2 / float(sizes.sum())


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
