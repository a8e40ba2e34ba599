"""Scores of confidences: calibration error, Brier score, and accuracy when the least certain answers are left out.

A confidence is rounded to whole percents, so an item is one of 202 cases (percent, right or wrong) and every score here
is an exact function of how often each case occurs. Answers with the same percent are tied: none is preferred.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from medtasks.errors import UsageError
from medtasks.metrics.base import Array, sign
from medtasks.metrics.item_metrics import ItemMetric, OverItems, means, sum_in_order

LEVELS = 101
"""Confidences from 0 to 100 percent."""
BINS = 15
COVERAGE = 0.8
PERCENT = np.arange(LEVELS)
BIN_OF: Final = np.maximum(-(-PERCENT * BINS // 100) - 1, 0)
"""The bin of each percent: bin b has confidences above b/15, up to (b+1)/15."""
REASONS = ("no_probabilities", "no_answer", "no_letter_token", "missing", "several", "out_of_range", "not_scored")
"""Why an answer has no confidence that is compared with right and wrong (`medtasks.results.confidence`)."""


@functools.cache
def case(percent: int, *, right: bool) -> tuple[float, ...]:
    """Statistics of one item: by percent, the number of items, then the number of right ones.

    Raises:
        UsageError: the percentage is not a whole number from 0 to 100.
    """
    if percent not in range(LEVELS):
        raise UsageError(f"a confidence is {percent} percent, expected 0 to 100")
    row = [0.0] * 2 * LEVELS
    row[percent], row[LEVELS + percent] = 1.0, float(right)
    return tuple(row)


def cases(totals: Array) -> tuple[Array, Array]:
    """Numbers of items and of right ones by percent, each ``(..., 101)``."""
    totals = np.asarray(totals, dtype=np.float64)
    return totals[..., :LEVELS], totals[..., LEVELS:]


def _occurring(totals: Array) -> tuple[Array, Array, npt.NDArray[np.int64]]:
    """As :func:`cases` for the percents that occur, which are few in a small set of answers, and these percents."""
    counts, right = cases(totals)
    occurs: npt.NDArray[np.bool_] = np.asarray(counts.reshape(-1, LEVELS).any(axis=0))
    occurs[0] |= not occurs.any()
    return counts[..., occurs], right[..., occurs], PERCENT[occurs]


class _OverCases(OverItems):
    """A score of totals ``(..., 202)``; NaN without an item."""

    width = 2 * LEVELS

    def score(self, totals: Array) -> Array:
        """Scores ``(...)`` of totals ``(..., 202)``."""
        raise NotImplementedError


class CalibrationError(_OverCases):
    """Expected calibration error: over 15 bins of equal width, the mean of abs(accuracy - mean confidence), weighted by
    the number of answers (Guo et al. 2017, arXiv 1706.04599, equation 3).

    >>> rows = np.array([case(90, right=one < 6) for one in range(10)])
    >>> round(float(CalibrationError().score(rows.sum(axis=0))), 6)
    0.3
    """

    name = "ece"
    higher_is_better = False
    signature = sign(name, bins=f"{BINS}-equal-width", confidence="whole-percents")

    def score(self, totals: Array) -> Array:
        """Scores ``(...)``, 0..1."""
        counts, right, percents = _occurring(totals)
        gaps, bin_of = right - counts * percents / 100, BIN_OF[percents]
        in_bins = [np.abs(sum_in_order(gaps[..., place == bin_of])) for place in np.unique(bin_of)]
        return means(sum_in_order(np.stack(in_bins, axis=-1)), sum_in_order(counts))


class RiskCoverage(_OverCases):
    """Area under the risk-coverage curve (Geifman and El-Yaniv 2017, arXiv 1705.08500): the mean, over the answers, of
    the error rate among all answers with at least that confidence. 0: no error; constant confidence: the error rate.

    >>> rows = np.array([case(90, right=True), case(60, right=False)])
    >>> float(RiskCoverage().score(rows.sum(axis=0)))
    0.25
    """

    name = "aurc"
    higher_is_better = False
    signature = sign(name, ties="one-threshold", confidence="whole-percents")

    def score(self, totals: Array) -> Array:
        """Scores ``(...)``, 0..1."""
        counts, right = (side[..., ::-1] for side in _occurring(totals)[:2])
        answered = np.cumsum(counts, axis=-1)
        risks = np.divide(np.cumsum(counts - right, axis=-1), answered, out=np.zeros_like(counts), where=answered > 0)
        return means(sum_in_order(counts * risks), answered[..., -1])


def accuracy_at(totals: Array, coverage: float) -> Array:
    """Accuracy ``(...)`` of the most confident answers, as many as the share ``coverage`` of all."""
    counts, right = (side[..., ::-1] for side in _occurring(totals)[:2])
    answered = np.cumsum(counts, axis=-1)
    wanted = coverage * answered[..., -1:]
    taken = np.clip(wanted - (answered - counts), 0, counts)
    share = np.divide(taken, counts, out=np.zeros_like(counts), where=counts > 0)
    return means(sum_in_order(share * right), wanted[..., 0])


class AccuracyAtCoverage(_OverCases):
    """Accuracy among the 80 % of the answers with the highest confidence; of tied answers at the limit, a share.

    >>> rows = np.array([case(90, right=True)] * 8 + [case(50, right=False)] * 2)
    >>> float(AccuracyAtCoverage().score(rows.sum(axis=0)))
    1.0
    """

    name = "accuracy_at_80"
    signature = sign(name, coverage=f"{COVERAGE:g}", ties="in-proportion", confidence="whole-percents")

    def score(self, totals: Array) -> Array:
        """Scores ``(...)``, 0..1."""
        return accuracy_at(totals, COVERAGE)


class ConfidenceGiven(OverItems):
    """Share of the answers with a confidence. Statistics: those with one, all, and those without by `REASONS`."""

    name = "confidence_given"
    width = 2 + len(REASONS)
    signature = sign(name)

    def item_statistics(self, reason: str | None) -> tuple[float, ...]:
        """Statistics of an answer with a confidence, or of one that has none for a ``reason``."""
        return (float(reason is None), 1.0, *(float(one == reason) for one in REASONS))

    def score(self, totals: Array) -> Array:
        """Scores ``(...)`` of totals ``(..., width)``."""
        totals = np.asarray(totals, dtype=np.float64)
        return means(totals[..., 0], totals[..., 1])


def reasons(totals: Sequence[float]) -> dict[str, int]:
    """How many answers have no confidence, by reason, from summed statistics of `ConfidenceGiven`."""
    return {reason: int(count) for reason, count in zip(REASONS, totals[2:], strict=True) if count}


BRIER = ItemMetric("brier", {"of": "chosen-answer", "confidence": "whole-percents"}, higher_is_better=False)
"""Mean of (confidence - 1 if right else 0) squared, 0..1: the score of Brier 1950 for the event that the chosen answer
is right."""

CONFIDENCE_METRICS: tuple[ItemMetric | _OverCases | ConfidenceGiven, ...] = (
    ConfidenceGiven(),
    CalibrationError(),
    BRIER,
    RiskCoverage(),
    AccuracyAtCoverage(),
)
"""The scores of tasks with ``metadata.confidence``, for back-ends that give confidences."""
CONFIDENCE_NAMES = tuple(metric.name for metric in CONFIDENCE_METRICS)
