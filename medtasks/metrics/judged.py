"""Scores that only a judge can give; until then their samples are pending, neither right nor wrong."""

from __future__ import annotations

from typing import NoReturn

from medtasks.errors import UsageError
from medtasks.metrics.base import MeanMetric, sign


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
