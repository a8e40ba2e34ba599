"""The differences between models that a benchmark, or a subset of it, can show."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.benchmark import Document
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.catalog.subset import Subset
from medtasks.core.errors import UsageError
from medtasks.metrics.registry import get_metric
from medtasks.runs.table import without_value
from medtasks.stats.paired import clustered_score
from medtasks.stats.student import detectable_difference

from ..board.columns import unit_of
from ..board.reference import load_reference, place_of
from ..verify.scored_run import ScoredRun
from .compare import compare_runs

MOST_CLUSTERS = 10**6
ICC = 0.1
"""Assumed correlation of two answers in one cluster, where no pilot run shows it."""


@dataclass(frozen=True)
class Spread:
    """The standard error of the difference between two models' scores over ``clusters`` clusters.

    ``basis`` says in a sentence where it is from.
    """

    error: float
    clusters: int
    basis: str

    def detectable(self, clusters: int) -> float | None:
        """The minimum detectable difference (80 % power at level 0.05) with so many clusters; None if there is none.

        The standard error is proportional to ``1 / sqrt(clusters)``.
        """
        return detectable_difference(self.error * math.sqrt(self.clusters / clusters), clusters)

    def needed(self, difference: float) -> int | None:
        """The smallest number of clusters with which ``difference`` is detected; None above a million."""
        low, high = 2, MOST_CLUSTERS
        while low < high:
            middle = (low + high) // 2
            found = self.detectable(middle)
            low, high = (low, middle) if found is not None and found <= difference else (middle + 1, high)
        return low if low < MOST_CLUSTERS else None


def default_metric(task: str) -> str:
    """The first headline score of the benchmark that the task has, else the task's first metric."""
    spec = load_spec(task)
    layout = all_layouts().get(spec.metadata.benchmark)
    tables = () if layout is None else layout.tables
    columns = [*(layout.headline if layout else ()), *(column for table in tables for column in table.columns)]
    metrics = [*spec.scores, *(one for leaf in leaf_tasks(task) for one in load_spec(leaf).scores)]
    return next(iter((*(column.metric for column in columns if column.task == task), *metrics)))


def pilot_spread(task: str, metric: str, first: ScoredRun, second: ScoredRun | None = None) -> Spread:
    """The spread in one or two pilot runs.

    With two, it is that of their paired difference. With one, that of its score times ``sqrt(2)``: the other model is
    taken to vary as much, independently; two models' answers are usually correlated, so this is an upper bound.

    Raises:
        UsageError: a run lacks task or metric, too few clusters have a value, or all have the same.
    """
    if second is not None:
        (line,) = compare_runs(first, second, task=task, metric=metric).lines
        if line.pair is None or not line.pair.standard_error or line.detectable is None:
            why = line.reason or "the two runs do not differ in any cluster"
            raise UsageError(f"{task} {metric}: the pilot runs show no spread ({why}); use other runs, or one alone.")
        return Spread(line.pair.standard_error, line.pair.clusters, "paired difference of the two pilot runs")
    entry = first.entries.get(task)
    if entry is None or metric not in entry.statistics:
        known = ", ".join(sorted(first.entries)) if entry is None else ", ".join(entry.statistics)
        raise UsageError(f"the pilot run has no {task if entry is None else metric}; it has {known}.")
    rows = np.flatnonzero(~without_value(entry.statistics[metric]))
    clusters = [entry.clusters[row] for row in rows.tolist()]
    score = clustered_score(entry.statistics[metric][rows], clusters, get_metric(metric).score)
    count = len(score.sums)
    if count < 2 or not np.isfinite(score.without).all():
        raise UsageError(f"{task} {metric}: the pilot run has values in {count} clusters, expected at least 2.")
    error = math.sqrt((count - 1) / count * float(((score.without - score.value) ** 2).sum()))
    if error < 1e-12:  # rounding
        raise UsageError(f"{task} {metric}: the pilot run shows no spread (no cluster changes the score); use another.")
    basis = "one pilot run; the other model is taken to vary as much, independently (an upper bound)"
    return Spread(math.sqrt(2) * error, count, basis)


def assumed_spread(
    task: str, metric: str, documents: Sequence[Document], score: float | None = None, icc: float = ICC
) -> Spread:
    """The spread of right and wrong answers at accuracy ``score``, without a pilot run.

    The variance of a mean is ``p (1 - p) / n``, times the design effect ``1 + (m - 1) icc`` (Kish 1965) with m items
    per cluster; that of the difference twice as much, as if the models were independent. ``score`` is by default the
    median of the published ones.

    Raises:
        UsageError: the metric is not a mean of 0 to 1, nothing is published and no score is given, or the score leaves
            no spread.
    """
    if unit_of(metric) != "fraction" or get_metric(metric).width != 2:
        raise UsageError(f"{metric} is not a share of right answers; give a pilot run of {task} (--pilot DIR).")
    basis = "the score given"
    if score is None:
        published = _published(task, metric)
        if not published:
            raise UsageError(f"nothing is published for {metric} of {task}; give --score or a pilot run (--pilot DIR).")
        score, basis = median(published), f"the median of {len(published)} published scores ({median(published):.3f})"
    if not 0 < score < 1:
        raise UsageError(
            f"--score {score:g}: models that are always right or wrong do not differ; give one in between."
        )
    clusters = len({one["cluster"] for one in documents})
    items = len({one.get("item_id", one["sample_id"]) for one in documents})
    error = math.sqrt(2 * score * (1 - score) / items * (1 + (items / clusters - 1) * icc))
    return Spread(error, clusters, f"{basis}, independent models, correlation {icc:g} within clusters")


def _published(task: str, metric: str) -> list[float]:
    benchmark = load_spec(task).benchmark
    rows = () if benchmark.figures is None else load_reference(benchmark.name).rows
    cells = [cell for row in rows for cell in row.cells]
    return [cell.value for cell in cells if place_of(cell) == (task, metric, None, None) and cell.value is not None]


@dataclass(frozen=True)
class Size:
    """A subset with its clusters and documents, and the minimum detectable difference; None if there is none."""

    share: float
    clusters: int
    documents: int
    detectable: float | None


def sizes(tasks: Sequence[Sequence[Document]], spread: Spread, shares: Sequence[float]) -> list[Size]:
    """Subsets (seed 0) of the documents of some tasks by share; 1 is all documents."""
    found = []
    for share in shares:
        parts = tasks if share >= 1 else [Subset(share, 0).of(documents) for documents in tasks]
        chosen = [document for documents in parts for document in documents]
        clusters = len({one["cluster"] for one in chosen})
        found.append(Size(share, clusters, len(chosen), spread.detectable(clusters)))
    return found
