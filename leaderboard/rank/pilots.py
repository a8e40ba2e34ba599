"""What pilot runs show of how scores vary between clusters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from medtasks.core.errors import UsageError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.scoring.columns import without_value
from medtasks.stats.paired import ClusteredScore, clustered_score, with_observations

from ..verify.scored_run import ScoredRun
from .compare import compare_runs
from .power import Sizes
from .shared_items import shared_rows

NO_SPREAD = 1e-12
"""Deviations up to here are rounding."""
MOST_ICC = 0.95
ROUNDS = 20
"""Of the weighted regressions, whose weights depend on their result."""


@dataclass(frozen=True)
class Contributions:
    """What each cluster adds to a score or a difference, beyond its share of the items.

    ``deviations`` are in the metric's unit and add up to about 0. ``sizes`` are the observations.
    ``right`` are the right answers of one model, None if values are not right or wrong.
    """

    deviations: Array
    sizes: Sizes
    right: Array | None = None


def paired_contributions(
    first: ScoredRun, second: ScoredRun, task: str, metric: str
) -> Contributions:
    """What each cluster adds to the difference between two runs.

    Raises:
        UsageError: the runs do not differ in any cluster.
    """
    (line,) = compare_runs(first, second, task=task, metric=metric).lines
    if line.pair is None or not line.pair.standard_error or line.detectable is None:
        why = line.reason or "the two runs do not differ in any cluster"
        raise UsageError(
            f"{task} {metric}: the pilot runs show no spread ({why}); use other runs, or one alone."
        )
    first_entry, second_entry = first.entries[task], second.entries[task]
    rows = shared_rows(first_entry, second_entry)
    first_table = first_entry.statistics(metric)[rows.here]
    second_table = second_entry.statistics(metric)[rows.there]
    in_both = np.flatnonzero(~(without_value(first_table) | without_value(second_table)))
    codes = first_entry.table.codes[rows.here[in_both]]
    score = get_metric(metric).score
    first_side, second_side = with_observations(
        clustered_score(first_table[in_both], codes, score),
        clustered_score(second_table[in_both], codes, score),
    )
    weights = (first_side.weights + second_side.weights) / 2
    # the two runs with equal sums in all clusters but one: their difference is that cluster's
    mean_total = (first_side.sums + second_side.sums).sum(axis=0) / 2
    half_differences = (first_side.sums - second_side.sums) / 2
    added = score(mean_total + half_differences) - score(mean_total - half_differences)
    return Contributions(_deviations(added, weights), _whole(weights))


def single_contributions(run: ScoredRun, task: str, metric: str) -> Contributions:
    """What each cluster adds to one run's score.

    Raises:
        UsageError: the run has no such score, or no cluster changes it.
    """
    entry = run.entries.get(task)
    if entry is None:
        raise UsageError(f"the pilot run has no {task}; it has {', '.join(sorted(run.entries))}.")
    if metric not in entry.scores.metrics:
        metrics = ", ".join(entry.scores.metrics)
        raise UsageError(f"the pilot run has no {metric}; it has {metrics}.")
    table = entry.statistics(metric)
    rows = np.flatnonzero(~without_value(table))
    score = clustered_score(table[rows], entry.table.codes[rows], get_metric(metric).score)
    count = len(score.sums)
    if count < 2 or not np.isfinite(score.without).all():
        raise UsageError(
            f"{task} {metric}: the pilot run has values in {count} clusters, expected at least 2."
        )
    deviations = _left_out(score)
    if np.abs(deviations).max() < NO_SPREAD:
        raise UsageError(
            f"{task} {metric}: the pilot run shows no spread (no cluster changes the score); "
            "use another."
        )
    right = score.sums[:, 0] if _are_verdicts(metric, table[rows]) else None
    return Contributions(deviations, _whole(score.weights), right)


def _are_verdicts(metric: str, values: Array) -> bool:
    """Whether each answer is right or wrong."""
    if unit_of(metric) != "fraction" or values.shape[1] != 2:
        return False
    return bool(np.isin(values, (0, 1)).all())


@dataclass(frozen=True)
class VarianceComponents:
    """The variance of a cluster's sum over its m items, ``within·m + between·m²``."""

    within: float
    between: float


