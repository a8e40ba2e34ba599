"""Metrics of items whose values are computed elsewhere: means over items, and over dimensions.

An item is what the benchmark counts, such as all rounds of a stream; its value does not follow from one prediction and
one reference. ``item_statistics`` replaces ``statistics``; groups, intervals and paired tests start from summed
statistics, so they work as for any other metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NoReturn

import numpy as np

from medtasks.errors import UsageError
from medtasks.metrics.base import Array, MeanMetric, sign
from medtasks.metrics.closed_answer import VERSION as CLOSED_VERSION
from medtasks.metrics.streaming import DUE, EXPECTED_TIME, LAW, TOLERANCE, WEIGHTS

SIGNED = frozenset({"signed_delay", "alert_delay"})
"""Metrics that are best neither high nor low."""

CLOSED = {"closed": f"exact-match-v{CLOSED_VERSION}", "early": "no_alert-or-uncertain", "alert_reason": "matched"}


class OverItems:
    """Mixin for metrics that are computed from whole items."""

    name: str
    signature: str
    higher_is_better: bool = True
    timing: tuple[str, ...] = ()
    """Fields of a task's ``metadata.timing`` that the metric depends on; their values are in its reported signature."""

    def unavailable(self) -> str | None:
        """None: these metrics need nothing beyond the installed packages."""
        return None

    def statistics(self, prediction: str, reference: str) -> NoReturn:  # noqa: ARG002
        """Not supported: an item's value is not computed from one pair of texts.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"{self.name} cannot be computed from one prediction and one reference, expected a whole item; "
            "use item_statistics"
        )


class ItemMetric(OverItems, MeanMetric):
    """Mean, over the items that have one, of a value computed elsewhere (`medtasks.metrics.streaming`).

    Args:
        name: the column name.
        choices: other choices that can change the score, for the signature.
        higher_is_better: whether a larger mean is a better one.
        timing: as `OverItems.timing`.

    >>> metric = ItemMetric("stability")
    >>> float(metric.score(metric.item_statistics(0.5) + metric.item_statistics(None)))
    0.5
    """

    def __init__(
        self,
        name: str,
        choices: Mapping[str, str] = MappingProxyType({}),
        *,
        higher_is_better: bool = True,
        timing: tuple[str, ...] = (),
    ) -> None:
        self.name = name
        self.timing = timing
        self.higher_is_better = higher_is_better
        self.signature = sign(name, mean="items", **choices)

    def item_statistics(self, value: float | None) -> Array:
        """``(value, 1)``, or ``(0, 0)`` for an item to which the metric does not apply (value None).

        Raises:
            UsageError: the value is not finite.
        """
        if value is None:
            return np.zeros(2)
        return np.array([_finite(self.name, value), 1.0])


_LEFT_OUT = {"default_expected": EXPECTED_TIME, "never_answerable": "left-out"}
_OVERALL = {"weights": WEIGHTS, "single_turn": "content", **CLOSED, **DUE}
_LENGTH = {"law": "stream-length"}

ITEM_METRICS: tuple[ItemMetric, ...] = (
    ItemMetric("content", CLOSED),
    ItemMetric("content_closed", {"questions": "closed", **CLOSED}),
    ItemMetric("content_closed_fallback", {"questions": "closed", "mismatches": "judged", **CLOSED}),
    ItemMetric("content_fallback", {"mismatches": "judged", **CLOSED}),
    ItemMetric("content_open", {"questions": "open"}),
    ItemMetric("responsiveness", DUE, timing=LAW),
    ItemMetric("responsiveness_stream_length", {**_LENGTH, **DUE}, timing=TOLERANCE),
    ItemMetric("stability", DUE),
    ItemMetric("overall", _OVERALL, timing=LAW),
    ItemMetric("overall_stream_length", {**_OVERALL, **_LENGTH}, timing=TOLERANCE),
    ItemMetric("false_alarm_rate", DUE, higher_is_better=False, timing=TOLERANCE),
    ItemMetric("miss_rate", _LEFT_OUT, higher_is_better=False),
    ItemMetric("signed_delay", {"unit": "s", "missed": "left-out", **_LEFT_OUT}, higher_is_better=False),
    ItemMetric("invalid_rate", higher_is_better=False),
)
"""Scores of streaming items, 0..1 except ``signed_delay``: seconds, over items with a positive response and a t*.

