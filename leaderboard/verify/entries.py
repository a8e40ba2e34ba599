"""The tasks and groups of a scored run, as boards and comparisons use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from medtasks.catalog.spec import load_spec
from medtasks.core.files import canonical_json, short_hash
from medtasks.metrics.base import Array
from medtasks.metrics.timelines import Timeline
from medtasks.runs.signature import parse_signature
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.scores import Scores
from medtasks.scoring.table_memory import shared_tuple


@dataclass(frozen=True)
class Entry:
    """A task or group of one run (`medtasks.scoring.run_record.RunRecord`).

    ``signatures`` are by metric, ``documents`` hashes of the run's own by task and sample id. Only
    the items that are scored are listed; the table has the others as its last rows.
    """

    name: str
    scores: Scores
    table: ItemTable
    signatures: Mapping[str, str]
    timelines: tuple[Timeline, ...] = ()
    documents: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def benchmark(self) -> str:
        return load_spec(self.name).metadata.benchmark

    @cached_property
    def items(self) -> tuple[str, ...]:
        """The sorted ids."""
        return shared_tuple(self.table.unique[: self.scores.items])

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """The cluster of each item."""
        return shared_tuple(self.table.clusters[: self.scores.items])

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the data, as the signatures have it."""
        signature = next(iter(self.signatures.values()), "")
        return parse_signature(signature).get("data", "")

    @cached_property
    def questions(self) -> tuple[str, ...]:
        """A hash of each item's questions and gold answers; empty if they are those of the data."""
        if not self.documents:
            return ("",) * self.scores.items
        tasks = self.table.tasks[: self.scores.items]
        hashes = []
        for task, samples in zip(tasks, self.table.samples, strict=False):
            hash_of = self.documents.get(task, {})
            hashes.append("".join(hash_of.get(sample, "") for sample in samples))
        return shared_tuple(tuple(hashes))

    def contradicts(self, entry: Entry) -> bool:
        """Whether both runs have the same item with different questions or gold answers."""
        if self.questions == entry.questions and self.items == entry.items:
            return False
        theirs = dict(zip(entry.items, entry.questions, strict=True))
        for item, question in zip(self.items, self.questions, strict=True):
            if theirs.get(item, question) != question:
                return True
        return False

    @property
    def first_items(self) -> list[str]:
        """The first item of each item's cluster.

        Equal for equal clusters, also in stripped runs, which rename clusters.
        """
        first_of: dict[str, str] = {}
        names = []
        for item, cluster in zip(self.items, self.clusters, strict=True):
            names.append(first_of.setdefault(cluster, item))
        return names

    @cached_property
    def items_hash(self) -> str:
        """A hash of the items and their clusters."""
        return short_hash(canonical_json([self.items, self.first_items]))

    def statistics(self, metric: str, part: str = "") -> Array:
        """The metric's statistics, of shape ``(items, width)``.

        With ``part``, items that are judged by parts count only this part. An item without a value
        (unjudged or not computed) is a row of NaN. An item to which the metric does not apply is a
        row of zeros if the metric is a mean (width 2), else also of NaN.
        """
        column = self.table.column(metric, part)
        statistics = column.statistics
        is_mean = statistics.shape[1] == 2
        if is_mean and not column.present.all():
            statistics = np.where(column.present[:, None], statistics, 0.0)
        return statistics[: self.scores.items]