def variance_components(sums: Array, sizes: Sizes) -> VarianceComponents:
    """The components of the variance of clusters' sums, neither of which is below 0.

    They are from a regression of the squared sums, weighted by their precision, so that large
    clusters do not decide alone. Clusters of one size cannot tell the two apart; then they have a
    correlation of 0.1.
    """
    sizes = sizes.astype(np.float64)
    squares = sums**2 * len(sums) / (len(sums) - 1)
    within = float(squares.sum() / sizes.sum())
    between = 0.0
    if len(np.unique(sizes)) == 1:
        between = within / (9 + float(sizes[0]))
        return VarianceComponents(9 * between, between)
    design = np.column_stack([sizes, sizes**2])
    for _ in range(ROUNDS):
        variances = np.maximum(within * sizes + between * sizes**2, 1e-300)
        weights = 1 / variances**2
        normal_matrix = design.T @ (design * weights[:, None])
        solution = np.linalg.lstsq(normal_matrix, design.T @ (squares * weights), rcond=None)[0]
        within, between = (float(component) for component in solution)
        if between < 0:
            between = 0.0
            within = float((weights * squares * sizes).sum() / (weights * sizes**2).sum())
        elif within < 0:
            within = 0.0
            between = float((weights * squares * sizes**2).sum() / (weights * sizes**4).sum())
    return VarianceComponents(within, between)


def intraclass_correlation(right: Array, sizes: Sizes) -> float:
    """The correlation of two answers in one cluster, from 0 to `MOST_ICC`.

    The moment estimator from the squared deviations of the clusters' right answers, whose
    expectation is ``p (1 - p) m (1 + (m - 1) icc)``, weighted by their precision (Donner 1986
    reviews the estimators).
    """
    sizes = sizes.astype(np.float64)
    share = float(right.sum() / sizes.sum())
    variance = share * (1 - share)
    pairs = sizes * (sizes - 1)
    squares = (right - share * sizes) ** 2 * len(sizes) / (len(sizes) - 1)
    icc = 0.1
    if not pairs.any() or not variance:
        return 0.0
    for _ in range(ROUNDS):
        weights = pairs / (sizes * (1 + (sizes - 1) * icc)) ** 2
        excess = float((weights * (squares - variance * sizes)).sum())
        icc = min(max(excess / float((weights * variance * pairs).sum()), 0.0), MOST_ICC)
    return icc


def pilot_margin(residuals: Array) -> float:
    """The factor by which a difference has to be larger because the pilot's spread is an estimate.

    At the difference that the true spread needs for a power of 0.8, the power is a concave function
    of the spread, so with an estimate it is 0.8 less ``0.92 cv²`` on average (the second term of
    its Taylor series); ``1 + 1.17 cv²`` times the difference makes up for it. ``cv²`` is the
    squared relative error of a standard deviation, a quarter of that of the variance. Both are
    estimated from the standardized ``residuals``.
    """
    squares = residuals**2
    squared_error_of_variance = float((squares**2).sum() / squares.sum() ** 2) - 1 / len(squares)
    squared_error_of_deviation = squared_error_of_variance / 4
    return 1 + 1.17 * squared_error_of_deviation


def _left_out(score: ClusteredScore) -> Array:
    """How much each cluster adds, from the scores without it (the jackknife)."""
    added = (score.value - score.without) * (1 - score.weights / score.weights.sum())
    return _deviations(added, score.weights)


def _deviations(added: Array, weights: Array) -> Array:
    deviations: Array = added - weights / weights.sum() * added.sum()
    return deviations


def _whole(weights: Array) -> Sizes:
    return np.maximum(1, np.rint(weights)).astype(np.int64)
