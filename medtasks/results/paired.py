"""Two ways of answering the same questions, compared question by question: a prompt against another, a track against
another, a stage more against none, a run against another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from pydantic import BaseModel, ConfigDict

from medtasks.benchmarks.base import Benchmark, Item
from medtasks.errors import MedtasksError
from medtasks.metrics import get_metric
from medtasks.metrics.base import Array
from medtasks.results.items import by_name, joined_items, part_of, statistics_of, without_value
from medtasks.results.samples import Sample
from medtasks.stats import PairedDifference, clustered_score, few_clusters, paired_difference

__all__ = ["Paired", "PairedScore", "compare_samples", "compare_statistics"]


class PairedScore(BaseModel):
    """One metric of two runs over the ``items`` of which both have a value.

    ``difference`` is ``first`` - ``second``, in the metric's unit, ``interval`` its 95 % interval, ``p_value`` that of
    the cluster sign-flip test (`medtasks.stats.paired_difference`). Where there are none, ``reason`` says why;
    ``warning`` tells of too few clusters.
    """

    model_config = ConfigDict(frozen=True)

    first: float
    second: float
    difference: float
    interval: tuple[float, float] | None
    p_value: float | None
    items: int
    clusters: int
    reason: str | None = None
    warning: str | None = None


class Paired(BaseModel):
    """The comparison of two runs: over which items, by metric, and within each breakdown's groups."""

    model_config = ConfigDict(frozen=True)

    first: str
    second: str
    items: int
    unpaired: int
    metrics: dict[str, PairedScore]
    breakdowns: dict[str, dict[str, Paired]] = {}


Pairs = Sequence[tuple[Item, Item]]


def compare_samples(
    first: tuple[str, Sequence[Sample]],
    second: tuple[str, Sequence[Sample]],
    benchmark: Benchmark,
    breakdowns: Sequence[str] = (),
    pooled: Sequence[str] = (),
) -> Paired:
    """Compare two (name, samples), joined item by item; ``unpaired`` counts the items that only one of them has.

    A metric is compared over the items of which both have a value of it; one without any is left out.

    Raises:
        MedtasksError: no item is in both.
    """
    ours, theirs = (by_name(joined_items(samples, benchmark, pooled).items) for _, samples in (first, second))
    shared = sorted(ours.keys() & theirs.keys())
    if not shared:
        raise MedtasksError(f"{first[0]} and {second[0]} share no item, so they cannot be compared.")
    pairs = [(ours[name], theirs[name]) for name in shared]
    groups = {name: _groups(pairs, benchmark, name) for name in breakdowns}
    names = (first[0], second[0])
    return _compare(names, pairs, len(ours.keys() ^ theirs.keys())).model_copy(
        update={
            "breakdowns": {
                name: {key: _compare(names, members, 0) for key, members in sorted(parts.items())}
                for name, parts in groups.items()
            }
        }
    )


def _groups(pairs: Pairs, benchmark: Benchmark, name: str) -> Mapping[str, Pairs]:
    groups: dict[str, list[tuple[Item, Item]]] = {}
    for one, other in pairs:
        for key in benchmark.breakdowns[name](one.view):
            pair = (part_of(one, key), part_of(other, key)) if name == benchmark.parts else (one, other)
            groups.setdefault(key, []).append(pair)
    return groups


def _compare(names: tuple[str, str], pairs: Pairs, unpaired: int) -> Paired:
    ours, theirs = zip(*pairs, strict=True)
    clusters = [one.cluster for one in ours]
    found = {}
    for metric in dict.fromkeys(name for one in ours for name in one.values):
        tables = statistics_of(metric, ours), statistics_of(metric, theirs)
        both = np.flatnonzero(~(without_value(tables[0]) | without_value(tables[1])))
        if len(both):
            compared = compare_statistics(
                metric, tables[0][both], tables[1][both], [clusters[row] for row in both.tolist()]
            )
            found[metric] = _score(compared, len(both))
    return Paired(first=names[0], second=names[1], items=len(pairs), unpaired=unpaired, metrics=found)


def compare_statistics(metric: str, first: Array, second: Array, clusters: Sequence[str]) -> PairedDifference:
    """The difference of two models' scores by ``metric``: statistics ``(items, width)`` of the same items."""
    score = get_metric(metric).score
    return paired_difference(clustered_score(first, clusters, score), clustered_score(second, clusters, score))


def _score(found: PairedDifference, items: int) -> PairedScore:
    return PairedScore(
        first=found.first,
        second=found.second,
        difference=found.difference,
        interval=None if found.low is None or found.high is None else (found.low, found.high),
        p_value=found.p_value,
        items=items,
        clusters=found.clusters,
        reason=found.reason,
        warning=few_clusters(found.clusters),
    )
