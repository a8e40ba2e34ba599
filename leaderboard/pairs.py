"""Models on the same items, two by two: differences with intervals, tests, and Holm's correction over all of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from medtasks.errors import UsageError
from medtasks.metrics import get_metric, totals
from medtasks.metrics.base import Array
from medtasks.stats import PairedDifference, holm, joint_resamples, mcnemar, paired_difference

from .board import Pair

__all__ = ["CONFIDENCE", "LEVEL", "SEED", "Compared", "Contest", "Entrant", "compare_models"]

CONFIDENCE = 0.95
SEED = 0
LEVEL = 0.05
"""Two models differ where Holm's p-value is at most this."""
VERDICTS = ("accuracy", "exact_match", "judged_strict")
"""Metrics that call an answer right or wrong."""

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Entrant:
    """One model's statistics ``(items, width)``.

    ``missing`` marks the rows that do not count: those of NaN, which have no value, and those of a mean-type metric
    that count nothing, because it does not apply to them.
    """

    model: str
    table: Array

    @property
    def missing(self) -> Mask:
        """Rows that do not count."""
        found: Mask = np.asarray(np.isnan(self.table).any(axis=1))
        return found | (self.table[:, 1] == 0) if self.table.shape[1] == 2 else found

    def without(self, missing: Mask) -> Array:
        """The table with zeros, which move no sum, in the rows left out."""
        return np.where(missing[:, None], 0.0, self.table)

    @property
    def verdicts(self) -> bool:
        """Whether every row that counts is right (1) or wrong (0), once: what McNemar's test takes."""
        rows = self.table[~self.missing]
        return rows.shape[1] == 2 and bool((rows[:, 1] == 1).all() and np.isin(rows[:, 0], (0, 1)).all())


@dataclass(frozen=True)
class Contest:
    """Several models' statistics of one metric on the same items, each of which belongs to a cluster.

    Raises:
        UsageError: statistics are not of the items, or not of the metric.
    """

    metric: str
    clusters: Sequence[str]
    entrants: Sequence[Entrant]

    def __post_init__(self) -> None:
        shape = (len(self.clusters), get_metric(self.metric).width)
        for one in self.entrants:
            if one.table.shape != shape:
                found = f"statistics of {self.metric} have shape {one.table.shape}"
                raise UsageError(f"{one.model}: {found}, expected {shape}")

    def value(self, entrant: Entrant) -> float:
        """The model's score over its own items, the same as a run's; NaN without any."""
        table = entrant.without(entrant.missing)
        return float(get_metric(self.metric).score(totals(table)))

    def counting(self) -> Contest:
        """The contest over the items that count for at least one model: no other one, nor its cluster, is drawn."""
        counts = np.zeros(len(self.clusters), dtype=bool)
        for one in self.entrants:
            counts |= ~one.missing
        rows = np.flatnonzero(counts)
        clusters = [self.clusters[row] for row in rows.tolist()]
        return Contest(self.metric, clusters, [Entrant(one.model, one.table[rows]) for one in self.entrants])

    @property
    def verdicts(self) -> bool:
        """Whether McNemar's test fits: a metric of right and wrong, and no question asked several times."""
        return self.metric in VERDICTS and all(one.verdicts for one in self.entrants)


@dataclass(frozen=True)
class Compared:
    """Scores of each entrant (in their order) in the same resamples of clusters, all pairs (the earlier entrant first),
    the scores of the two of each pair over their common items, and the standard errors of the differences."""

    resampled: Array
    pairs: tuple[Pair, ...]
    values: tuple[tuple[float, float], ...]
    errors: tuple[float | None, ...]


def compare_models(contest: Contest, *, resamples: int = 1000) -> Compared:
    """Every pair of entrants on the items of which both have a value; the others are left out of that pair alone.

    All is scored in the same resamples of whole clusters (`medtasks.stats.joint_resamples`, seed 0). Where answers are
    right or wrong, p-values are those of McNemar's test for clusters; else those of the paired cluster bootstrap under
    a normal distribution, since the smallest p-value of 1,000 resamples is too coarse for Holm's correction. The
    correction is over all pairs.
    """
    contest = contest.counting()
    score = get_metric(contest.metric).score
    entries = _Entries(contest)
    places = [(one, two) for one in range(len(contest.entrants)) for two in range(one + 1, len(contest.entrants))]
    numbers = [entries.of(*place) for place in places]
    tables = [(table, score) for table in entries.tables]
    if not tables:
        return Compared(np.zeros((0, resamples)), (), (), ())
    drawn = joint_resamples(tables, contest.clusters, resamples=resamples, seed=SEED)
    compared = [paired_difference(drawn, *number, CONFIDENCE) for number in numbers]
    exact = contest.verdicts
    pairs = [_pair(contest, entries, place, found, exact) for place, found in zip(places, compared, strict=True)]
    adjusted = holm([pair.p_value for pair in pairs])
    return Compared(
        resampled=drawn.scores[: len(contest.entrants)],
        pairs=tuple(pair.model_copy(update={"p_holm": p}) for pair, p in zip(pairs, adjusted, strict=True)),
        values=tuple((found.first, found.second) for found in compared),
        errors=tuple(found.standard_error for found in compared),
    )


class _Entries:
    """The tables to resample: every entrant's own first, then those without what only the other of a pair lacks."""

    def __init__(self, contest: Contest) -> None:
        self._entrants = contest.entrants
        self.missing = [one.missing for one in contest.entrants]
        self.tables: list[Array] = []
        self._numbers: dict[tuple[int, bytes], int] = {}
        for number, missing in enumerate(self.missing):
            self._number(number, missing)

    def of(self, first: int, second: int) -> tuple[int, int]:
        missing = self.missing[first] | self.missing[second]
        return self._number(first, missing), self._number(second, missing)

    def _number(self, entrant: int, missing: Mask) -> int:
        key = (entrant, np.packbits(missing).tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.tables)
            self.tables.append(self._entrants[entrant].without(missing))
        return self._numbers[key]


def _pair(contest: Contest, entries: _Entries, place: tuple[int, int], found: PairedDifference, exact: bool) -> Pair:
    first, second = (contest.entrants[number] for number in place)
    both = ~(entries.missing[place[0]] | entries.missing[place[1]])
    if not both.any() or not math.isfinite(found.difference):
        return Pair(
            first=first.model,
            second=second.model,
            items=0,
            difference=contest.value(first) - contest.value(second),
            low=None,
            high=None,
            p_value=None,
            p_holm=None,
            test="McNemar, clustered" if exact else "paired cluster bootstrap",
            reason="no item has a value from both; the difference is of each one's score over its own items",
        )
    pair = Pair(
        first=first.model,
        second=second.model,
        items=int(np.count_nonzero(both)),
        difference=found.difference,
        low=found.interval.low,
        high=found.interval.high,
        p_value=found.p_normal,
        p_holm=None,
        test="McNemar, clustered" if exact else "paired cluster bootstrap",
        reason=found.interval.reason,
    )
    if not exact:
        return pair
    one, two = first.table[:, 0] == 1, second.table[:, 0] == 1
    differing = np.flatnonzero(both & (one != two))  # no other item enters the test
    clusters = [contest.clusters[row] for row in differing.tolist()]
    test = mcnemar(one[differing], two[differing], clusters=clusters)
    return pair.model_copy(update={"p_value": test.p_value, "wins": test.first_only, "losses": test.second_only})
