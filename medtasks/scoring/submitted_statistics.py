"""Bounds on statistics that are taken as submitted, because nothing else limits them."""

from __future__ import annotations

import numpy as np

from medtasks.core.errors import DataError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric, item_bounds_of

_HUGE = 1e12
"""Above all real scores, and small enough for pages and figures."""
_ROUNDING = 1e-9


def require_statistics(metric: str, rows: Array) -> None:
    """Refuse statistics ``(items, width)`` that score an item beyond the metric's bounds, or count
    it negatively.
    """
    rows = rows[~np.isnan(rows).any(axis=1)]
    problem = _problem_with_counts(rows) or _problem_with_scores(metric, rows)
    if problem is not None:
        raise DataError(
            f"statistics of {metric}: {problem}; restore the directory, or score it again: "
            "medtasks score DIR --out NEW_DIR."
        )


def _problem_with_counts(rows: Array) -> str | None:
    """What is wrong with the observations of a mean-type metric."""
    if rows.shape[1] != 2 or not (rows[:, 1] < 0).any():
        return None
    return f"an item counts {rows[:, 1].min():g} times, expected 0 or more"


def _problem_with_scores(metric: str, rows: Array) -> str | None:
    """What is wrong with the first item whose score is out of the metric's range."""
    low, high = item_bounds_of(metric) or (-_HUGE, _HUGE)
    low, high = max(low, -_HUGE), min(high, _HUGE)
    with np.errstate(all="ignore"):  # a single item may have no score
        scores = get_metric(metric).score(rows)
    is_beyond = (scores < low - _ROUNDING) | (scores > high * (1 + _ROUNDING))
    beyond = scores[is_beyond]
    if not beyond.size:
        return None
    return f"an item's score is {beyond[0]:g}, expected {low:g} to {high:g}"
