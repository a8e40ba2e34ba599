"""The worst and best statistics of a rubric's metrics that the verdicts on a response allow."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, Limits
from medtasks.scoring.panels import bounds, combine

_SUMS_OVER_ASPECTS = frozenset({"aspects", "occurrences"})
"""Values of a rubric's metrics that are sums over the aspects of a sample."""


class MetricLimits(NamedTuple):
    """The worst and best statistics of a metric, and those of its parts."""

    whole: Limits
    parts: dict[str, Limits]


ADDS_NOTHING = MetricLimits(((0.0, 0.0), (0.0, 0.0)), {})
"""The limits of a response about which judges are not asked."""


class _TotalLimits(NamedTuple):
    """The lowest and the highest values possible, by aspect and by total of the rubric."""

    lowest: Mapping[str, float]
    highest: Mapping[str, float]


def has_sums_over_aspects(rubric: Rubric) -> bool:
    """Whether a metric of the rubric depends on the number of a document's aspects."""
    return not _SUMS_OVER_ASPECTS.isdisjoint(rubric.metrics.values())


def response_limits(
    rubric: Rubric,
    document: Mapping[str, Any],
    facts: RubricFacts | None,
    response: JudgedResponse | None,
) -> dict[str, MetricLimits]:
    """The worst and best statistics that the verdicts on one response allow, by metric.

    Without facts or response there are no verdicts, and every score is possible.
    """
    if response is None or facts is None:
        totals = _TotalLimits(defaultdict(float), defaultdict(lambda: rubric.best))
    else:
        totals = _totals_left_open(rubric, document, facts, response)
    return _limits_by_metric(rubric, document, totals)


def limits_of_scores(
    rubric: Rubric, document: Mapping[str, Any], scores: Mapping[str, float]
) -> dict[str, MetricLimits]:
    """The worst and best statistics by metric once these ``scores`` of some aspects, or of all, are
    known.
    """
    lowest, highest = bounds(rubric, document, scores)
    return _limits_by_metric(rubric, document, _TotalLimits(lowest, highest))


def _limits_by_metric(
    rubric: Rubric, document: Mapping[str, Any], totals: _TotalLimits
) -> dict[str, MetricLimits]:
    """The worst and best statistics by metric with these limits of the totals."""
    limits: dict[str, MetricLimits] = {}
    for metric, value in rubric.metrics.items():
        if value in _SUMS_OVER_ASPECTS:
            times = _times_by_aspect(rubric, document, count_occurrences=value == "occurrences")
            limits[metric] = _limits_of_sum(times, totals)
        else:
            lowest, highest = totals.lowest[value], totals.highest[value]
            limits[metric] = MetricLimits(((lowest, 1.0), (highest, 1.0)), {})
    return limits


def _totals_left_open(
    rubric: Rubric, document: Mapping[str, Any], facts: RubricFacts, response: JudgedResponse
) -> _TotalLimits:
    """The totals that are still possible after the verdicts of the whole panel on a response."""
    scores_by_judge: dict[str, dict[str, int] | None] = {}
    for judge in facts.judges:
        verdict = response.judges.get(judge)
        scores_by_judge[judge] = None if verdict is None else verdict.scores
    decided, _ = combine(scores_by_judge, aspects_of(rubric, document), facts.combine)
    lowest, highest = bounds(rubric, document, decided)
    return _TotalLimits(lowest, highest)


def _times_by_aspect(
    rubric: Rubric, document: Mapping[str, Any], *, count_occurrences: bool
) -> dict[str, int]:
    """How many times each aspect counts: once, or as often as the document names it."""
    names = [aspect.name for aspect in aspects_of(rubric, document)]
    times = Counter(names)
    if count_occurrences and rubric.aspects_from is not None:
        times = Counter(document[rubric.aspects_from])
    return {name: times[name] for name in names}


def _limits_of_sum(times: Mapping[str, int], totals: _TotalLimits) -> MetricLimits:
    """The limits ``(sum of values, aspects)`` of a metric whose parts are the aspects."""
    parts: dict[str, Limits] = {}
    for name, count in times.items():
        lowest = (count * totals.lowest[name], float(count))
        highest = (count * totals.highest[name], float(count))
        parts[name] = (lowest, highest)
    return MetricLimits(sum_of_limits([*parts.values()]), parts)


def sum_of_limits(limits: Sequence[Limits]) -> Limits:
    """The worst statistics summed, and the best ones summed."""
    if len(limits) == 1:
        return limits[0]
    lowest, highest = zip(*limits, strict=True)
    return _column_sums(lowest), _column_sums(highest)


def _column_sums(rows: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    """Exactly rounded sums, which do not depend on the order of the rows."""
    return tuple(fsum(column) for column in zip(*rows, strict=True))
