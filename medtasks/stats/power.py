"""What a comparison can and cannot see."""

from __future__ import annotations

import math
from statistics import NormalDist

from medtasks.errors import UsageError

__all__ = ["detectable_difference"]


def detectable_difference(standard_error: float, *, level: float = 0.05, power: float = 0.8) -> float:
    """The smallest true difference that a two-sided test at ``level`` finds with chance ``power``.

    ``(z[1 - level/2] + z[power]) · standard_error``, 2.80 standard errors by default: the normal approximation
    (Cohen 1988, section 2.2), in the unit of the standard error. With the standard error of a paired cluster
    bootstrap (`medtasks.stats.paired`) it holds for these two models, clusters and samples; a comparison after
    Holm's correction sees less (give it ``level`` divided by the number of comparisons for its first step).

    Raises:
        UsageError: the standard error is negative or not finite, or level and power do not satisfy
            0 < level < power < 1.

    >>> round(detectable_difference(1.0), 4)
    2.8016
    """
    if not (math.isfinite(standard_error) and standard_error >= 0):
        raise UsageError(f"standard_error is {standard_error}, expected a finite number of 0 or more")
    if not 0 < level < power < 1:
        raise UsageError(f"level is {level} and power {power}, expected 0 < level < power < 1")
    normal = NormalDist()
    return (normal.inv_cdf(1 - level / 2) + normal.inv_cdf(power)) * standard_error
