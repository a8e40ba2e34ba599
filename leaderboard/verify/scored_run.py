"""A scored run as boards see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import numpy as np

from medtasks.benchmarks.streams import Timeline
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.metrics.base import Array
from medtasks.runs.record import RunFolder, RunRecord, as_data_error
from medtasks.runs.samples import without_garbage_collection
from medtasks.runs.scores import Scores
from medtasks.runs.table import ItemTable, Lazy, shared
from medtasks.verify.scored import scored_record
from medtasks.verify.store import RunStore as RunStore
from medtasks.verify.store import compressed

from ..board.board import BoardRun
from ..board.models import model_key
from ..intake.sources import Source
from .board_run import board_run, run_notes

T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """A task or group of one run (`medtasks.runs.record.RunRecord`); ``signatures`` are by metric."""

    name: str
    scores: Scores
    table: ItemTable
    signatures: Mapping[str, str]
    timelines: tuple[Timeline, ...] = ()

    @property
    def benchmark(self) -> str:
        return load_spec(self.name).metadata.benchmark

    @cached_property
    def _scored(self) -> int:
        """How many items are scored; the others are the last ones."""
        return int(np.count_nonzero(self.table.complete))

    def _first(self, values: tuple[T, ...]) -> tuple[T, ...]:
        return values if self._scored == len(values) else shared(values[: self._scored])

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Sorted ids of all items."""
        return self._first(self.table.unique)

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        return self._first(self.table.clusters)

    @property
    def groups(self) -> Mapping[str, tuple[tuple[str, ...], ...]]:
        """Each item's keys by breakdown."""
        return {name: self._first(keys) for name, keys in self.table.groups.items()}

    @property
    def statistics(self) -> Mapping[str, Array]:
        """By metric ``(items, width)``; a row of NaN is an item without a value (unjudged or not computed), a row of
        zeros of a mean-type metric an item to which it does not apply (NaN in wider ones)."""
        return Lazy(self.scores.metrics, self.part)

    def part(self, metric: str, key: str = "") -> Array:
        """The statistics of a metric with items that are judged by parts reduced to the part ``key``
        (`Benchmark.parts`)."""
        column = self.table.column(metric, key)
        found = column.statistics
        if found.shape[1] == 2 and not column.present.all():
            found = np.where(column.present[:, None], found, 0.0)
        return found[: self._scored]


@dataclass(frozen=True)
class ScoredRun(RunRecord):
    """One run, scored here, from the directory called ``folder`` with the content ``digest``."""

    folder: str = ""
    digest: str = ""

    @classmethod
    def of(cls, run: RunRecord, folder: str = "", digest: str = "") -> ScoredRun:
        return cls(**{one.name: getattr(run, one.name) for one in fields(run)}, folder=folder, digest=digest)

    @cached_property
    def model(self) -> str:
        return model_key(self.manifest)

    @cached_property
    def public(self) -> BoardRun:
        """What a board shows of the run."""
        notes = [*run_notes(self.manifest, self.scores), *self.notes]
        return board_run(self.manifest, self.folder, self.digest, notes)

    @cached_property
    def blind(self) -> bool:
        """Whether a task was asked without its media."""
        return any(one.blind for one in self.manifest.tasks.values())

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        entries = {}
        for name, scores in self.scores.items():
            table = self.tables.of(name, self.manifest.groups.get(name, ()))
            lines = (line.model_copy(update={"model": self.model}) for line in self.timelines.get(name, ()))
            entries[name] = Entry(name, scores, table, self.signatures[name], tuple(lines))
        return entries

    @cached_property
    def complete(self) -> Mapping[str, bool]:
        """Whether every prepared document was asked, by task and group, according to the manifest."""
        complete = {
            task: facts.attempted == facts.asked and not self.tasks[task].incomplete
            for task, facts in self.manifest.tasks.items()
        }
        groups = {name: self.manifest.groups[name] for name in self.groups}
        return complete | {
            name: all(complete[task] for task in members) and {*leaf_tasks(name)} <= {*members}
            for name, members in groups.items()  # tasks without prepared rows are never run
        }


@without_garbage_collection()
def scored_run(
    run: Path | Source, store: RunStore | None = None, *, own: bool = False, whole: bool = False
) -> ScoredRun:
    """The run in a result directory or in lmms-eval's logs, scored by the data and rules of this machine.

    Args:
        run: the run; tasks of packages that are not installed are left out, and so are their groups, with a note.
        store: keeps the run, and its columns out of memory; None scores it now.
        own: as in `medtasks.verify.scored.scored_record`.
        whole: with the samples.

    Raises:
        UsageError: it is not a result directory, or none of its tasks is installed.
        DataError: it cannot be read, or manifest and samples do not match; names file and field.
        MedtasksError: the samples cannot be scored.
    """
    store = store or RunStore(None)
    source = RunFolder(run) if isinstance(run, Path) else run
    content = source.content
    key = store.key_of(content, source.contains)
    found = None if whole else store.read_run(key, own=own)
    if found is None or (own and found.kept is None):
        if found is None:
            with as_data_error(source.directory):
                found = scored_record(*source.read(), source.name, own=own, whole=whole)
        if own:
            found = replace(found, kept=(found.comparisons, found.level_gaps))
        store.keep(key, found)
        if not whole:  # with less in memory: a board has many runs
            found = store.read_run(key, own=own) or compressed(found)
    return ScoredRun.of(found, source.name, content)
