"""Holm's correction of several tests."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values: rejecting those of at most α keeps the chance of any false rejection in
    the table at most α.

    In ascending order, the i-th of m (from 0) is multiplied by ``m - i``, and made at least as
    large as those before it and at most 1 (Holm 1979). None is a test that could not be computed:
    it is kept and ignored.

    >>> holm([0.04, None, 0.01])
    [0.04, None, 0.02]
    """
    ascending = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted = list(p_values)
    largest = 0.0
    for rank, (p, place) in enumerate(ascending):
        multiplied = min(1.0, (len(ascending) - rank) * p)
        largest = max(largest, multiplied)
        adjusted[place] = largest
    return adjusted
