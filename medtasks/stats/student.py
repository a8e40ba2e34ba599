"""Student's t: the spread of a few repeated runs, and the minimum detectable difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from medtasks.core.errors import UsageError
from medtasks.stats.bootstrap import TAILS

LEVEL, POWER = 0.05, 0.8


def student_quantile(chance: float, freedom: int) -> float:
    """The quantile of Student's t with ``freedom`` degrees of freedom.

    >>> round(student_quantile(0.975, 3), 3)
    3.182
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, chance))


def student_interval(values: Sequence[float]) -> dict[str, Any]:
    """Mean, sample standard deviation, and the interval of the mean by Student's t with n - 1 degrees of freedom.

    Raises:
        UsageError: there are fewer than two values.

    >>> [round(number, 4) for number in student_interval([1.0, 2.0, 3.0])["interval"]]
    [-0.4841, 4.4841]
    """
    count = len(values)
    if count < 2:
        raise UsageError(f"a spread needs at least 2 runs, found {count}")
    mean = math.fsum(values) / count
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    reach = student_quantile(TAILS[1], count - 1) * deviation / math.sqrt(count)
    return {"mean": mean, "deviation": deviation, "interval": (mean - reach, mean + reach)}


def detectable_difference(standard_error: float, clusters: int) -> float | None:
    """The minimum detectable difference: the smallest true one found at `LEVEL` with probability `POWER`.

    ``(t[1 - level/2] + t[power]) · standard_error`` with one fewer degrees of freedom than clusters (Bloom 1995), in
    the unit of the standard error: 3.26 standard errors with 8 clusters, 2.80 with very many. The actual power of the
    sign-flip test at that difference is 0.76 to 0.81 from 7 clusters on and 0.63 with 6 (docs/statistics.md). With the
    standard error of a difference (`medtasks.stats.paired`) it is valid for these two models, clusters and
    samples, without Holm's correction.

    Returns:
        None if no difference is significant at that level, however large: the smallest p-value, ``2^(1 - clusters)``,
        is above it.

    >>> round(detectable_difference(1.0, 8), 4)
    3.2607
    """
    if clusters < 2 or math.log2(LEVEL) < 1 - clusters:
        return None
    return sum(student_quantile(chance, clusters - 1) for chance in (1 - LEVEL / 2, POWER)) * standard_error
