"""Table 4 of the paper: how it combines the temporal modes into one overall score."""

from __future__ import annotations

from functools import partial

import numpy as np

from medtasks.metrics.base import Array, means
from medtasks.metrics.item_metrics import CLOSED, ItemScore, sum_in_order
from medtasks.metrics.streaming import DUE, LAW, WEIGHTS, overall

MODES: tuple[str, ...] = ("retrospective", "present", "future", "proactive")
"""The temporal modes, in the order of table 4 and of the statistics."""

STREAMING_MODES: tuple[str, ...] = ("future", "proactive")
"""The modes that have streaming items (future has single-turn items, too)."""

_STREAMING = np.array([mode in STREAMING_MODES for mode in MODES])


def table4_statistics(mode: str, content: float, responsiveness: float | None) -> tuple[float, ...]:
    """Statistics of one item, per mode in the order of `MODES`: ``(Σ C, items, Σ R, streaming items)``.

    Responsiveness is None for a single-turn item.
    """
    own = (content, 1.0, responsiveness or 0.0, float(responsiveness is not None))
    return tuple(number for each in MODES for number in (own if each == mode else (0.0,) * 4))


def overall_table4(totals: Array, *, zeros: bool) -> Array:
    """Overall score as table 4 combines it: mode means weighted by the modes' items, 0..1.

    ``Σ_m share_m · O_m`` with ``O = C̄`` for retrospective and present and ``0.7 C̄ + 0.3 R̄`` for future and proactive.
    Equations 9 and 10 per item give another number wherever a mode mixes single-turn and streaming items; the printed
    table follows this one. It cannot tell what R̄ of the future mode is, since it prints only the mean: over the mode's
    streaming items alone, or, with ``zeros``, over all of its items with R = 0 for single-turn ones (equation 10 for
    every future item).

    A mode without items drops out; unless single-turn items have zeros, one without streaming items counts its content
    alone. NaN without any item.

    >>> rows = np.add(table4_statistics("future", 1.0, None), table4_statistics("future", 0.5, 1.0))
    >>> [round(float(overall_table4(rows, zeros=zeros)), 3) for zeros in (False, True)]  # 0.7 · 0.75 + 0.3 · (1 or 1/2)
    [0.825, 0.675]
    """
    sums = totals.reshape(*totals.shape[:-1], len(MODES), 4)
    items = sums[..., 1]
    content, responsiveness = means(sums[..., 0], items), means(sums[..., 2], items if zeros else sums[..., 3])
    weighed = _STREAMING & ~np.isnan(responsiveness)
    scores = np.where(weighed, overall(content, responsiveness), content)
    return means(sum_in_order(np.where(items > 0, items * scores, 0.0)), sum_in_order(items))


def _reading(name: str, *, zeros: bool) -> ItemScore:
    choices = {"mean": "modes-by-items", "weights": WEIGHTS, "modes": ",".join(MODES), **CLOSED, **DUE}
    single = {"single_turn": f"responsiveness-{'0' if zeros else 'left-out'}"}
    score = partial(overall_table4, zeros=zeros)
    return ItemScore(name, 4 * len(MODES), score, {**single, **choices}, timing=LAW)


OVERALL_TABLE4 = _reading("overall_table4", zeros=False)
OVERALL_TABLE4_EQ10 = _reading("overall_table4_eq10", zeros=True)
