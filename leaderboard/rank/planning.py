"""The differences between models that a benchmark, or a subset of it, can show."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.benchmark import Document
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import NoRowsError, UsageError
from medtasks.core.settings import Subset
from medtasks.core.text import TextTable
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.runs.table import without_value
from medtasks.stats.paired import clustered_score, detectable_difference

from ..board.board import Unit
from ..board.numbers import UNITS, number
from ..board.reference import load_reference, place_of
from ..verify.scored_run import ScoredRun
from .compare import compare_runs

MOST_CLUSTERS = 10**6
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
ICC = 0.1
"""Assumed correlation of two answers in one cluster, where no pilot run shows it."""


class Spread(NamedTuple):
    """The standard error of the difference between two models' scores over ``clusters`` clusters, to whose square root
    it is inversely proportional; ``basis`` says in a sentence where it is from."""

    error: float
    clusters: int
    basis: str

    def detectable(self, clusters: int) -> float | None:
        """The minimum detectable difference (80 % power at level 0.05) with so many clusters; None if there is none."""
        return detectable_difference(self.error * math.sqrt(self.clusters / clusters), clusters)

    def needed(self, difference: float) -> int | None:
        """The smallest number of clusters with which ``difference`` is detected; None above a million."""
        some = range(2, MOST_CLUSTERS)
        fewest = 2 + bisect_left(some, True, key=lambda count: (self.detectable(count) or math.inf) <= difference)
        return fewest if fewest < MOST_CLUSTERS else None


@dataclass(frozen=True)
class Size:
    """A subset (seed 0) by its share of the clusters; ``detectable`` is the minimum difference, None without any."""

    share: float
    clusters: int
    documents: int
    detectable: float | None


@dataclass(frozen=True)
class Plan:
    """The minimum detectable differences of subsets of a task or group, in ``unit``. ``basis`` says where the spread is
    from, ``left_out`` which tasks have no prepared rows. ``needed`` is the number of ``clusters`` that detects
    ``difference``, of those in all data; None above a million, or if none was asked for."""

    task: str
    metric: str
    unit: Unit
    basis: str
    subsets: tuple[Size, ...]
    left_out: tuple[str, ...]
    clusters: int
    difference: float | None = None
    needed: int | None = None

    @property
    def table(self) -> TextTable:
        """The subsets as ``medtasks plan`` prints them."""
        rows = []
        for one in self.subsets:
            least = "none is significant" if one.detectable is None else number(one.detectable, self.unit)
            command = "" if one.share == 1 else f"MEDTASKS_SUBSET={one.share:g}@0"
            rows.append((f"{one.share:g}", f"{one.clusters:,}", f"{one.documents:,}", least, command))
        title = f"{self.task}, {self.metric} ({UNITS[self.unit]}): minimum detectable difference of two models"
        notes = [
            f"  Basis: {self.basis}.",
            "  Runs of a subset are comparable with runs of the same subset only, and are marked as such.",
        ]
        if self.difference is not None:
            needed = "more than a million" if self.needed is None else f"{self.needed:,}"
            enough = "" if (self.needed or 0) <= self.clusters else f", and the data have {self.clusters:,}"
            notes.append(f"  A difference of {self.difference:g} needs about {needed} clusters{enough}.")
        columns = ("share", "clusters", "documents", "detectable", "run with")
        return TextTable(columns, rows, f"{title} (80 % power, level 0.05)", notes)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def plan_task(
    task: str,
    metric: str | None = None,
    pilots: Sequence[ScoredRun] = (),
    *,
    score: float | None = None,
    icc: float = ICC,
    difference: float | None = None,
    shares: Sequence[float] = SHARES,
) -> Plan:
    """The minimum detectable differences of subsets of a task or group.

    Args:
        task: the task or group.
        metric: by default the first headline score.
        pilots: one run or two (`pilot_spread`); without any the spread is assumed (`assumed_spread`).
        score: expected accuracy, without a pilot.
        icc: correlation of answers in one cluster, without a pilot.
        difference: also find the number of clusters that detects it, in points or the metric's unit.
        shares: of the clusters, above 0 and up to 1.

    Raises:
        UsageError: an argument is wrong, the data have no documents of the task, or the spread is unknown.
        NotPreparedError: the data are not prepared.
    """
    if len(pilots) > 2:
        raise UsageError(f"--pilot: {len(pilots)} runs, expected at most 2.")
    if wrong := [one for one in shares if not 0 < one <= 1]:
        raise UsageError(f"--share {wrong[0]:g}: expected a share above 0 and up to 1.")
    metric = metric or default_metric(task)
    parts, left_out = [], []
    for leaf in leaf_tasks(task):
        try:
            parts.append(task_documents(leaf, media=False))
        except NoRowsError as error:
            left_out.append(str(error))
    documents = [document for part in parts for document in part]
    if not documents:
        raise UsageError(f"{task}: the prepared data have no documents of its tasks.")
    spread = pilot_spread(task, metric, *pilots) if pilots else assumed_spread(task, metric, documents, score, icc)
    unit = unit_of(metric)
    needed = None if difference is None else spread.needed(difference / (100 if unit == "fraction" else 1))
    subsets = []
    for share in shares:
        chosen = documents if share == 1 else [one for part in parts for one in Subset(share, 0).of(part)]
        clusters = len({one["cluster"] for one in chosen})
        subsets.append(Size(share, clusters, len(chosen), spread.detectable(clusters)))
    every = len({one["cluster"] for one in documents})
    return Plan(task, metric, unit, spread.basis, tuple(subsets), tuple(left_out), every, difference, needed)


def default_metric(task: str) -> str:
    """The first headline score of the benchmark that the task has, else the task's first metric."""
    spec = load_spec(task)
    layout = all_layouts().get(spec.metadata.benchmark)
    shown = [] if layout is None else [*layout.headline, *(one for table in layout.tables for one in table.columns)]
    metrics = [column.metric for column in shown if column.task == task]
    metrics += [*spec.scores, *(one for leaf in leaf_tasks(task) for one in load_spec(leaf).scores)]
    return metrics[0]


