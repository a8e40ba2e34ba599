"""The text metrics of many samples at once: each distinct pair is scored once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from medtasks.errors import UsageError
from medtasks.metrics.base import Array, BatchMetric
from medtasks.metrics.registry import LEXICAL, get_metric

CHUNK = 256  # pairs at a time: so few that the arrays of their n-grams stay in the processor's cache


def lexical_statistics(
    predictions: Sequence[str], references: Sequence[str], metrics: Sequence[str] = LEXICAL
) -> tuple[dict[str, Array], dict[str, str]]:
    """Sufficient statistics of every sample under every metric.

    Args:
        predictions: n texts.
        references: n texts, in the same order.
        metrics: names from ``LEXICAL``.

    Returns:
        ``{name: float64 (n, width)}`` and, for each metric that cannot be computed here, ``{name: reason}``.

    Raises:
        UsageError: the two sequences differ in length, or a name is not a lexical metric.
    """
    if len(predictions) != len(references):
        raise UsageError(
            f"found {len(predictions)} predictions and {len(references)} references, expected equal numbers"
        )
    unknown = [name for name in metrics if name not in LEXICAL]
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a lexical metric; choose from {', '.join(LEXICAL)}")
    reasons = {name: reason for name in metrics if (reason := get_metric(name).unavailable()) is not None}
    distinct: dict[tuple[str, str], int] = {}
    rows = [distinct.setdefault(pair, len(distinct)) for pair in zip(predictions, references, strict=True)]
    pairs = tuple(distinct)
    computed = {name: metric for name in metrics if name not in reasons and (metric := get_metric(name))}
    parts: dict[str, list[Array]] = {name: [np.zeros((0, metric.width))] for name, metric in computed.items()}
    for begin in range(0, len(pairs), CHUNK):
        chunk = pairs[begin : begin + CHUNK]
        for name, metric in computed.items():
            assert isinstance(metric, BatchMetric)
            parts[name].append(metric.table(chunk))
    return {name: np.concatenate(tables)[rows] for name, tables in parts.items()}, reasons
