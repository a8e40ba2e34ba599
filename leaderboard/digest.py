"""A run as the board needs it: scores recomputed from its samples, and the statistics of every item."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from medtasks.metrics.base import Array
from medtasks.registry import get_benchmark
from medtasks.results.column import Rows
from medtasks.results.run_tables import RunTables
from medtasks.results.scores import Scores
from medtasks.results.table import ItemTable, shared

from .board import RunFacts, Timeline
from .verify import Verification


@dataclass(frozen=True)
class Entry:
    """A task or group of one run.

    Args:
        name: the task or group.
        benchmark: its benchmark.
        scores: recomputed from the samples, never read from scores.json.
        items: sorted ids of all items.
        clusters: the cluster of each item.
        groups: each item's keys by breakdown.
        statistics: by metric ``(items, width)``; a row of NaN is an item without a value (unjudged or not
            computed), a row of zeros of a mean-type metric an item to which it does not apply (NaN in wider ones).
        parts: by group of `Benchmark.parts`, the statistics with items that are judged by parts reduced to this part.
        signatures: by metric, the reproducibility signature of the score over all items
            (`medtasks.results.signature`); breakdowns add their part to it.
        timelines: the first streaming items, by id.
    """

    name: str
    benchmark: str
    scores: Scores
    items: tuple[str, ...]
    clusters: tuple[str, ...]
    statistics: Mapping[str, Array]
    signatures: Mapping[str, str]
    timelines: tuple[Timeline, ...] = ()
    groups: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    parts: Mapping[str, Mapping[str, Array]] = field(default_factory=dict)

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
        """An entry with the items and statistics of ``table``."""
        rows, metrics = np.flatnonzero(table.complete), tuple(scores.metrics)
        by_part = table.groups.get(get_benchmark(benchmark).parts or "", ())
        return cls(
            name=name,
            benchmark=benchmark,
            scores=scores,
            items=shared(tuple(table.unique[row] for row in rows.tolist())),
            clusters=shared(tuple(table.clusters[row] for row in rows.tolist())),
            statistics=_Statistics(table, metrics, rows),
            signatures=signatures,
            timelines=timelines,
            groups={name: shared(tuple(keys[row] for row in rows.tolist())) for name, keys in table.groups.items()},
            parts={key: _Statistics(table, metrics, rows, key) for key in sorted({*chain.from_iterable(by_part)})},
        )


class _Statistics(Mapping[str, Array]):
    """Statistics read from the table's columns on access, so that those of groups are not stored twice."""

    def __init__(self, table: ItemTable, metrics: tuple[str, ...], rows: Rows, part: str | None = None) -> None:
        self._columns = table.columns
        self._metrics = metrics
        self._rows = rows
        self._whole = len(rows) == len(table.items)
        self._part = part

    def __getitem__(self, metric: str) -> Array:
        if metric not in self._metrics:
            raise KeyError(metric)
        column = self._columns[metric]
        column = column if self._part is None else column.part(self._part)
        found = column.statistics.astype(np.float64, copy=False)
        if found.shape[1] == 2 and not column.present.all():
            found = np.where(column.present[:, None], found, 0.0)
        return found if self._whole else found[self._rows]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)


@dataclass(frozen=True)
class Digest:
    """One run; ``model`` is the model's slug, and ``blind`` marks a run without media.

    ``complete`` says by task and group whether every prepared document was asked, according to the manifest.
    ``verification`` is the outcome for each task (`medtasks.leaderboard.verify`), ``responses`` a hash of its
    responses. ``tables`` are the data behind the entries.
    """

    facts: RunFacts
    model: str
    blind: bool
    entries: Mapping[str, Entry]
    complete: Mapping[str, bool] = field(default_factory=dict)
    verification: Mapping[str, Verification] = field(default_factory=dict)
    responses: Mapping[str, str] = field(default_factory=dict)
    tables: RunTables = field(default_factory=lambda: RunTables({}), compare=False, repr=False)
