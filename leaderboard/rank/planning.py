"""The differences between models that a benchmark, or a subset of it, can show."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.benchmark import Document
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import NoRowsError, UsageError
from medtasks.core.settings import Subset
from medtasks.core.text import TextTable
from medtasks.metrics.facts import Unit
from medtasks.metrics.registry import unit_of
from medtasks.stats.sign_flips import LEAST_CLUSTERS, LEVEL
from medtasks.stats.student import POWER, student_quantile

from ..schema.numbers import UNITS, number
from ..verify.scored_run import ScoredRun
from .plan_basis import ICC, Basis, assumed_basis, pilot_basis
from .power import Population, Sizes, formula_difference

MOST_CLUSTERS = 10**6
SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)
_SUBSET_NOTE = (
    "Runs of a subset are comparable with runs of the same subset only, and are marked as such."
)
_COLUMNS = ("share", "clusters", "documents", "detectable", "run with")


@dataclass(frozen=True)
class SpreadSource:
    """Where the spread of differences between models is from: pilot runs, or assumptions.

    ``pilots`` are one run or two (`pilot_basis`). Without any, ``score`` is the expected accuracy,
    and ``icc`` the correlation of answers in one cluster (`assumed_basis`).
    """

    pilots: Sequence[ScoredRun] = ()
    score: float | None = None
    icc: float = ICC


ASSUMED = SpreadSource()
"""No pilot run, and no expectation of the score."""


@dataclass(frozen=True)
class Size:
    """A subset (seed 0) by its share of the clusters.

    ``detectable`` is the minimum detectable difference, None without any.
    """

    share: float
    clusters: int
    documents: int
    detectable: float | None


@dataclass(frozen=True)
class Plan:
    """The minimum detectable differences of subsets of a task or group, in ``unit``.

    ``basis`` says where the spread is from, ``left_out`` which tasks have no prepared rows.
    ``needed`` is the number of ``clusters`` that detects ``difference``, of those in all data; None
    above a million, or if none was asked for.
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
        rows = [_table_row(size, self.unit) for size in self.subsets]
        score = f"{self.task}, {self.metric} ({UNITS[self.unit]})"
        title = f"{score}: minimum detectable difference of two models (80 % power, level 0.05)"
        notes = [f"  Basis: {self.basis}.", f"  {_SUBSET_NOTE}"]
        if self.difference is not None:
            notes.append(f"  {self._needed_clusters(self.difference)}")
        return TextTable(_COLUMNS, rows, title, notes)

    def _needed_clusters(self, difference: float) -> str:
        """How many clusters detect a difference, as a sentence."""
        needed = "more than a million" if self.needed is None else f"{self.needed:,}"
        sentence = f"A difference of {difference:g} needs about {needed} clusters"
        if self.needed is not None and self.needed > self.clusters:
            sentence += f", and the data have {self.clusters:,}"
        return f"{sentence}."

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _table_row(size: Size, unit: Unit) -> tuple[str, ...]:
    """The row of a subset in the table of a plan, by ``_COLUMNS``."""
    detectable = "none is significant"
    if size.detectable is not None:
        detectable = number(size.detectable, unit)
    command = "" if size.share == 1 else f"MEDTASKS_SUBSET={size.share:g}@0"
    return (
        f"{size.share:g}",
        f"{size.clusters:,}",
        f"{size.documents:,}",
        detectable,
        command,
    )


def plan_task(
    task: str,
    metric: str | None = None,
    spread: SpreadSource = ASSUMED,
    *,
    difference: float | None = None,
    shares: Sequence[float] = SHARES,
) -> Plan:
    """The minimum detectable differences of subsets of a task or group.

    Args:
        task: the task or group.
        metric: by default the first headline score.
        spread: where the spread is from.
        difference: also find the number of clusters that detects it, in points or the metric's
            unit.
        shares: of the clusters, above 0 and up to 1.

    Raises:
        UsageError: an argument is wrong, the data have no documents of the task, or the spread is
            unknown.
        NotPreparedError: the data are not prepared.
    """
    _require_valid(spread.pilots, shares)
    metric = metric or default_metric(task)
    parts, left_out = _prepared_documents(task)
    if not parts:
        raise UsageError(f"{task}: the prepared data have no documents of its tasks.")
    basis = _basis(task, metric, spread)
    subsets = [_subset_size(parts, share, basis) for share in shares]
    sizes = cluster_sizes(chain.from_iterable(parts))
    needed = None
    if difference is not None:
        in_unit = difference / 100 if unit_of(metric) == "fraction" else difference
        detectable = _detectable_with_all(subsets) or basis.detectable(sizes)
        needed = clusters_needed(basis.population, sizes, detectable, in_unit)
    return Plan(
        task=task,
        metric=metric,
        unit=unit_of(metric),
        basis=basis.words,
        subsets=tuple(subsets),
        left_out=tuple(left_out),
        clusters=len(sizes),
        difference=difference,
        needed=needed,
    )


