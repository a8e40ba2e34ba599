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
    """The statistics of all models on the same items, and the cluster of each item.

    Verified runs have equal items. Others may claim any: each row is then an item in a cluster, and
    a run without it has no value there. Runs that contradict each other about the question of an
    item share no row: the items on which they agree are a choice of one of them.
    """
    first, *rest = entries.values()
    if all(_has_equal_items(first, entry) for entry in rest):
        return {model: entry.statistics(metric) for model, entry in entries.items()}, first.clusters
    rows_by_model = _claimed_rows(entries)
    every_row = sorted(set().union(*rows_by_model.values()))
    row_places = {row: place for place, row in enumerate(every_row)}
    width = get_metric(metric).width
    tables = {}
    for model, entry in entries.items():
        table = np.full((len(every_row), width), np.nan)
        table[[row_places[row] for row in rows_by_model[model]]] = entry.statistics(metric)
        tables[model] = table
    return tables, [row.first_item for row in every_row]


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
