"""The statistics of several models on the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric

from ..verify.entries import Entry


class ClaimedRow(NamedTuple):
    """An item in a cluster, named by the cluster's first item, as a party of runs claims it."""

    item: str
    first_item: str
    party: int


def on_common_items(
    entries: Mapping[str, Entry], metric: str
) -> tuple[dict[str, Array], Sequence[str]]:
    """Each model's statistics on the same items, and the cluster of each item.

    The statistics are arrays of the same shape for all models: a row for each item, and a column
    for each statistic of the metric. Row ``i`` is the same item for every model, and ``i`` is its
    place among the clusters.

    Verified runs have equal items. Other runs may claim any items: each row is then an item in a
    cluster, with NaN for a model that does not have it. Runs that contradict each other about the
    question of an item share no row, not even of items on which they agree: whoever made up the
    questions could have chosen those.

    Args:
        entries: the entry of each model's run for one task or group; at least one.
        metric: the name of the metric.
    """
    first, *rest = entries.values()
    if all(_has_equal_items(first, entry) for entry in rest):
        statistics = {model: entry.statistics(metric) for model, entry in entries.items()}
        return statistics, first.clusters
    rows_by_model = _claimed_rows(entries)
    all_rows = sorted(set().union(*rows_by_model.values()))
    place_of_row = {row: place for place, row in enumerate(all_rows)}
    shape = (len(all_rows), get_metric(metric).width)
    statistics = {}
    for model, entry in entries.items():
        places = [place_of_row[row] for row in rows_by_model[model]]
        statistics[model] = np.full(shape, np.nan)
        statistics[model][places] = entry.statistics(metric)
    clusters = [row.first_item for row in all_rows]
    return statistics, clusters


def _has_equal_items(first: Entry, second: Entry) -> bool:
    """Whether two runs have the same items, clusters and questions."""
    return (
        first.items == second.items
        and first.clusters == second.clusters
        and first.questions == second.questions
    )


def _claimed_rows(entries: Mapping[str, Entry]) -> dict[str, list[ClaimedRow]]:
    """The rows of each model's items."""
    party_by_model = _parties(entries)
    rows_by_model: dict[str, list[ClaimedRow]] = {}
    for model, entry in entries.items():
        rows_by_model[model] = []
        for item, first_item in zip(entry.items, entry.first_items, strict=True):
            row = ClaimedRow(item, first_item, party_by_model[model])
            rows_by_model[model].append(row)
    return rows_by_model


def _parties(entries: Mapping[str, Entry]) -> dict[str, int]:
    """The number of each model's party.

    Within one, no two runs contradict each other about a question.
    """
    parties: list[list[Entry]] = []
    party_by_model: dict[str, int] = {}
    for model, entry in entries.items():
        for number, members in enumerate(parties):
            if not any(entry.contradicts(member) for member in members):
                members.append(entry)
                party_by_model[model] = number
                break
        else:
            party_by_model[model] = len(parties)
            parties.append([entry])
    return party_by_model
