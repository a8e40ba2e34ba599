"""MedStreamBench: alerts that come late, and the delay of those that are no false alarms.

False alarms, misses and invalid responses are scores of every streaming item (`medtasks.metrics.streaming`); these
follow from the same scores.
"""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.benchmarks.errors import Case, Errors
from medtasks.catalog.benchmark import Item, Value
from medtasks.metrics.item_metrics import ErrorRate, item_mean
from medtasks.metrics.streaming import DUE, EXPECTED_TIME, TOLERANCE

ALERT_DELAY = item_mean(
    "alert_delay",
    {"unit": "s", "missed": "left-out", "false_alarms": "left-out", "default_expected": EXPECTED_TIME},
    higher_is_better=False,
    timing=TOLERANCE,
)
"""Mean delay in seconds of the first positive response, over items where it is no false alarm."""


def _number(item: Item, name: str) -> float | None:
    """The item's value of a metric; None if it is unknown or does not apply."""
    row = item.values[name].statistics if name in item.values else None
    return row[0] if row is not None and row[1] else None


def cases(item: Item) -> Iterator[Case]:
    """Whether the response was late, of an item in which one was due: neither too early, nor missing, nor in time."""
    missed = item.values.get("miss_rate")
    if missed is None or (missed.statistics is not None and not missed.statistics[1]):
        return
    timely = _number(item, "responsiveness") == 1
    yield Case("late_rate", not (timely or _number(item, "miss_rate") or _number(item, "false_alarm_rate")))


def alert_delay(item: Item) -> Value | None:
    """The item's delay; none if it is not a stream, nothing if its first positive response was a false alarm."""
    delay = item.values.get("signed_delay")
    if delay is None or not _number(item, "false_alarm_rate"):
        return delay
    return Value(statistics=(0.0, 0.0))


ERRORS = Errors(
    (ErrorRate("late_rate", "Late", cases="a-response-was-due", choices=DUE, harms=True, timing=TOLERANCE),), cases
)
