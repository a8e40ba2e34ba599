"""Bases of metrics: sufficient statistics per sample, then a score of their sum.

As in sacrebleu (``sacrebleu/metrics/base.py``), corpus scores, scores per group, bootstrap intervals and paired tests
all start from the same per-sample vectors, so they cannot disagree.
"""

from __future__ import annotations

import functools
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.catalog.benchmark import Metric as Metric
from medtasks.core.errors import MedtasksError
from medtasks.metrics._ngrams import Pairs

Array: TypeAlias = npt.NDArray[np.float64]


class MetricUnavailableError(MedtasksError):
    """A metric's model or data are missing; the message says how to get them."""


class Installed:
    """Base of the metrics that need nothing beyond the installed packages, and whose larger score is better."""

    higher_is_better = True

    def unavailable(self) -> str | None:
        """None."""
        return None


class BatchMetric(Installed):
    """Base of the metrics that are computed for many pairs at once; one pair is a batch of one.

    Nothing computed for one pair depends on its neighbours, so order and chunks cannot change a score.
    """

    def table(self, pairs: Pairs) -> Array:
        """Sufficient statistics ``(pairs, width)``."""
        raise NotImplementedError

    def statistics(self, prediction: str, reference: str) -> Array:
        """Sufficient statistics of one sample, ``(width,)``.

        Raises:
            MetricUnavailableError: what the metric needs is absent (METEOR without WordNet).
        """
        row: Array = self.table(((prediction, reference),))[0]
        return row


class MeanMetric(Installed):
    """Base of the metrics whose corpus score is the mean over samples: statistics ``(score, 1)``.

    The score of totals that count no sample is NaN, never 0: nothing was measured.
    """

    width = 2

    def score(self, totals: Array) -> Array:
        """Mean score ``(...)`` of totals ``(..., 2)``."""
        totals = np.asarray(totals, dtype=np.float64)
        count = totals[..., 1]
        mean: Array = np.divide(totals[..., 0], count, out=np.full(count.shape, np.nan), where=count > 0)
        return mean


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