Those that end in ``_stream_length`` are under that law whatever the task declares; ``content_fallback`` counts closed
answers as the optional fallback judge does. A signed mean is best at 0; its ``higher_is_better`` means only that late
is worse than early. Items timed in frames have no seconds: their delay is None.
"""


class JudgedMean(MeanMetric):
    """Mean, over the judged samples, of a judge's total on a scale from 0 to ``top``.

    Args:
        name: the column name.
        top: the best total.

    ``limits`` are the statistics of a sample with the worst total, and of one with the best.

    >>> JudgedMean("open_total", top=100).limits
    ((0.0, 1.0), (100.0, 1.0))
    """

    def __init__(self, name: str, top: float) -> None:
        self.name = name
        self.signature = sign(name, scale=f"0-{top:g}", unjudged="left-out")
        self.limits = ((0.0, 1.0), (float(top), 1.0))

    def statistics(self, prediction: str, reference: str) -> NoReturn:  # noqa: ARG002
        """Not supported: only a judge gives this score.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"{self.name} is given by a judge, not computed from a prediction; run the judge.")


class DimensionMean(OverItems):
    """Unweighted mean of the means of several dimensions: each has equal weight, however many items it has.

    A dimension without items (possible in a run with a limit) is left out; NaN if none has any. Statistics, per
    dimension in the order given: ``(sum of values, items)``.

    Args:
        name: the column name.
        keys: the dimensions.

    Raises:
        UsageError: there is no dimension, or one is named twice.

    >>> metric = DimensionMean("by_dimension", ["CR", "LTG"])
    >>> rows = [metric.item_statistics(key, value) for key, value in [("CR", 1), ("LTG", 0), ("LTG", 0), ("LTG", 1)]]
    >>> round(float(metric.score(np.sum(rows, axis=0))), 4)  # (1 + 1/3) / 2
    0.6667
    """

    def __init__(self, name: str, keys: Sequence[str]) -> None:
        if not keys or len(set(keys)) < len(keys):
            raise UsageError(f"{name}: the dimensions are {list(keys)}, expected at least one and each once")
        self.name = name
        self.keys = tuple(keys)
        self.width = 2 * len(self.keys)
        self.signature = sign(name, mean="dimensions-unweighted", dimensions=",".join(self.keys))

    def item_statistics(self, key: str, value: float) -> Array:
        """Statistics ``(2 * len(keys),)`` of one item of a dimension.

        Raises:
            UsageError: there is no such dimension, or the value is not finite.
        """
        if key not in self.keys:
            raise UsageError(f"{self.name}: dimension {key!r} is unknown; choose from {', '.join(self.keys)}")
        row = np.zeros((len(self.keys), 2))
        row[self.keys.index(key)] = _finite(self.name, value), 1.0
        return row.reshape(self.width)

    def score(self, totals: Array) -> Array:
        """Scores ``(...)`` of totals ``(..., width)``."""
        totals = np.asarray(totals, dtype=np.float64)
        sums = totals.reshape(*totals.shape[:-1], len(self.keys), 2)
        by_dimension = means(sums[..., 0], sums[..., 1])
        found = ~np.isnan(by_dimension)
        return means(sum_in_order(np.where(found, by_dimension, 0.0)), sum_in_order(found.astype(np.float64)))


def means(sums: Array, counts: Array) -> Array:
    """``sums / counts``, NaN if the count is 0."""
    found: Array = np.divide(sums, counts, out=np.full(np.shape(counts), np.nan), where=counts > 0)
    return found


def sum_in_order(columns: Array) -> Array:
    """Sum over the last axis, in its order: numpy's own order may change with the number of rows."""
    total = np.zeros(columns.shape[:-1])
    for column in np.moveaxis(columns, -1, 0):
        total = total + column
    return total


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(f"{name}: an item's value is {value}, expected a finite number")
    return float(value)
