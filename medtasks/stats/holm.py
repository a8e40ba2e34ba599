"""Holm's correction for the several comparisons of one table."""

from __future__ import annotations

import math
from collections.abc import Sequence

from medtasks.errors import UsageError


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjusted p-values: rejecting those of at most α keeps the chance of any false rejection in the table at most α.

    In ascending order, the i-th of m (from 0) is multiplied by ``m - i``, and made at least as large as those before it
    and at most 1 (Holm 1979); tests may depend on each other. None and NaN are tests that could not be computed: they
    are kept and ignored.

    Raises:
        UsageError: a p-value is not between 0 and 1.

    >>> holm([0.01, None, 0.04, 0.03])
    [0.03, None, 0.06, 0.06]
    """
    made = []
    for place, value in enumerate(p_values):
        if value is None or math.isnan(value):
            continue
        if not 0 <= value <= 1:
            raise UsageError(f"p-value {place + 1} is {value}, expected 0 to 1, None or NaN")
        made.append(place)
    adjusted = list(p_values)
    largest = 0.0
    for rank, place in enumerate(sorted(made, key=lambda place: (p_values[place], place))):
        value = p_values[place]
        assert value is not None
        largest = max(largest, min(1.0, (len(made) - rank) * value))
        adjusted[place] = largest
    return adjusted
