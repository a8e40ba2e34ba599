"""Table 4 of the paper: how it combines the temporal modes into one overall score."""

from __future__ import annotations

import numpy as np

from medtasks.metrics.base import Array, sign
from medtasks.metrics.item_metrics import CLOSED, OverItems, means, sum_in_order
from medtasks.metrics.streaming import DUE, LAW, WEIGHTS, overall

MODES: tuple[str, ...] = ("retrospective", "present", "future", "proactive")
"""The temporal modes, in the order of table 4 and of the statistics of `OverallTable4`."""

STREAMING_MODES: tuple[str, ...] = ("future", "proactive")
"""The modes that have streaming items (future has single-turn items, too)."""

_STREAMING = np.array([mode in STREAMING_MODES for mode in MODES])


class OverallTable4(OverItems):
    """Overall score as table 4 combines it: mode means weighted by the modes' items, 0..1.

    ``Σ_m share_m · O_m`` with ``O = C̄`` for retrospective and present and ``0.7 C̄ + 0.3 R̄`` for future and proactive.
    Equations 9 and 10 per item give another number wherever a mode mixes single-turn and streaming items; the printed
    table follows this one. It cannot tell what R̄ of the future mode is, since it prints only the mean: over the mode's
    streaming items alone (``overall_table4``), or over all of its items with R = 0 for single-turn ones
    (``overall_table4_eq10``, equation 10 for every future item).

    Statistics, per mode in the order of `MODES`: ``(Σ C, items, Σ R, streaming items)``.

    >>> metric, zeros = OverallTable4(), OverallTable4(zeros=True)
    >>> rows = metric.item_statistics("future", 1.0, None) + metric.item_statistics("future", 0.5, 1.0)
    >>> round(float(metric.score(rows)), 3), round(float(zeros.score(rows)), 3)  # 0.7 · 0.75 + 0.3 · (1 or 1 / 2)
    (0.825, 0.675)

    Args:
        zeros: whether R of a single-turn item in a mode with streaming items counts as 0.
    """

    width = 4 * len(MODES)
    timing = LAW

    def __init__(self, *, zeros: bool = False) -> None:
        self.name = "overall_table4_eq10" if zeros else "overall_table4"
        self._zeros = zeros
        choices = {"mean": "modes-by-items", "weights": WEIGHTS, "modes": ",".join(MODES), **CLOSED, **DUE}
        self.signature = sign(self.name, single_turn=f"responsiveness-{'0' if zeros else 'left-out'}", **choices)

    def item_statistics(self, mode: str, content: float, responsiveness: float | None) -> Array:
        """Statistics ``(16,)`` of one item; responsiveness is None for a single-turn item."""
        row = np.zeros((len(MODES), 4))
        streaming = responsiveness is not None
        row[MODES.index(mode)] = content, 1.0, responsiveness if streaming else 0.0, float(streaming)
        return row.reshape(self.width)

    def score(self, totals: Array) -> Array:
        """Scores ``(...)`` of totals ``(..., 16)``.

        A mode without items drops out; unless single-turn items have zeros, one without streaming items counts its
        content alone. NaN without any item.
        """
        totals = np.asarray(totals, dtype=np.float64)
        sums = totals.reshape(*totals.shape[:-1], len(MODES), 4)
        items = sums[..., 1]
        timed = items if self._zeros else sums[..., 3]
        content, responsiveness = means(sums[..., 0], items), means(sums[..., 2], timed)
        weighed = _STREAMING & ~np.isnan(responsiveness)
        scores = np.where(weighed, overall(content, responsiveness), content)
        return means(sum_in_order(np.where(items > 0, items * scores, 0.0)), sum_in_order(items))
