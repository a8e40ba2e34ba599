"""Student's t, and the spread of a few repeated runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from medtasks.errors import UsageError


def student_quantile(chance: float, freedom: int) -> float:
    """The value that Student's t of so many degrees of freedom stays below with this chance.

    >>> round(student_quantile(0.975, 3), 3)
    3.182
    """
    from scipy.special import stdtrit

    return float(stdtrit(freedom, chance))


def student_interval(values: Sequence[float], confidence: float = 0.95) -> dict[str, Any]:
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
    reach = student_quantile((1 + confidence) / 2, count - 1) * deviation / math.sqrt(count)
    return {"mean": mean, "deviation": deviation, "interval": (mean - reach, mean + reach)}