def _require_valid(pilots: Sequence[ScoredRun], shares: Sequence[float]) -> None:
    """Raise a `UsageError` for too many pilot runs, or a share of clusters that cannot be."""
    if len(pilots) > 2:
        raise UsageError(f"--pilot: {len(pilots)} runs, expected at most 2.")
    for share in shares:
        if not 0 < share <= 1:
            raise UsageError(f"--share {share:g}: expected a share above 0 and up to 1.")


def _detectable_with_all(subsets: Sequence[Size]) -> float | None:
    """The minimum detectable difference with all clusters; None if no subset has them all."""
    for subset in subsets:
        if subset.share == 1:
            return subset.detectable
    return None


def _basis(task: str, metric: str, spread: SpreadSource) -> Basis:
    """What pilot runs show, or what is assumed without any."""
    if spread.pilots:
        return pilot_basis(task, metric, *spread.pilots)
    return assumed_basis(task, metric, spread.score, spread.icc)


def _prepared_documents(task: str) -> tuple[list[Sequence[Document]], list[str]]:
    """The documents of each task of a task or group, and which tasks have no prepared rows."""
    parts: list[Sequence[Document]] = []
    left_out = []
    for leaf in leaf_tasks(task):
        try:
            documents = task_documents(leaf, media=False)
        except NoRowsError as error:
            left_out.append(str(error))
        else:
            if documents:
                parts.append(documents)
    return parts, left_out


def _subset_size(parts: Iterable[Sequence[Document]], share: float, basis: Basis) -> Size:
    """The size of a subset of the documents, and the difference that it can show."""
    chosen: list[Document] = []
    for part in parts:
        chosen += part if share == 1 else Subset(share, 0).of(part)
    sizes = cluster_sizes(chosen)
    return Size(share, len(sizes), len(chosen), basis.detectable(sizes))


def cluster_sizes(documents: Iterable[Document]) -> Sizes:
    """Items by cluster, in the order of the clusters' names."""
    items = set()
    for document in documents:
        items.add((document["cluster"], document.get("item_id", document["sample_id"])))
    counts = Counter(cluster for cluster, _ in items)
    return np.array([counts[cluster] for cluster in sorted(counts)], dtype=np.int64)


def clusters_needed(
    population: Population, sizes: Sizes, detectable: float | None, difference: float
) -> int | None:
    """About the smallest number of clusters like these that detects ``difference``; None above a
    million.

    The minimum detectable difference with n clusters is (t of the level + t of the power) times the
    standard error, which falls with the square root of n. It is corrected by the ratio of the
    simulated difference with all clusters (``detectable``) to this formula; with more clusters than
    there are, the correction fades.
    """
    count = len(sizes)
    ratio = 1.0 if detectable is None else detectable / formula_difference(population, sizes)

    def is_detected(clusters: int) -> bool:
        freedom = clusters - 1
        quantiles = student_quantile(1 - LEVEL / 2, freedom) + student_quantile(POWER, freedom)
        error = population.standard_error(sizes) * math.sqrt(count / clusters)
        minimum = quantiles * error * ratio ** min(1.0, count / clusters)
        return bool(minimum <= difference)

    numbers = range(LEAST_CLUSTERS, MOST_CLUSTERS)
    fewest = LEAST_CLUSTERS + bisect_left(numbers, True, key=is_detected)
    return fewest if fewest < MOST_CLUSTERS else None


def default_metric(task: str) -> str:
    """The first headline score of the benchmark that the task has, else the task's first metric."""
    spec = load_spec(task)
    layout = all_layouts().get(spec.metadata.benchmark)
    if layout is not None:
        columns = list(layout.headline)
        for table in layout.tables:
            columns += table.columns
        for column in columns:
            if column.task == task:
                return column.metric
    metrics = [*spec.scores]
    for leaf in leaf_tasks(task):
        metrics += load_spec(leaf).scores
    return metrics[0]
