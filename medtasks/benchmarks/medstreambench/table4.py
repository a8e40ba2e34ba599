"""MedStreamBench: how Table 4 of the paper combines the temporal modes into one overall score."""

from __future__ import annotations

from functools import partial

import numpy as np

from medtasks.catalog.items import Item, Value
from medtasks.metrics.base import Array, means
from medtasks.metrics.facts import MetricFacts
from medtasks.metrics.item_metrics import CLOSED, ItemScore, sum_in_order
from medtasks.metrics.streaming import DUE, LAW, WEIGHTS, overall

MODES: tuple[str, ...] = ("retrospective", "present", "future", "proactive")
"""In the order of Table 4 and of the statistics."""

STREAMING_MODES: tuple[str, ...] = ("future", "proactive")
"""Modes with streaming items; future has single-turn items, too."""

_STREAMING = np.array([mode in STREAMING_MODES for mode in MODES])


def table4_statistics(mode: str, content: float, responsiveness: float | None) -> tuple[float, ...]:
    """One item's ``(Σ C, items, Σ R, streaming items)`` per mode.

    Responsiveness is None for a single-turn item.
    """
    statistics: list[float] = []
    for table_mode in MODES:
        if table_mode == mode:
            streaming = float(responsiveness is not None)
            statistics += [content, 1.0, responsiveness or 0.0, streaming]
        else:
            statistics += [0.0] * 4
    return tuple(statistics)


def overall_table4(totals: Array, *, zeros: bool) -> Array:
    """Overall score as Table 4 combines it: mode means weighted by the modes' items, 0..1.

    ``Σ_m share_m · O_m`` with ``O = C̄`` for retrospective and present and ``0.7 C̄ + 0.3 R̄`` for
    future and proactive. Equations 9 and 10 per item give another number wherever a mode mixes
    single-turn and streaming items. The printed table does not show what R̄ of the future mode is:
    over the mode's streaming items alone, or, with ``zeros``, over all of its items with R = 0 for
    single-turn ones. Without streaming items and zeros, a mode counts its content alone.

    >>> rows = np.add(table4_statistics("future", 1.0, None), table4_statistics("future", 0.5, 1.0))
    >>> round(float(overall_table4(rows, zeros=False)), 3)  # 0.7 · 0.75 + 0.3 · 1
    0.825
    >>> round(float(overall_table4(rows, zeros=True)), 3)  # 0.7 · 0.75 + 0.3 · 1/2
    0.675
    """
    sums = totals.reshape(*totals.shape[:-1], len(MODES), 4)
    items = sums[..., 1]
    timed_items = items if zeros else sums[..., 3]
    content = means(sums[..., 0], items)
    responsiveness = means(sums[..., 2], timed_items)
    weighed = _STREAMING & ~np.isnan(responsiveness)
    scores = np.where(weighed, overall(content, responsiveness), content)
    return means(sum_in_order(np.where(items > 0, items * scores, 0.0)), sum_in_order(items))


def _overall_metric(name: str, *, zeros: bool, headline: int = 0) -> ItemScore:
    """The metric of `overall_table4`; ``choices`` are the parts of its signature."""
    choices = {
        "single_turn": f"responsiveness-{'0' if zeros else 'left-out'}",
        "mean": "modes-by-items",
        "weights": WEIGHTS,
        "modes": ",".join(MODES),
        **CLOSED,
        **DUE,
    }
    score = partial(overall_table4, zeros=zeros)
    facts = MetricFacts(headline=headline)
    return ItemScore(name, 4 * len(MODES), score, choices, timing=LAW, facts=facts)


OVERALL_TABLE4 = _overall_metric("overall_table4", zeros=False, headline=53)
OVERALL_TABLE4_EQ10 = _overall_metric("overall_table4_eq10", zeros=True)


def table4_value(item: Item) -> Value | None:
    """The item's part in the overall score of Table 4, which is the same for both metrics."""
    mode = item.view.document["temporal_mode"]
    content = item.values["content"]
    timing = item.values.get("responsiveness", Value())
    return Value(
        _statistics(mode, content.statistics, timing.statistics),
        _statistics(mode, content.low, timing.statistics or timing.low),
        _statistics(mode, content.high, timing.statistics or timing.high),
        judge=content.judge,
        failed=content.failed,
    )


def _statistics(
    mode: str, content: tuple[float, ...] | None, responsiveness: tuple[float, ...] | None
) -> tuple[float, ...] | None:
    """:func:`table4_statistics` of the statistics of two means; None without a content."""
    if content is None:
        return None
    if responsiveness is None:
        return table4_statistics(mode, content[0], None)
    return table4_statistics(mode, content[0], responsiveness[0])
