"""The overall score of MedStreamBench's table 4, from printed means: written from the paper,
without our metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping


def table4_overall(
    means: Mapping[str, tuple[float, float | None]], items: Mapping[str, int]
) -> float:
    """Per mode its mean content and responsiveness (None: no streaming items), weighted by its
    number of items.
    """
    counted = {mode: number for mode, number in items.items() if number}
    if not counted:
        return math.nan
    overalls = {
        mode: mean if timed is None else 0.7 * mean + 0.3 * timed
        for mode, (mean, timed) in means.items()
    }
    return math.fsum(number * overalls[mode] for mode, number in counted.items()) / sum(
        counted.values()
    )
