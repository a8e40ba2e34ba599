"""The tables of a run's tasks and groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from medtasks.catalog.benchmark import sample_items
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec, load_specs
from medtasks.runs.confidence import gives_confidence
from medtasks.runs.learned import has_models
from medtasks.runs.samples import Sample
from medtasks.runs.table import ItemTable, item_table, joined_parts, pooled_table

PART = 4096
"""Samples of a task that are scored together: few, to limit memory."""


class RunTables:
    """The tables of a run's tasks and groups, each built on first use.

    Args:
        samples: by task.
        made: tables built earlier, by task or group, if the samples are not available.
    """

    def __init__(
        self, samples: Mapping[str, Sequence[Sample]], made: Mapping[str, ItemTable] = MappingProxyType({})
    ) -> None:
        self._samples = samples
        self.made = dict(made)
        """The tables made of samples so far, by task or group; all others are pooled from them."""
        self._pooled: dict[tuple[str, tuple[str, ...]], ItemTable] = {}
        self._parts: dict[str, list[ItemTable]] = {}

    def add(self, task: str, samples: Sequence[Sample]) -> None:
        """Build the table of the next part of a task (:func:`in_parts`), which then needs none of its samples."""
        self._parts.setdefault(task, []).append(self._part(task, samples))

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that have samples."""
        return tuple(self._samples) or tuple(name for name in self.made if load_spec(name).kind == "task")

    def of(self, name: str, members: Sequence[str] = ()) -> ItemTable:
        """The table of a task, or of a group over its ``members``.

        A task's table also has what its groups need, so that their tables are pooled, not built from samples. This does
        not apply to benchmarks with their own ``join``, which may join samples of several tasks.
        """
        members = tuple(members) or (name,)
        if name in self.made:
            return self.made[name]
        facts = load_spec(name).metadata
        benchmark = get_benchmark(facts.benchmark)
        if members == (name,):
            if name not in self._parts:
                for part in in_parts(load_spec(name), self._samples[name]):
                    self.add(name, part)
            self.made[name] = joined_parts(self._parts.pop(name))
        elif benchmark.join is sample_items:
            if (name, members) not in self._pooled:
                self._pooled[name, members] = pooled_table([self.of(member) for member in members], facts.pooled)
            return self._pooled[name, members]
        else:
            samples = [sample for member in members for sample in self._samples[member]]
            self.made[name] = item_table(samples, benchmark, facts.breakdowns, facts.pooled)
        return self.made[name]

    def _part(self, task: str, samples: Sequence[Sample]) -> ItemTable:
        facts = load_spec(task).metadata
        benchmark = get_benchmark(facts.benchmark)
        breakdowns, pooled = [*facts.breakdowns], [*facts.pooled]
        for group in groups_of(task):
            breakdowns += load_spec(group).metadata.breakdowns
            pooled += load_spec(group).metadata.pooled if benchmark.join is sample_items else ()
        table = item_table(samples, benchmark, tuple(dict.fromkeys(breakdowns)), tuple(dict.fromkeys(pooled)))
        own = {*facts.pooled, *samples[0].scores}
        return replace(table, metrics=tuple(name for name in table.metrics if name not in pooled or name in own))


def in_parts(spec: TaskSpec, samples: Sequence[Sample]) -> Iterator[Sequence[Sample]]:
    """The samples of a task in parts that are scored one after the other; as a whole if its items need all of them."""
    facts = spec.metadata
    joined = facts.varied or get_benchmark(facts.benchmark).join is not sample_items
    whole = joined or has_models(spec) or (facts.confidence and any(map(gives_confidence, samples)))
    size = max(len(samples), 1) if whole else PART
    return (samples[begin : begin + size] for begin in range(0, max(len(samples), 1), size))


def groups_of(task: str) -> list[str]:
    """The installed groups that contain ``task``."""
    return [name for name, spec in load_specs().items() if spec.kind == "group" and task in leaf_tasks(name)]
