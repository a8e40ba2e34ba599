"""What is known of a metric's values: their range, and the score of right answers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from medtasks.metrics.aggregate import corpus_score
from medtasks.metrics.base import Metric
from medtasks.metrics.item_metrics import JudgedMean

TOLERANCE = 1e-9

_SHARE = (0.0, 1.0)

_REACHED = {
    **dict.fromkeys(("accuracy", "exact_match", "rouge1", "rougeL", "content", "content_closed", "overall"), 1.0),
    **dict.fromkeys(("responsiveness", "stability"), 1.0),
    **dict.fromkeys(("chrf", "chrf++"), 100.0),
    **dict.fromkeys(("false_alarm_rate", "miss_rate", "invalid_rate"), 0.0),
}
"""Scores of a model that always gives the reference answer."""

_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys((*_REACHED, "rouge2", "meteor", "bleu", "content_open", "content_closed_fallback"), _SHARE),
    **dict.fromkeys(("accuracy_dimension_mean", "overall_table4"), _SHARE),
    **dict.fromkeys(("chrf", "chrf++"), (0.0, 100.0)),
    "cider": (0.0, 10.0),
    "signed_delay": (-math.inf, math.inf),
}

TIMED = frozenset({"responsiveness", "stability", "overall", "false_alarm_rate", "miss_rate"})
"""Metrics of answer times in streams: the times in the records limit what can be reached."""


class Range(NamedTuple):
    """Minimum and maximum score; ``stated`` is False if 0 to 1 is only assumed."""

    low: float
    high: float
    stated: bool = True

    def contains(self, value: float) -> bool:
        """Whether ``value`` is within the range, up to rounding."""
        slack = TOLERANCE * max(1.0, abs(value))
        return self.low - slack <= value <= self.high + slack


def range_of(metric: Metric) -> Range:
    """The range of ``metric``: ours by name, another package's by its attribute ``bounds``."""
    if metric.name in _RANGES:
        return Range(*_RANGES[metric.name])
    if isinstance(metric, JudgedMean):
        return Range(0.0, metric.top)
    bounds: Any = getattr(metric, "bounds", None)
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2:
        return Range(float(bounds[0]), float(bounds[1]))
    return Range(*_SHARE, stated=False)


def best_score(metric: Metric, targets: Sequence[str]) -> float | None:
    """The score of answers equal to their targets; None if pairs of texts do not determine it.

    Some metrics do not reach their maximum even then, such as METEOR, or BLEU of a few words.
    """
    if metric.name in _REACHED:
        return _REACHED[metric.name]
    try:
        rows = np.array([metric.statistics(target, target) for target in targets], dtype=np.float64)
        found = corpus_score(metric, rows)
    except Exception:  # scored elsewhere, or unavailable; process_results is checked separately
        return None
    return found if math.isfinite(found) else None


def reaches(metric: Metric, value: float, other: float) -> bool:
    """Whether ``value`` is at least as good as ``other``, up to rounding."""
    slack = TOLERANCE * max(1.0, abs(other))
    return value >= other - slack if metric.higher_is_better else value <= other + slack
