"""Figures of the latency with 95 % intervals over clusters: percentiles and means."""

from __future__ import annotations

import math

import numpy as np
from pydantic import BaseModel

from medtasks.metrics.base import MeanMetric
from medtasks.stats.intervals import ClusteredItems, score_interval
from medtasks.stats.quantiles import Estimate, quantile

Observations = list[tuple[float, str]]
"""Values, each with the cluster that it belongs to."""


class RoundedEstimate(BaseModel, frozen=True):
    """A figure of the latency with its 95 % interval over clusters of samples, as files state it.

    Args:
        value: the figure, to six significant digits.
        interval: its low and high end. An end is None where the data do not limit it, both are with
            fewer than two clusters.
    """

    value: float
    interval: tuple[float | None, float | None]

    @classmethod
    def of(cls, estimate: Estimate) -> RoundedEstimate:
        """The estimate, rounded to six significant digits."""
        interval = _rounded(estimate.low), _rounded(estimate.high)
        return cls(value=significant(estimate.value), interval=interval)


def percentile_figures(
    observed: Observations,
) -> tuple[RoundedEstimate | None, RoundedEstimate | None]:
    """Median and 95th percentile of the values; None without values."""
    if not observed:
        return None, None
    values = np.array([value for value, _ in observed])
    clusters = [cluster for _, cluster in observed]
    median = quantile(values, clusters, 0.5)
    return RoundedEstimate.of(median), RoundedEstimate.of(quantile(values, clusters, 0.95))


def mean_figure(observed: Observations) -> RoundedEstimate | None:
    """The mean of values from 0 to 1, with the interval that scores have; None without values."""
    if not observed:
        return None
    statistics = np.array([(value, 1.0) for value, _ in observed])
    clusters = [cluster for _, cluster in observed]
    interval = score_interval(
        MeanMetric().score, ClusteredItems.of(statistics, clusters), bounds=(0.0, 1.0)
    )
    mean = math.fsum(value for value, _ in observed) / len(observed)
    return RoundedEstimate.of(Estimate(mean, interval.low, interval.high))


def significant(value: float) -> float:
    """The value to six significant digits."""
    if not value or not math.isfinite(value):
        return value
    return round(value, 5 - math.floor(math.log10(abs(value))))


def _rounded(value: float | None) -> float | None:
    """The value to six significant digits."""
    return None if value is None else significant(value)
