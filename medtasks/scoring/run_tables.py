"""The item tables of a run's tasks and groups, built part by part, so that few samples are in
memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType

from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec, load_specs
from medtasks.runs.sample_files import SampleFile
from medtasks.runs.samples import Sample
from medtasks.scoring.answer_confidence import gives_confidence
from medtasks.scoring.item_table import ItemTable, item_table, require_same_metrics
from medtasks.scoring.learned_scores import has_models
from medtasks.scoring.pooled_tables import pooled_table

PART_SIZE = 4096
"""Samples of a task that are scored together: few, to limit memory."""


class RunTables:
    """The tables of a run's tasks and groups, built on first use from samples by task, or ``made``
    earlier.
    """

    def __init__(
        self,
        samples: Mapping[str, Sequence[Sample]],
        made: Mapping[str, ItemTable] = MappingProxyType({}),
    ) -> None:
        self._samples = samples
        self.made = dict(made)
        """By task or group, those made of samples so far; all others are pooled from them."""
        self._pooled: dict[tuple[str, tuple[str, ...]], ItemTable] = {}
        self._parts: dict[str, list[ItemTable]] = {}

    def add(self, task: str, samples: Sequence[Sample]) -> None:
        """Build the table of the next part of a task (:func:`in_parts`), which then needs none of
        its samples: it has what the task's groups need, too.
        """
        spec = load_spec(task)
        breakdowns = dict.fromkeys(spec.metadata.breakdowns)
        pooled = dict.fromkeys(spec.metadata.pooled)
        for group in _groups_with(task):
            breakdowns |= dict.fromkeys(group.metadata.breakdowns)
            if spec.benchmark.repeatable:
                pooled |= dict.fromkeys(group.metadata.pooled)
        table = item_table(samples, spec.benchmark, tuple(breakdowns), tuple(pooled))
        own = {*spec.metadata.pooled, *samples[0].scores}
        metrics = tuple(name for name in table.metrics if name not in pooled or name in own)
        part = replace(table, metrics=metrics, breakdowns=tuple(spec.metadata.breakdowns))
        self._parts.setdefault(task, []).append(part)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks with a table or with samples."""
        if self._samples:
            return tuple(self._samples)
        return tuple(name for name in self.made if load_spec(name).kind == "task")

    def of(self, name: str, members: Sequence[str] = ()) -> ItemTable:
        """The table of a task, or of a group over its ``members``: pooled, unless the benchmark has
        its own ``join``, which may join samples of several tasks.
        """
        spec = load_spec(name)
        if name in self.made:
            return self.made[name]
        if not members or tuple(members) == (name,):
            self.made[name] = self._task_table(spec)
        elif not spec.benchmark.repeatable:
            self.made[name] = self._joined_table(spec, members)
        else:
            return self._pooled_table(spec, tuple(members))
        return self.made[name]

    def _joined_table(self, spec: TaskSpec, members: Iterable[str]) -> ItemTable:
        """The table of a group whose items may have samples of several tasks."""
        samples: list[Sample] = []
        for member in members:
            samples += self._samples[member]
        facts = spec.metadata
        return item_table(samples, spec.benchmark, facts.breakdowns, facts.pooled)

    def _pooled_table(self, spec: TaskSpec, members: tuple[str, ...]) -> ItemTable:
        """The table of a group's items, which are those of its tasks."""
        key = (spec.name, members)
        if key not in self._pooled:
            tables = [self.of(member) for member in members]
            facts = spec.metadata
            self._pooled[key] = pooled_table(tables, facts.breakdowns, facts.pooled)
        return self._pooled[key]

    def _task_table(self, spec: TaskSpec) -> ItemTable:
        """The table of a task's parts, which are made from its samples if there are none yet, and
        are then dropped.

        Raises:
            MedtasksError: parts have different metrics.
        """
        if spec.name not in self._parts:
            for part in in_parts(spec, self._samples[spec.name]):
                self.add(spec.name, part)
        parts = self._parts.pop(spec.name)
        first = parts[0]
        for table in parts[1:]:
            sample_id = table.samples[0][0]
            require_same_metrics(sample_id, table.tasks[0], table.metrics, first.metrics)
        if len(parts) == 1:
            return first
        whole = pooled_table(parts, first.breakdowns, [*first.columns])
        # built now, so that the parts, which take as much memory, can be freed
        columns = dict(whole.columns)
        reduced = dict(whole.reduced)
        return replace(whole, metrics=first.metrics, columns=columns, reduced=reduced)


def _groups_with(task: str) -> Iterator[TaskSpec]:
    """The groups that have the task, directly or in an inner group."""
    for group in load_specs().values():
        if group.kind == "group" and task in leaf_tasks(group.name):
            yield group


# --- parts of a task ---


def in_parts(spec: TaskSpec, samples: Sequence[Sample] | SampleFile) -> Iterator[list[Sample]]:
    """The samples of a task in parts that are scored one after the other; as a whole if its items
    need all of them.
    """
    whole = bool(spec.metadata.varied) or not spec.benchmark.repeatable or has_models(spec)
    # if one sample has probabilities, the others lack theirs
    if not whole and spec.metadata.confidence:
        if isinstance(samples, SampleFile):
            whole = samples.confident
        else:
            whole = any(gives_confidence(sample) for sample in samples)
    return batches(samples, whole=whole)


def batches(samples: Iterable[Sample], *, whole: bool = False) -> Iterator[list[Sample]]:
    """The samples in lists of `PART_SIZE`, or all in one; the first is empty if there are none."""
    rest = iter(samples)
    size = None if whole else PART_SIZE
    yield list(islice(rest, size))
    while True:
        batch = list(islice(rest, size))
        if not batch:
            return
        yield batch
