"""MedStreamBench: late alerts, and the delay of those that are no false alarms.

Both come from the scores of streaming items.
"""

from __future__ import annotations

from collections.abc import Iterator

from medtasks.benchmarks.error_kinds import Case, Errors
from medtasks.catalog.items import Item, Value
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.item_metrics import ErrorRate, item_mean
from medtasks.metrics.streaming import DUE, EXPECTED_TIME, TOLERANCE

ALERT_DELAY = item_mean(
    "alert_delay",
    {
        "unit": "s",
        "missed": "left-out",
        "false_alarms": "left-out",
        "default_expected": EXPECTED_TIME,
    },
    higher_is_better=False,
    timing=TOLERANCE,
    facts=MetricFacts(unit="seconds", headline=NOT_IN_SUMMARY, is_signed=True),
)
"""Mean delay in seconds of the first positive response, over items where it is no false alarm."""


def alert_delay(item: Item) -> Value | None:
    """The item's delay; None if it is not a stream.

    If its first positive response was a false alarm, the metric does not apply.
    """
    delay = item.values.get("signed_delay")
    if delay is None or not _known_score(item, "false_alarm_rate"):
        return delay
    return Value(statistics=(0.0, 0.0))


def _known_score(item: Item, metric: str) -> float | None:
    """The item's value of a metric, if it is known and applies."""
    if metric not in item.values:
        return None
    statistics = item.values[metric].statistics
    if statistics is None or not statistics[1]:
        return None
    return statistics[0]


def cases(item: Item) -> Iterator[Case]:
    """Whether the response was late, of an item in which one was due.

    A late response is neither too early, nor missing, nor in time.
    """
    missed = item.values.get("miss_rate")
    if missed is None or (missed.statistics is not None and not missed.statistics[1]):
        return
    in_time = _known_score(item, "responsiveness") == 1
    early_or_missing = _known_score(item, "miss_rate") or _known_score(item, "false_alarm_rate")
    yield Case("late_rate", not in_time and not early_or_missing)


_LATE = ErrorRate(
    "late_rate",
    "Late",
    cases="a-response-was-due",
    choices=DUE,
    harms=True,
    timing=TOLERANCE,
)

ERRORS = Errors((_LATE,), cases)
