"""Scores of confidences: calibration error, Brier score, and accuracy when the least certain
answers are left out.

A confidence is rounded to whole percents, so an item is one of 202 cases (percent, right or wrong)
and every score here is an exact function of how often each case occurs. Answers with the same
percent are tied: none is preferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Final

import numpy as np
import numpy.typing as npt

from medtasks.core.errors import UsageError
from medtasks.metrics.base import Array, MeanMetric, means
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.item_metrics import ItemScore, item_mean, sum_in_order

LEVELS = 101
"""Confidences from 0 to 100 percent."""
PERCENT = np.arange(LEVELS)
BINS = 15
"""Bins of equal width, as in Guo et al. 2017."""
COVERAGE = 0.8
"""The share of the answers that ``accuracy_at_80`` scores."""
_BIN_BY_PERCENT: Final = np.maximum(-(-PERCENT * BINS // 100) - 1, 0)
"""The bin ``(101,)`` of each percent p, ceil(15 p / 100) - 1 in integers: bin b has confidences
above b/15, up to (b + 1)/15, and bin 0 has 0, too.
"""
REASONS = (
    "no_probabilities",
    "no_answer",
    "no_letter_token",
    "missing",
    "several",
    "out_of_range",
    "not_scored",
)
"""Why an answer has no confidence that is compared with right and wrong
(`medtasks.scoring.answer_confidence`).
"""


@cache
def case(percent: int, *, right: bool) -> tuple[float, ...]:
    """Statistics of one item: by percent, the number of items, then the number of right ones."""
    if percent not in range(LEVELS):
        raise UsageError(f"a confidence is {percent} percent, expected 0 to 100")
    row = [0.0] * 2 * LEVELS
    row[percent], row[LEVELS + percent] = 1.0, float(right)
    return tuple(row)


def cases(totals: Array) -> tuple[Array, Array]:
    """Numbers of items and of right ones by percent, each ``(..., 101)``."""
    return totals[..., :LEVELS], totals[..., LEVELS:]


def percents_of_bin(number: int) -> npt.NDArray[np.int64]:
    """The percents whose confidences are in bin ``number``, ascending."""
    return np.flatnonzero(number == _BIN_BY_PERCENT)


def _occurring(totals: Array) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """Numbers of items and of right ones by percent, and the percents: only those that occur, which
    are few in a small set of answers.
    """
    counts, right = cases(totals)
    occurs: npt.NDArray[np.bool_] = np.asarray(counts.reshape(-1, LEVELS).any(axis=0))
    occurs[0] |= not occurs.any()  # without items one empty column, so that sums are 0
    return counts[..., occurs], right[..., occurs], PERCENT[occurs]


def _from_most_confident(totals: Array) -> tuple[Array, Array]:
    """Numbers of items and of right ones by the percents that occur, highest first."""
    counts, right, _ = _occurring(totals)
    return counts[..., ::-1], right[..., ::-1]


def calibration_error(totals: Array) -> Array:
    """Expected calibration error, 0..1: over 15 bins of equal width, the mean of abs(accuracy -
    mean confidence), weighted by the number of answers (Guo et al. 2017, arXiv 1706.04599, equation
    3).

    >>> rows = np.array([case(90, right=number < 6) for number in range(10)])
    >>> round(float(calibration_error(rows.sum(axis=0))), 6)
    0.3
    """
    counts, right, percents = _occurring(totals)
    # accuracy - mean confidence of a bin, times its answers, is the sum of these over its percents
    gaps = right - counts * percents / 100
    bin_of = _BIN_BY_PERCENT[percents]
    gaps_of_bins = []
    for number in np.unique(bin_of):
        in_bin = bin_of == number
        gaps_of_bins.append(np.abs(sum_in_order(gaps[..., in_bin])))
    return means(sum_in_order(np.stack(gaps_of_bins, axis=-1)), sum_in_order(counts))


def risk_coverage(totals: Array) -> Array:
    """Area under the risk-coverage curve, 0..1 (Geifman and El-Yaniv 2017, arXiv 1705.08500): the
    mean, over the answers, of the error rate among all answers with at least that confidence. 0: no
    error; constant confidence: the error rate.

    >>> rows = np.array([case(90, right=True), case(60, right=False)])
    >>> float(risk_coverage(rows.sum(axis=0)))
    0.25
    """
    counts, right = _from_most_confident(totals)
    answered = np.cumsum(counts, axis=-1)
    risks = np.divide(
        np.cumsum(counts - right, axis=-1), answered, out=np.zeros_like(counts), where=answered > 0
    )
    return means(sum_in_order(counts * risks), answered[..., -1])


def accuracy_at(totals: Array, coverage: float) -> Array:
    """Accuracy ``(...)`` of the most confident answers, as many as the share ``coverage`` of all;
    of tied answers at the limit, a share.

    >>> rows = np.array([case(90, right=True)] * 8 + [case(50, right=False)] * 2)
    >>> float(accuracy_at(rows.sum(axis=0), 0.8))
    1.0
    """
    counts, right = _from_most_confident(totals)
    answered = np.cumsum(counts, axis=-1)
    most_confident = coverage * answered[..., -1:]
    before = answered - counts
    covered = np.clip(most_confident - before, 0, counts)
    covered_share = np.divide(covered, counts, out=np.zeros_like(counts), where=counts > 0)
    return means(sum_in_order(covered_share * right), most_confident[..., 0])


def given_statistics(reason: str | None) -> tuple[float, ...]:
    """Statistics of an answer that has a confidence, or none for a ``reason``: whether it has one,
    1, then whether it has none for each of the `REASONS`.
    """
    return (
        float(reason is None),
        1.0,
        *(float(reason == known_reason) for known_reason in REASONS),
    )


def reasons(totals: Sequence[float]) -> dict[str, int]:
    """How many answers have no confidence, by reason, from summed :func:`given_statistics`."""
    return {reason: int(count) for reason, count in zip(REASONS, totals[2:], strict=True) if count}


GIVEN, ECE, BRIER = "confidence_given", "ece", "brier"
_PERCENTS = {"confidence": "whole-percents"}
CONFIDENCE_METRICS: tuple[ItemScore, ...] = (
    ItemScore(
        GIVEN,
        2 + len(REASONS),
        MeanMetric().score,
        facts=MetricFacts(label="confidence given", headline=61),
    ),
    ItemScore(
        ECE,
        2 * LEVELS,
        calibration_error,
        {"bins": f"{BINS}-equal-width", **_PERCENTS},
        higher_is_better=False,
        is_distance=True,
        facts=MetricFacts(label="calibration error", headline=60),
    ),
    item_mean(
        BRIER,
        {"of": "chosen-answer", **_PERCENTS},
        higher_is_better=False,
        facts=MetricFacts(label="Brier score", headline=NOT_IN_SUMMARY),
    ),
    ItemScore(
        "aurc",
        2 * LEVELS,
        risk_coverage,
        {"ties": "one-threshold", **_PERCENTS},
        higher_is_better=False,
        facts=MetricFacts(label="risk-coverage area", headline=NOT_IN_SUMMARY),
    ),
    ItemScore(
        "accuracy_at_80",
        2 * LEVELS,
        partial(accuracy_at, coverage=COVERAGE),
        {"coverage": f"{COVERAGE:g}", "ties": "in-proportion", **_PERCENTS},
        facts=MetricFacts(label="accuracy at 80 % coverage", headline=NOT_IN_SUMMARY),
    ),
)
"""The scores of tasks with ``metadata.confidence``, for back-ends that give confidences.
``confidence_given``: share of the answers with one; ``brier``: mean of (confidence - 1 if right
else 0) squared, 0..1, the score of Brier 1950 for the event that the chosen answer is right.
"""
CONFIDENCE_NAMES = tuple(metric.name for metric in CONFIDENCE_METRICS)

METRICS = CONFIDENCE_METRICS
