"""What the board needs of one run: scores recomputed from its samples, and every item's statistics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from medtasks.metrics.base import Array
from medtasks.results.scoring import Scores
from medtasks.results.table import ItemTable, Rows, RunTables

from .board import RunFacts, Timeline
from .documents import TaskDocuments


@dataclass(frozen=True)
class Entry:
    """A task or group of one run.

    Args:
        name: of the task or group.
        benchmark: its benchmark.
        scores: recomputed from the samples, never read from scores.json.
        items: ids of all items, sorted.
        clusters: for each item its cluster.
        statistics: by metric ``(items, width)``; a row of NaN is an item without a value (unjudged, or not
            computed), a mean-type metric's row of zeros one to which the metric does not apply.
        signatures: by metric, the reproducibility signature of the score over all items
            (`medtasks.results.signature`); a breakdown's is that with the part added.
        timelines: of streaming items, the first in order of their ids.
    """

    name: str
    benchmark: str
    scores: Scores
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    statistics: Mapping[str, Array]
    signatures: Mapping[str, str]
    timelines: tuple[Timeline, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        benchmark: str,
        table: ItemTable,
        scores: Scores,
        signatures: Mapping[str, str],
        timelines: tuple[Timeline, ...],
    ) -> Entry:
        """The entry whose items and statistics are in ``table``."""
        rows = np.flatnonzero(table.complete)
        return cls(
            name=name,
            benchmark=benchmark,
            scores=scores,
            items=tuple(table.unique[row] for row in rows.tolist()),
            clusters=tuple(table.clusters[row] for row in rows.tolist()),
            statistics=_Statistics(table, tuple(scores.metrics), rows),
            signatures=signatures,
            timelines=timelines,
        )


class _Statistics(Mapping[str, Array]):
    """Statistics out of a table's columns when they are asked for: those of a group are not held twice."""

    def __init__(self, table: ItemTable, metrics: tuple[str, ...], rows: Rows) -> None:
        self._columns = table.columns
        self._metrics = metrics
        self._rows = rows
        self._whole = len(rows) == len(table.items)

    def __getitem__(self, metric: str) -> Array:
        if metric not in self._metrics:
            raise KeyError(metric)
        found = self._columns[metric].counted
        return found if self._whole else found[self._rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)


@dataclass(frozen=True)
class Digest:
    """One run. ``model`` is the model's identity (`medtasks.leaderboard.models`), ``blind`` a run without
    media, ``complete`` says by task and group whether every document of the prepared data was asked, as the manifest
    has it. ``documents`` are those of its samples by task, ``doubts`` the reasons not to rank a task
    (`medtasks.leaderboard.doubts`). `medtasks.leaderboard.releases.verified` adds the result of comparing documents,
    and in ``unverified`` why those of a task could not be compared. ``tables`` are those that the entries show."""

    facts: RunFacts
    model: str
    blind: bool
    entries: Mapping[str, Entry]
    complete: Mapping[str, bool] = field(default_factory=dict)
    documents: Mapping[str, TaskDocuments] = field(default_factory=dict)
    doubts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unverified: Mapping[str, str] = field(default_factory=dict)
    tables: RunTables = field(default_factory=lambda: RunTables({}), compare=False, repr=False)
