"""The latency of a run in words, for the page that lists all runs."""

from __future__ import annotations

from medtasks.metrics.facts import Unit
from medtasks.scoring.latency import RunLatency
from medtasks.scoring.latency_figures import RoundedEstimate

from ..rank.latency_setups import LatencySetup
from ..schema.numbers import UNIT_LABELS, interval, number


def latency_by_task(latency: RunLatency | None) -> dict[str, str]:
    """By group and task, on what a run was answered and how long it took; or why that is not known.

    >>> latency_by_task(RunLatency(processes=1, reason="no seconds: the back-end runs no model"))
    {'all tasks': 'no seconds: the back-end runs no model'}
    """
    if latency is None:
        return {}
    if latency.reason is not None:
        return {"all tasks": latency.reason}
    texts = {}
    for name, of_name in latency.entries.items():
        if of_name.median is None or of_name.p95 is None:
            texts[name] = "no seconds"
            continue
        setup = LatencySetup.of(of_name, latency.processes)
        median = figure_text(of_name.median, "duration")
        p95 = figure_text(of_name.p95, "duration")
        texts[name] = f"{setup}: median {median}, 95th percentile {p95}"
    return texts


def figure_text(figure: RoundedEstimate, unit: Unit) -> str:
    """A figure with its unit, and its interval in brackets.

    >>> figure_text(RoundedEstimate(value=0.25, interval=(0.2, 0.31)), "duration")
    '0.250 s (0.200–0.310)'
    """
    low, high = figure.interval
    ends = interval(low, high, unit)
    text = f"{number(figure.value, unit)} {UNIT_LABELS[unit]}"
    return f"{text} ({ends})" if ends else text
