"""Comparisons within a run and between runs: paired differences, gaps between levels, diagnostics
of scores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from pydantic import BaseModel, Field

from medtasks.catalog.benchmark import ANSWERED, FAILED
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.scoring.item_table import ItemTable, Rows, RunTables, reduced_to, without_value
from medtasks.scoring.scores import Scores
from medtasks.stats.bootstrap import Clusters
from medtasks.stats.paired import PairedDifference, clustered_score, few_clusters, paired_difference


class Paired(BaseModel, frozen=True):
    """The comparison of two runs, by metric and within the groups of each breakdown."""

    first: str
    second: str
    items: int
    unpaired: int
    metrics: dict[str, PairedDifference]
    breakdowns: dict[str, dict[str, Paired]] = {}


def compare_tables(first: tuple[str, ItemTable], second: tuple[str, ItemTable]) -> Paired:
    """Compare two (name, table) pairs, joined by item; ``unpaired`` counts the items in only one of
    them.

    A metric is left out if no item has a value in both, or too few to define it. Groups of items
    and their clusters are those of the first table. ``items`` is 0 if they share none, e.g. after
    ``--limit 1``.
    """
    tables = one, other = first[1], second[1]
    rows = [
        {name: row for row, name in enumerate(table.unique) if table.complete[row]}
        for table in tables
    ]
    joined = [(rows[0][name], rows[1][name]) for name in sorted(rows[0].keys() & rows[1].keys())]
    shared: Rows = np.array(joined, dtype=np.int64).reshape(-1, 2)
    # a group's column is put together on each access
    columns = {
        name: (one.column(name), other.column(name))
        for name in one.metrics
        if name in other.columns
    }

    def compared(items: Rows, part: str = "", unpaired: int = 0, **more: Any) -> Paired:
        metrics = {}
        for metric, wholes in columns.items():
            left, right = (
                reduced_to(whole, table.reduced.get((metric, part)), rows).statistics
                for table, whole, rows in zip(tables, wholes, items.T, strict=True)
            )
            difference = compare_statistics(metric, left, right, one.codes[items[:, 0]])
            if difference is not None:
                metrics[metric] = difference
        return Paired(
            first=first[0],
            second=second[0],
            items=len(items),
            unpaired=unpaired,
            metrics=metrics,
            **more,
        )

    breakdowns: dict[str, dict[str, Paired]] = {name: {} for name in one.breakdowns}
    for name, groups in breakdowns.items():
        for key, members in one.rows_by_group(name).items():
            inside = shared[np.isin(shared[:, 0], members)]
            if len(inside):
                groups[key] = compared(inside, key if name == one.benchmark.parts else "")
    return compared(shared, "", len(rows[0].keys() ^ rows[1].keys()), breakdowns=breakdowns)


def compare_statistics(
    metric: str, first: Array, second: Array, clusters: Clusters
) -> PairedDifference | None:
    """The difference between two scores on ``metric``, over the items for which both have a value;
    None if these do not define the score. Statistics are ``(items, width)``, NaN for items without
    a value.
    """
    both = np.flatnonzero(~(without_value(first) | without_value(second)))
    if not len(both):
        return None
    score = get_metric(metric).score
    common = (
        clusters[both]
        if isinstance(clusters, np.ndarray)
        else [clusters[row] for row in both.tolist()]
    )
    one, other = (clustered_score(side[both], common, score) for side in (first, second))
    found = paired_difference(one, other)
    return found if math.isfinite(found.difference) else None


class Diagnostics(BaseModel, frozen=True):
    """Diagnostics of one task or group; an optional share is None if its denominator is 0.

    ``extraction_failures`` is the share of responses without an answer to score, ``read_by_text``
    the share of selected options that were named by their text instead of their letter,
    ``named_in_prose`` the share of questions without a selected option whose response contains the
    text of just one. ``letter_bias`` is half the sum over the options of |share among chosen
    letters - share among correct letters| (0: equally often, 1: disjoint). ``false_abstention`` is
    the share of questions answered with the null option among those where it is wrong,
    ``false_commitment`` the share answered with another option among those where it is correct
    (arXiv 2605.15574).
    """

    responses: int
    extraction_failures: float
    read_by_text: float | None = Field(default=None, exclude_if=lambda value: value is None)
    named_in_prose: float | None = Field(default=None, exclude_if=lambda value: value is None)
    letter_bias: float | None = None
    false_abstention: float | None = None
    false_commitment: float | None = None


class LevelGap(BaseModel, frozen=True):
    """A metric at a higher complexity level minus that at a lower one; images have questions at
    both levels.
    """

    metric: str
    difference: float
    interval: tuple[float, float] | None
    warning: str | None = None


def diagnose(scores: Scores, null_option: str | None, readings: Mapping[str, int]) -> Diagnostics:
    """Diagnostics from the scores of a task or group, and from how often options were named in
    which way.
    """
    counts = {status: count for status, count in scores.status.items() if status != FAILED}
    responses = sum(counts.values())
    unread = sum(count for status, count in counts.items() if status not in ANSWERED)
    found = Diagnostics(
        responses=responses, extraction_failures=unread / responses if responses else 0.0
    )
    letters = scores.letters
    if letters is None:
        return found
    gold, chosen = (
        sum(letters.gold.values()),
        sum(letters.chosen[letter] for letter in letters.gold),
    )
    update: dict[str, float | None] = {}
    by_letter, by_text, named = (readings.get(how, 0) for how in ("letter", "text", "named"))
    if by_letter or by_text:
        update["read_by_text"] = by_text / (by_letter + by_text)
    if others := scores.samples - by_letter - by_text - scores.status.get(FAILED, 0):
        update["named_in_prose"] = named / others
    if chosen:
        update["letter_bias"] = (
            sum(
                abs(letters.chosen[letter] / chosen - letters.gold[letter] / gold)
                for letter in letters.gold
            )
            / 2
        )
    if null_option is not None and letters.null_chosen_when_wrong is not None:
        right = letters.gold[null_option]
        assert letters.null_missed_when_right is not None
        update["false_abstention"] = (
            letters.null_chosen_when_wrong / (gold - right) if gold > right else None
        )
        update["false_commitment"] = letters.null_missed_when_right / right if right else None
    return found.model_copy(update=update)


def level_gap(lower: ItemTable, higher: ItemTable, metric: str) -> LevelGap | None:
    """The gap between two levels, clustered by image across both; None if an item has no score."""
    tables = higher, lower
    if any(metric not in table.columns or not table.column(metric).known.all() for table in tables):
        return None
    above, below = (table.column(metric).statistics for table in tables)
    clusters = [*higher.clusters, *lower.clusters]
    sides = np.vstack([above, np.zeros_like(below)]), np.vstack([np.zeros_like(above), below])
    score = get_metric(metric).score
    one, other = (clustered_score(side, clusters, score) for side in sides)
    found = paired_difference(one, other)
    warning = few_clusters(
        found.clusters
    )  # the levels have different items, so the cautions do not apply
    return LevelGap(
        metric=metric, difference=found.difference, interval=found.interval, warning=warning
    )


def level_gaps(tables: RunTables) -> dict[str, LevelGap]:
    """Gaps between adjacent levels (`Benchmark.levels`) if both were run, by ``higher - lower:
    metric``.
    """
    found = {}
    levels = dict.fromkeys(load_spec(task).benchmark.levels for task in tables.tasks)
    for lower, higher in (pair for tasks in levels for pair in pairwise(tasks)):
        if lower in tables.tasks and higher in tables.tasks:
            for metric in ("rougeL", "meteor", "exact_match"):
                gap = level_gap(tables.of(lower), tables.of(higher), metric)
                if gap is not None:
                    found[f"{higher} - {lower}: {metric}"] = gap
    return found


def comparisons(tables: RunTables, others: RunTables) -> dict[str, Paired]:
    """Every task or group with a partner (``compare_with``), compared with that partner of this or
    another run.
    """
    found = {}
    for name, spec in load_specs().items():
        partner = spec.metadata.compare_with
        leaves, theirs = leaf_tasks(name), leaf_tasks(partner or name)
        if partner is not None and {*leaves} <= {*tables.tasks} and {*theirs} <= {*others.tasks}:
            found[name] = compare_tables(
                (name, tables.of(name, leaves)), (partner, others.of(partner, theirs))
            )
    return found


def same_tasks(tables: RunTables, others: RunTables) -> dict[str, Paired]:
    """Every task that two runs share, the first run compared with the second."""
    return {
        f"{name} (both)": compare_tables(
            (f"{name} (this)", tables.of(name)), (f"{name} (other)", others.of(name))
        )
        for name in sorted({*tables.tasks} & {*others.tasks})
    }
