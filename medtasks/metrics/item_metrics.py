"""Metrics over items that are scored elsewhere: means, MedStreamBench's Table 4 overall, a mean over dimensions.

An item here is what the benchmark counts, such as all the rounds of a stream; its value does not follow from one
prediction and one reference. So ``item_statistics`` takes the place of ``statistics``, and all that starts from
summed statistics (groups, intervals, paired tests) works as for any other metric.
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
from medtasks.metrics.streaming import DEFAULT_TOLERANCE, EXPECTED_TIME, NEVER_ANSWERABLE, TIMING, WEIGHTS, overall

SIGNED = frozenset({"signed_delay"})
"""Metrics that are best neither high nor low."""

MODES: tuple[str, ...] = ("retrospective", "present", "future", "proactive")
"""MedStreamBench's temporal modes, in the order of its Table 4 and of `OverallTable4`'s statistics."""

STREAMING_MODES: tuple[str, ...] = ("future", "proactive")
"""The modes that have streaming items (future has single-turn items, too)."""

_CLOSED = {"closed": f"exact-match-v{CLOSED_VERSION}", "early": "no_alert-or-uncertain", "alert_reason": "matched"}

_STREAMING = np.array([mode in STREAMING_MODES for mode in MODES])


class _OverItems:
    name: str
    signature: str
    higher_is_better: bool = True

    def unavailable(self) -> str | None:
        """None: these metrics need nothing beyond the installed packages."""
        return None

    def statistics(self, prediction: str, reference: str) -> NoReturn:  # noqa: ARG002
        """Refuse: an item's value comes from elsewhere.

        Raises:
            UsageError: always.
        """
        raise UsageError(
            f"{self.name} cannot be computed of one prediction and one reference, expected a whole item; "
            "use item_statistics"
        )


class ItemMetric(_OverItems, MeanMetric):
    """Mean, over the items that have one, of a value computed elsewhere (`medtasks.metrics.streaming`).

    Args:
        name: the column name.
        choices: what else can move the score, for the signature.
        higher_is_better: whether a larger mean is a better one.

    >>> metric = ItemMetric("stability")
    >>> float(metric.score(metric.item_statistics(0.5) + metric.item_statistics(None)))
    0.5
    """

    def __init__(
        self, name: str, choices: Mapping[str, str] = MappingProxyType({}), *, higher_is_better: bool = True
    ) -> None:
        self.name = name
        self.higher_is_better = higher_is_better
        self.signature = sign(name, mean="items", **choices)

    def item_statistics(self, value: float | None) -> Array:
        """``(value, 1)``, or ``(0, 0)`` of an item to which the metric does not apply (value None).

        Raises:
            UsageError: the value is not finite.
        """
        if value is None:
            return np.zeros(2)
        return np.array([_finite(self.name, value), 1.0])


_DUE = {"default_expected": EXPECTED_TIME, "never_answerable": "left-out"}
_ALARM = {
    "default_tolerance": DEFAULT_TOLERANCE,
    "default_expected": EXPECTED_TIME,
    "never_answerable": NEVER_ANSWERABLE,
}

ITEM_METRICS: tuple[ItemMetric, ...] = (
    ItemMetric("content", _CLOSED),
    ItemMetric("content_closed", {"questions": "closed", **_CLOSED}),
    ItemMetric("content_closed_fallback", {"questions": "closed", "mismatches": "judged", **_CLOSED}),
    ItemMetric("content_open", {"questions": "open"}),
    ItemMetric("responsiveness", TIMING),
    ItemMetric("stability", _DUE),
    ItemMetric("overall", {"weights": WEIGHTS, "single_turn": "content", **_CLOSED, **TIMING}),
    ItemMetric("false_alarm_rate", _ALARM, higher_is_better=False),
    ItemMetric("miss_rate", _DUE, higher_is_better=False),
    ItemMetric("signed_delay", {"unit": "s", "missed": "left-out", **_DUE}, higher_is_better=False),
    ItemMetric("invalid_rate", higher_is_better=False),
)
"""MedStreamBench's columns, 0..1 but for ``signed_delay``: seconds, over the items with a positive response and a t*.

