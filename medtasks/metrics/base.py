"""Bases of metrics: sufficient statistics per sample, then a score of their sum, never a mean of
scores.

As in sacrebleu (``sacrebleu/metrics/base.py``), corpus scores, scores per group, bootstrap
intervals and paired tests all start from the same per-sample vectors, so they cannot disagree.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.catalog.items import Metric as Metric
from medtasks.core.errors import DataError, MedtasksError, UsageError
from medtasks.metrics.facts import NO_FACTS

Array: TypeAlias = npt.NDArray[np.float64]
Pairs: TypeAlias = "tuple[tuple[str, str], ...]"
"""Texts, (prediction, reference) each."""
SMALL_TABLE = 2**16
"""The most statistics of which copies cost little memory, so that all columns are computed at
once.
"""


class MetricUnavailableError(MedtasksError):
    """A metric's model or data are missing; the message says how to get them."""


class Installed:
    """Base of the metrics that need nothing beyond the installed packages, and whose larger score
    is better.
    """

    name: str
    width: int
    higher_is_better = True
    facts = NO_FACTS

    def unavailable(self) -> str | None:
        return None

    def table(self, pairs: Pairs) -> Array:  # noqa: ARG002
        """Sufficient statistics ``(pairs, width)``; those of a pair do not depend on the others.

        Raises:
            UsageError: a subclass does not compute them: an item's value does not come from one
                pair.
        """
        raise UsageError(
            f"{self.name} cannot be computed from one prediction and one reference, expected a "
            "whole item or a judge's verdict"
        )

    def statistics(self, prediction: str, reference: str) -> Array:
        """Sufficient statistics of one sample, ``(width,)``; raises as :meth:`table`."""
        row: Array = self.table(((prediction, reference),))[0]
        return row


def tokens_of(
    pairs: Pairs, tokenize: Callable[[str], Sequence[str]]
) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """Tokens of the predictions and of the references; each distinct text is tokenized once."""
    tokens_by_text: dict[str, Sequence[str]] = {}
    for pair in pairs:
        for text in pair:
            if text not in tokens_by_text:
                tokens_by_text[text] = tokenize(text)
    predictions = [tokens_by_text[prediction] for prediction, _ in pairs]
    references = [tokens_by_text[reference] for _, reference in pairs]
    return predictions, references


class MeanMetric(Installed):
    """Base of the metrics whose corpus score is the mean over samples: statistics ``(score, 1)``;
    NaN without any.
    """

    width = 2

    def score(self, totals: Array) -> Array:
        """Mean score ``(...)`` of totals ``(..., 2)``."""
        totals = np.asarray(totals, dtype=np.float64)
        return means(totals[..., 0], totals[..., 1])


def means(sums: Array, counts: Array) -> Array:
    """``sums / counts``, NaN if the count is 0."""
    quotients: Array = np.divide(
        sums, counts, out=np.full(np.shape(counts), np.nan), where=counts > 0
    )
    return quotients


def mean_table(values: npt.ArrayLike) -> Array:
    """The statistics ``(value, 1)`` of each sample of a mean-type metric."""
    column = np.asarray(values, dtype=np.float64)
    return np.column_stack([column, np.ones(len(column))])


@functools.cache  # every score has a signature
def package_version(package: str) -> str:
    """The installed version of a distribution, for signatures; ``absent`` without one."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


def sign(name: str, **choices: Any) -> str:
    """``name|key:value|…`` in the order given.

    >>> sign("bleu", tok="13a", smooth="none")
    'bleu|tok:13a|smooth:none'
    """
    return "|".join([name, *(f"{key.replace('_', '-')}:{value}" for key, value in choices.items())])


def corpus_score(metric: Metric, statistics: Array) -> float:
    """The score of all samples, whose statistics are ``(n, metric.width)``.

    Raises:
        UsageError: the shape does not fit, or there is no sample (an empty corpus does not score
            0).
        DataError: a statistic is not a finite number.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if statistics.ndim != 2 or statistics.shape[1] != metric.width:
        raise UsageError(
            f"{metric.name}: statistics have shape {statistics.shape}, expected (n, {metric.width})"
        )
    if not len(statistics):
        raise UsageError(f"{metric.name}: there is no sample to score, expected at least one")
    return float(metric.score(totals(statistics)))


def totals(statistics: Array) -> Array:
    """Column sums ``(width,)`` of ``(n, width)``, correctly rounded, so that the order of the rows
    does not matter.

    Raises:
        DataError: a statistic is not a finite number.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    check_finite(statistics)
    if not len(statistics):
        return np.zeros(statistics.shape[1])
    sums: Array = segment_sums(statistics, np.zeros(1, dtype=np.int64))[0]
    return sums


def segment_sums(statistics: Array, begins: npt.NDArray[np.int64]) -> Array:
    """Column sums ``(segments, width)`` of consecutive rows, each segment from its begin to the
    next; none is empty.

    Correctly rounded, as `totals` has them: whole numbers are added at once, others segment by
    segment. Of large tables, one column at a time: they have hundreds of megabytes.
    """
    statistics = np.asarray(statistics, dtype=np.float64)
    if not len(begins):
        return np.zeros((0, statistics.shape[1]))
    is_whole = whole_columns(statistics)
    if statistics.size <= SMALL_TABLE and is_whole.all():
        return np.asarray(np.add.reduceat(statistics, begins))
    ends = np.append(begins[1:], len(statistics))
    spans = list(zip(begins.tolist(), ends.tolist(), strict=True))
    sums = np.zeros((len(begins), statistics.shape[1]))
    for place, whole in enumerate(is_whole):
        column = np.ascontiguousarray(statistics[:, place])
        if whole:
            sums[:, place] = np.add.reduceat(column, begins)
        else:
            values = column.tolist()
            sums[:, place] = [math.fsum(values[begin:end]) for begin, end in spans]
    return sums


def segment_begins(codes: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
    """The first row of each run of equal ``codes``, for `segment_sums`.

    >>> segment_begins(np.array([0, 0, 3, 3, 3, 4])).tolist()
    [0, 2, 5]
    """
    is_first = np.ones(len(codes), dtype=np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    return np.flatnonzero(is_first)


def check_finite(statistics: Array) -> None:
    """Raise :class:`DataError` if a statistic is not a finite number."""
    if not np.isfinite(statistics).all():
        row, column = np.argwhere(~np.isfinite(statistics))[0]
        raise DataError(
            f"statistic {column} of sample {row} is {statistics[row, column]}, "
            "expected a finite number"
        )


def whole_columns(statistics: Array) -> npt.NDArray[np.bool_]:
    """Which columns of ``(n, width)`` have whole numbers whose sums are exact in any order (below
    2**53).
    """
    if statistics.size <= SMALL_TABLE:
        return _has_exact_sums(statistics)
    columns = map(np.ascontiguousarray, statistics.T)
    return np.array([_has_exact_sums(column) for column in columns], dtype=np.bool_)


def _has_exact_sums(values: Array) -> npt.NDArray[np.bool_]:
    """Whether the values ``(n, ...)`` are whole numbers whose sums ``(...)`` are below 2**53."""
    is_whole = (values == np.floor(values)).all(axis=0)
    largest = np.abs(values).max(axis=0, initial=0.0)
    return np.asarray(is_whole & (largest * len(values) < 2**53))
