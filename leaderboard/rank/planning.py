"""The differences between models that a benchmark, or a subset of it, can show."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.benchmark import Document
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import NoRowsError, UsageError
from medtasks.core.settings import Subset
from medtasks.core.text import TextTable
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.stats.paired import LEAST_CLUSTERS, LEVEL, POWER, student_quantile

from ..schema.board import Unit
from ..schema.numbers import UNITS, number
from ..schema.reference import load_reference, place_of
from ..verify.scored_run import ScoredRun
from .pilots import (
    Contributions,
    intraclass_correlation,
    paired_contributions,
    pilot_margin,
    single_contributions,
    variance_components,
)
from .power import (
    STUDIES,
    Measured,
    Population,
    RightOrWrong,
    Sizes,
    formula_difference,
    simulated_difference,
)

MOST_CLUSTERS = 10**6
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
ICC = 0.1
"""Assumed correlation of two answers in one cluster, where no pilot run shows it."""


@dataclass(frozen=True)
class Basis:
    """What a plan assumes of two models.

    ``words`` says in a sentence where it is from; differences have to be larger by the factor
    ``margin``, because a pilot's spread is an estimate.
    """

    population: Population
    words: str
    margin: float = 1.0

    def detectable(self, sizes: Sizes, studies: int = STUDIES) -> float | None:
        """The minimum detectable difference (80 % power at level 0.05) over clusters of these
        sizes, from so many simulated studies at each difference tried.
        """
        difference = simulated_difference(self.population, sizes, studies=studies)
        return (
            None if difference is None else min(self.margin * difference, self.population.largest)
        )


@dataclass(frozen=True)
class Size:
    """A subset (seed 0) by its share of the clusters; ``detectable`` is the minimum difference,
    None without any.
    """

    share: float
    clusters: int
    documents: int
    detectable: float | None


@dataclass(frozen=True)
class Plan:
    """The minimum detectable differences of subsets of a task or group, in ``unit``. ``basis`` says
    where the spread is from, ``left_out`` which tasks have no prepared rows. ``needed`` is the
    number of ``clusters`` that detects ``difference``, of those in all data; None above a million,
    or if none was asked for.
    """

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
            least = (
                "none is significant"
                if one.detectable is None
                else number(one.detectable, self.unit)
            )
            command = "" if one.share == 1 else f"MEDTASKS_SUBSET={one.share:g}@0"
            rows.append(
                (f"{one.share:g}", f"{one.clusters:,}", f"{one.documents:,}", least, command)
            )
        title = f"{self.task}, {self.metric} ({UNITS[self.unit]}): minimum detectable difference of two models"
        notes = [
            f"  Basis: {self.basis}.",
            "  Runs of a subset are comparable with runs of the same subset only, and are marked as such.",
        ]
        if self.difference is not None:
            needed = "more than a million" if self.needed is None else f"{self.needed:,}"
            enough = (
                ""
                if (self.needed or 0) <= self.clusters
                else f", and the data have {self.clusters:,}"
            )
            notes.append(
                f"  A difference of {self.difference:g} needs about {needed} clusters{enough}."
            )
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
        pilots: one run or two (`pilot_basis`); without any the spread is assumed (`assumed_basis`).
        score: expected accuracy, without a pilot.
        icc: correlation of answers in one cluster, without a pilot.
        difference: also find the number of clusters that detects it, in points or the metric's
        unit.
        shares: of the clusters, above 0 and up to 1.

    Raises:
        UsageError: an argument is wrong, the data have no documents of the task, or the spread is
        unknown.
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
    basis = (
        pilot_basis(task, metric, *pilots) if pilots else assumed_basis(task, metric, score, icc)
    )
    unit = unit_of(metric)
    subsets = []
    for share in shares:
        chosen = (
            documents
            if share == 1
            else [one for part in parts for one in Subset(share, 0).of(part)]
        )
        sizes = cluster_sizes(chosen)
        subsets.append(Size(share, len(sizes), len(chosen), basis.detectable(sizes)))
    sizes = cluster_sizes(documents)
    needed = None
    if difference is not None:
        of_all = next((size.detectable for size in subsets if size.share == 1), None)
        of_all = of_all or basis.detectable(sizes)
        needed = clusters_needed(
            basis.population, sizes, of_all, difference / (100 if unit == "fraction" else 1)
        )
    return Plan(
        task,
        metric,
        unit,
        basis.words,
        tuple(subsets),
        tuple(left_out),
        len(sizes),
        difference,
        needed,
    )


def cluster_sizes(documents: Iterable[Document]) -> Sizes:
    """Items by cluster, in the order of the clusters' names."""
    items = {
        (document["cluster"], document.get("item_id", document["sample_id"]))
        for document in documents
    }
    counts = Counter(cluster for cluster, _ in items)
    return np.array([counts[cluster] for cluster in sorted(counts)], dtype=np.int64)


