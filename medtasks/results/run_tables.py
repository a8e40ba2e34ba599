"""The tables of a run's tasks and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from medtasks.benchmarks.base import sample_items
from medtasks.registry import get_benchmark
from medtasks.results.samples import Sample
from medtasks.results.table import ItemTable, PooledColumns, item_table, pooled_table
from medtasks.spec import leaf_tasks, load_spec, load_specs


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
        self._made_before = made
        self._tables: dict[tuple[str, tuple[str, ...]], ItemTable] = {}

    @property
    def made(self) -> dict[str, ItemTable]:
        """The tables built from samples so far, by task or group; all others are pooled from them."""
        made = {name: one for (name, _), one in self._tables.items() if not isinstance(one.columns, PooledColumns)}
        return {**self._made_before, **made}

    def compact(self) -> RunTables:
        """The tables built so far, compact and without the samples, which take twenty times as much memory."""
        return RunTables({}, {name: table.compact() for name, table in self.made.items()})

    @property
    def groups(self) -> list[tuple[str, tuple[str, ...]]]:
        """The groups used so far, with their members."""
        return [key for key in self._tables if key[1] != (key[0],)]

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that have samples."""
        return tuple(self._samples) or tuple(name for name in self._made_before if load_spec(name).kind == "task")

    def of(self, name: str, members: Sequence[str] = ()) -> ItemTable:
        """The table of a task, or of a group over its ``members``.

        A task's table also has what its groups need, so that their tables are pooled, not built from samples. This does
        not apply to benchmarks with their own ``join``, which may join samples of several tasks.
        """
        key = (name, tuple(members) or (name,))
        if key not in self._tables:
            self._tables[key] = self._table(*key)
        return self._tables[key]

    def _table(self, name: str, members: tuple[str, ...]) -> ItemTable:
        if name in self._made_before:
            return self._made_before[name]
        facts = load_spec(name).metadata
        benchmark = get_benchmark(facts.benchmark)
        if benchmark.join is sample_items and members != (name,):
            return pooled_table([self.of(member) for member in members], facts.pooled)
        breakdowns, pooled = [*facts.breakdowns], [*facts.pooled]
        if members == (name,):
            for group in groups_of(name):
                breakdowns += load_spec(group).metadata.breakdowns
                pooled += load_spec(group).metadata.pooled if benchmark.join is sample_items else ()
        samples = [sample for member in members for sample in self._samples[member]]
        table = item_table(samples, benchmark, tuple(dict.fromkeys(breakdowns)), tuple(dict.fromkeys(pooled)))
        own = {*facts.pooled, *(metric for sample in samples[:1] for metric in sample.scores)}
        return replace(table, metrics=tuple(name for name in table.metrics if name not in pooled or name in own))


def groups_of(task: str) -> list[str]:
    """The installed groups that contain ``task``."""
    return [name for name, spec in load_specs().items() if spec.kind == "group" and task in leaf_tasks(name)]