A signed mean is best at 0; its ``higher_is_better`` says only that late is worse than early. Items timed in frames
have no seconds, so their delay is given as None.
"""


class OverallTable4(_OverItems):
    """Overall score as MedStreamBench's Table 4 combines it: mode means weighted by the modes' items, 0..1.

    ``Σ_m share_m · O_m`` with ``O = C̄`` for retrospective and present and ``0.7 C̄ + 0.3 R̄`` for future and
    proactive, where R̄ is the mean over the mode's streaming items alone. Equations 9 and 10 per item give another
    number wherever a mode mixes single-turn and streaming items; the printed table follows this one.

    Statistics, per mode in the order of `MODES`: ``(Σ C, items, Σ R, streaming items)``.

    >>> metric = OverallTable4()
    >>> rows = metric.item_statistics("present", 1.0, None) + metric.item_statistics("proactive", 0.5, 1.0)
    >>> round(float(metric.score(rows)), 3)  # (1.0 + 0.7 · 0.5 + 0.3 · 1.0) / 2
    0.825
    """

    name = "overall_table4"
    width = 4 * len(MODES)
    signature = sign(name, mean="modes-by-items", weights=WEIGHTS, modes=",".join(MODES), **_CLOSED, **TIMING)

    def item_statistics(self, mode: str, content: float, responsiveness: float | None) -> Array:
        """Statistics ``(16,)`` of one item; responsiveness is None for a single-turn item.

        Raises:
            UsageError: the mode is unknown, a score is not in 0..1, or a mode that has no streaming items has
            responsiveness.
        """
        _check_mode(mode, content, responsiveness)
        row = np.zeros((len(MODES), 4))
        streaming = responsiveness is not None
        row[MODES.index(mode)] = content, 1.0, responsiveness if streaming else 0.0, float(streaming)
        return row.reshape(self.width)

    def score(self, totals: Array) -> Array:
        """Scores ``(...)`` of totals ``(..., 16)``.

        A mode without items drops out, one without streaming items counts its content alone; NaN without any item.
        """
        totals = np.asarray(totals, dtype=np.float64)
        sums = totals.reshape(*totals.shape[:-1], len(MODES), 4)
        items = sums[..., 1]
        return _combine(_means(sums[..., 0], items), _means(sums[..., 2], sums[..., 3]), items)


def table4_overall(means: Mapping[str, tuple[float, float | None]], items: Mapping[str, int]) -> float:
    """`OverallTable4` of a published table: per mode its mean content and responsiveness, and its number of items.

    A mode without items drops out; NaN where none has any.

    Raises:
        UsageError: a mode is unknown, has fewer than 0 items, items but no means, a score that is not in 0..1, or
            responsiveness without having streaming items.
    """
    if unknown := sorted({*means, *items} - {*MODES}):
        raise UsageError(f"mode {unknown[0]!r} is unknown; choose from {', '.join(MODES)}")
    table = np.full((3, len(MODES)), np.nan)
    table[2] = [items.get(mode, 0) for mode in MODES]
    if not (table[2] >= 0).all():
        raise UsageError(f"the modes have {dict(items)} items, expected 0 or more of each")
    for column, mode in enumerate(MODES):
        if table[2, column] and mode not in means:
            raise UsageError(f"mode {mode!r} has {items[mode]} items but no means, expected both or neither")
        if mode in means:
            _check_mode(mode, *means[mode])
            table[:2, column] = [np.nan if mean is None else mean for mean in means[mode]]
    return float(_combine(*table))


class DimensionMean(_OverItems):
    """Unweighted mean of the means of several dimensions: each counts alike, however many items it has.

    A dimension without items is left out (a run with a limit has some); NaN where none has any. Statistics, per
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
        means = _means(sums[..., 0], sums[..., 1])
        found = ~np.isnan(means)
        return _means(_sum(np.where(found, means, 0.0)), _sum(found.astype(np.float64)))


def _combine(content: Array, responsiveness: Array, items: Array) -> Array:
    """Table 4's overall ``(...)`` of mode means and counts ``(..., 4)``; a mean of nothing is NaN."""
    weighed = _STREAMING & ~np.isnan(responsiveness)
    scores = np.where(weighed, overall(content, responsiveness), content)
    return _means(_sum(np.where(items > 0, items * scores, 0.0)), _sum(items))


def _means(sums: Array, counts: Array) -> Array:
    means: Array = np.divide(sums, counts, out=np.full(np.shape(counts), np.nan), where=counts > 0)
    return means


def _sum(columns: Array) -> Array:
    """Sum over the last axis, in its order: numpy's own order may change with the number of rows."""
    total = np.zeros(columns.shape[:-1])
    for column in np.moveaxis(columns, -1, 0):
        total = total + column
    return total


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise UsageError(f"{name}: an item's value is {value}, expected a finite number")
    return float(value)


def _check_mode(mode: str, content: float, responsiveness: float | None) -> None:
    if mode not in MODES:
        raise UsageError(f"mode {mode!r} is unknown; choose from {', '.join(MODES)}")
    if responsiveness is not None and mode not in STREAMING_MODES:
        raise UsageError(f"mode {mode!r} has responsiveness {responsiveness}, expected None: it has no streaming items")
    scores = (content,) if responsiveness is None else (content, responsiveness)
    if not all(0 <= score <= 1 for score in scores):
        raise UsageError(f"mode {mode!r} has content {content} and responsiveness {responsiveness}, expected 0 to 1")