def clusters_needed(
    population: Population, sizes: Sizes, detectable: float | None, difference: float
) -> int | None:
    """About the smallest number of clusters like these with which ``difference`` is found; None
    above a million.

    The formula is corrected by what the simulation over all clusters says (``detectable``); the
    correction vanishes as clusters become more.
    """
    count = len(sizes)
    ratio = 1.0 if detectable is None else detectable / formula_difference(population, sizes)

    def is_found(clusters: int) -> bool:
        quantiles = student_quantile(1 - LEVEL / 2, clusters - 1) + student_quantile(
            POWER, clusters - 1
        )
        error = population.standard_error(sizes) * math.sqrt(count / clusters)
        least = quantiles * error * ratio ** min(1.0, count / clusters)
        return bool(least <= difference)

    numbers = range(LEAST_CLUSTERS, MOST_CLUSTERS)
    fewest = LEAST_CLUSTERS + bisect_left(numbers, True, key=is_found)
    return fewest if fewest < MOST_CLUSTERS else None


def default_metric(task: str) -> str:
    """The first headline score of the benchmark that the task has, else the task's first metric."""
    spec = load_spec(task)
    layout = all_layouts().get(spec.metadata.benchmark)
    shown = (
        []
        if layout is None
        else [*layout.headline, *(one for table in layout.tables for one in table.columns)]
    )
    metrics = [column.metric for column in shown if column.task == task]
    metrics += [*spec.scores, *(one for leaf in leaf_tasks(task) for one in load_spec(leaf).scores)]
    return metrics[0]


def pilot_basis(task: str, metric: str, first: ScoredRun, second: ScoredRun | None = None) -> Basis:
    """What one or two pilot runs show; `UsageError` if they have no spread of this score.

    With two, it is the spread of their paired difference. With one, the other model is taken to
    vary as much, independently; two models' answers are usually correlated, so this is an upper
    bound.
    """
    if second is not None:
        return basis_of_pair(paired_contributions(first, second, task, metric))
    return basis_of_score(single_contributions(first, task, metric))


def basis_of_pair(clusters: Contributions) -> Basis:
    """The spread of the difference between two pilot runs."""
    return _measured(clusters, 1, "paired difference of the two pilot runs")


def basis_of_score(clusters: Contributions) -> Basis:
    """The spread of two independent models, each as the one of a pilot run."""
    words = (
        "one pilot run; the other model is taken to vary as much, independently (an upper bound)"
    )
    if clusters.right is None:
        return _measured(clusters, 2, words)
    score = float(clusters.right.sum() / clusters.sizes.sum())
    icc = intraclass_correlation(clusters.right, clusters.sizes)
    effects = 1 + (clusters.sizes - 1) * icc
    standardized = clusters.deviations * clusters.sizes.sum() / np.sqrt(clusters.sizes * effects)
    by_clusters = 1 - float(clusters.sizes.sum()) / float((clusters.sizes * effects).sum())
    margin = (
        1 + (pilot_margin(standardized) - 1) * by_clusters**2
    )  # the variance within follows from the score
    return Basis(
        RightOrWrong(score, icc), f"{words}, correlation {icc:.2g} within clusters", margin
    )


def _measured(clusters: Contributions, models: int, words: str) -> Basis:
    """The variance of the clusters' contributions by their size, times the number of independent
    ``models``.
    """
    sums = clusters.deviations * clusters.sizes.sum()
    within, between = variance_components(sums, clusters.sizes)
    spread = np.sqrt(within * clusters.sizes + between * clusters.sizes.astype(np.float64) ** 2)
    residuals = sums / spread
    residuals /= math.sqrt(float((residuals**2).mean()))
    population = Measured(within * models, between * models, (residuals,) * models)
    return Basis(population, words, pilot_margin(residuals))


def assumed_basis(task: str, metric: str, score: float | None = None, icc: float = ICC) -> Basis:
    """Right and wrong answers of independent models at accuracy ``score``, by default the median of
    the published ones, without a pilot run; `UsageError` if there is no such score or spread.
    """
    if unit_of(metric) != "fraction" or get_metric(metric).width != 2:
        raise UsageError(
            f"{metric} is not a share of right answers; give a pilot run of {task} (--pilot DIR)."
        )
    basis = "the score given"
    if score is None:
        figures = load_reference(load_spec(task).benchmark.name).figures
        alike = [one.value for one in figures if place_of(one) == (task, metric, None, None)]
        published = [value for value in alike if value is not None]
        if not published:
            raise UsageError(
                f"nothing is published for {metric} of {task}; give --score or a pilot run (--pilot DIR)."
            )
        score, basis = (
            median(published),
            f"the median of {len(published)} published scores ({median(published):.3f})",
        )
    if not 0 < score < 1:
        raise UsageError(
            f"--score {score:g}: models that are always right or wrong do not differ; give one in between."
        )
    return Basis(
        RightOrWrong(score, icc),
        f"{basis}, independent models, correlation {icc:g} within clusters",
    )
