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

from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.catalog.statuses import ANSWERED, FAILED
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.scoring.columns import Column, Rows, reduced_to, without_value
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scores import Letters, Scores
from medtasks.stats.bootstrap import Clusters
from medtasks.stats.cautions import few_clusters
from medtasks.stats.paired import PairedDifference, clustered_score, paired_difference


class Paired(BaseModel, frozen=True):
    """The comparison of two runs, by metric and within the groups of each breakdown."""

    first: str
    second: str
    items: int
    unpaired: int
    metrics: dict[str, PairedDifference]
    breakdowns: dict[str, dict[str, Paired]] = {}


def compare_tables(first: tuple[str, ItemTable], second: tuple[str, ItemTable]) -> Paired:
    """The comparison of two (name, table) pairs, joined by item.

    A metric is left out if no item has a value in both, or too few to define it. Groups of items
    and their clusters are those of the first table. ``items`` is 0 if they share none, e.g. after
    ``--limit 1``; ``unpaired`` counts the items in only one of them.
    """
    (first_name, first_table), (second_name, second_table) = first, second
    first_rows, second_rows = _complete_rows(first_table), _complete_rows(second_table)
    names = sorted(first_rows.keys() & second_rows.keys())
    rows = [(first_rows[name], second_rows[name]) for name in names]
    shared: Rows = np.array(rows, dtype=np.int64).reshape(-1, 2)
    # a group's column is put together on each access
    columns: dict[str, tuple[Column, Column]] = {}
    for metric in first_table.metrics:
        if metric in second_table.columns:
            columns[metric] = (first_table.column(metric), second_table.column(metric))

    def compared(items: Rows, part: str = "", unpaired: int = 0, **more: Any) -> Paired:
        """The comparison over ``items``: rows of the first table, rows of the second."""
        rows_of_first, rows_of_second = items.T
        clusters = first_table.codes[rows_of_first]
        metrics = {}
        for metric, (first_column, second_column) in columns.items():
            key = (metric, part)
            left = reduced_to(first_column, first_table.reduced.get(key), rows_of_first)
            right = reduced_to(second_column, second_table.reduced.get(key), rows_of_second)
            difference = compare_statistics(metric, left.statistics, right.statistics, clusters)
            if difference is not None:
                metrics[metric] = difference
        return Paired(
            first=first_name,
            second=second_name,
            items=len(items),
            unpaired=unpaired,
            metrics=metrics,
            **more,
        )

    breakdowns: dict[str, dict[str, Paired]] = {}
    for name in first_table.breakdowns:
        breakdowns[name] = {}
        for key, members in first_table.rows_by_group(name).items():
            inside = shared[np.isin(shared[:, 0], members)]
            if len(inside):
                part = key if name == first_table.benchmark.scoring.parts else ""
                breakdowns[name][key] = compared(inside, part)
    unpaired = len(first_rows.keys() ^ second_rows.keys())
    return compared(shared, "", unpaired, breakdowns=breakdowns)


def _complete_rows(table: ItemTable) -> dict[str, int]:
    """The rows of complete items, by the item's unique name."""
    rows = {}
    for row, name in enumerate(table.unique):
        if table.complete[row]:
            rows[name] = row
    return rows


def compare_statistics(
    metric: str, first: Array, second: Array, clusters: Clusters
) -> PairedDifference | None:
    """The difference between two scores on ``metric``, over the items for which both have a value.

    None if these do not define the score. Statistics are ``(items, width)``, NaN for items without
    a value.
    """
    both = np.flatnonzero(~(without_value(first) | without_value(second)))
    if not len(both):
        return None
    score = get_metric(metric).score
    common = _clusters_of(both, clusters)
    first_score = clustered_score(first[both], common, score)
    second_score = clustered_score(second[both], common, score)
    difference = paired_difference(first_score, second_score)
    return difference if math.isfinite(difference.difference) else None


def _clusters_of(rows: Rows, clusters: Clusters) -> Clusters:
    if isinstance(clusters, np.ndarray):
        return clusters[rows]
    return [clusters[row] for row in rows.tolist()]


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
    """Diagnostics from the scores of a task or group.

    ``readings`` counts how often options were named in which way.
    """
    responses = unread = 0
    for status, count in scores.status.items():
        if status != FAILED:
            responses += count
            if status not in ANSWERED:
                unread += count
    diagnostics = Diagnostics(
        responses=responses, extraction_failures=unread / responses if responses else 0.0
    )
    letters = scores.letters
    if letters is None:
        return diagnostics
    update: dict[str, float | None] = {}
    by_letter = readings.get("letter", 0)
    by_text = readings.get("text", 0)
    if by_letter or by_text:
        update["read_by_text"] = by_text / (by_letter + by_text)
    not_selected = scores.samples - by_letter - by_text - scores.status.get(FAILED, 0)
    if not_selected:
        update["named_in_prose"] = readings.get("named", 0) / not_selected
    update |= _letter_bias(letters)
    if null_option is not None and letters.null_chosen_when_wrong is not None:
        assert letters.null_missed_when_right is not None
        right = letters.gold[null_option]
        wrong = sum(letters.gold.values()) - right
        update["false_abstention"] = letters.null_chosen_when_wrong / wrong if wrong else None
        update["false_commitment"] = letters.null_missed_when_right / right if right else None
    return diagnostics.model_copy(update=update)


def _letter_bias(letters: Letters) -> dict[str, float]:
    """Half the sum of the differences in share; empty if no option was chosen."""
    gold = sum(letters.gold.values())
    chosen = sum(letters.chosen[letter] for letter in letters.gold)
    if not chosen:
        return {}
    differences = []
    for letter in letters.gold:
        share_chosen = letters.chosen[letter] / chosen
        differences.append(abs(share_chosen - letters.gold[letter] / gold))
    return {"letter_bias": sum(differences) / 2}


def level_gap(lower: ItemTable, higher: ItemTable, metric: str) -> LevelGap | None:
    """The gap between two levels, clustered by image across both; None if an item has no score."""
    for table in (higher, lower):
        if metric not in table.columns or not table.column(metric).known.all():
            return None
    above = higher.column(metric).statistics
    below = lower.column(metric).statistics
    clusters = [*higher.clusters, *lower.clusters]
    score = get_metric(metric).score
    higher_rows = np.vstack([above, np.zeros_like(below)])
    lower_rows = np.vstack([np.zeros_like(above), below])
    gap = paired_difference(
        clustered_score(higher_rows, clusters, score), clustered_score(lower_rows, clusters, score)
    )
    # the levels have different items, so the cautions do not apply
    warning = few_clusters(gap.clusters)
    return LevelGap(
        metric=metric, difference=gap.difference, interval=gap.interval, warning=warning
    )


def level_gaps(tables: RunTables) -> dict[str, LevelGap]:
    """Gaps between adjacent levels (`ScoringRules.levels`) if both were run, by ``higher - lower:
    metric``.
    """
    found = {}
    levels = dict.fromkeys(load_spec(task).benchmark.scoring.levels for task in tables.tasks)
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