def pilot_spread(task: str, metric: str, first: ScoredRun, second: ScoredRun | None = None) -> Spread:
    """The spread in one or two pilot runs; `UsageError` if they have none of this score.

    With two, it is that of their paired difference. With one, that of its score times ``sqrt(2)``: the other model is
    taken to vary as much, independently; two models' answers are usually correlated, so this is an upper bound.
    """
    if second is not None:
        (line,) = compare_runs(first, second, task=task, metric=metric).lines
        if line.pair is None or not line.pair.standard_error or line.detectable is None:
            why = line.reason or "the two runs do not differ in any cluster"
            raise UsageError(f"{task} {metric}: the pilot runs show no spread ({why}); use other runs, or one alone.")
        return Spread(line.pair.standard_error, line.pair.clusters, "paired difference of the two pilot runs")
    entry = first.entries.get(task)
    if entry is None or metric not in entry.scores.metrics:
        known = ", ".join(sorted(first.entries)) if entry is None else ", ".join(entry.scores.metrics)
        raise UsageError(f"the pilot run has no {task if entry is None else metric}; it has {known}.")
    table = entry.statistics(metric)
    rows = np.flatnonzero(~without_value(table))
    score = clustered_score(table[rows], [entry.clusters[row] for row in rows.tolist()], get_metric(metric).score)
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
    """The spread of right and wrong answers at accuracy ``score``, by default the median of the published ones, without
    a pilot run; `UsageError` if there is no such score or spread.

    The variance of a mean is ``p (1 - p) / n``, times the design effect ``1 + (m - 1) icc`` (Kish 1965) with m items
    per cluster; that of the difference twice as much, as if the models were independent.
    """
    if unit_of(metric) != "fraction" or get_metric(metric).width != 2:
        raise UsageError(f"{metric} is not a share of right answers; give a pilot run of {task} (--pilot DIR).")
    basis = "the score given"
    if score is None:
        figures = load_reference(load_spec(task).benchmark.name).figures
        alike = [one.value for one in figures if place_of(one) == (task, metric, None, None)]
        published = [value for value in alike if value is not None]
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
