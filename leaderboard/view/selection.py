"""The samples that an address selects: those of one run's answers to a task or group."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from medtasks.catalog.board_layout import BoardLayout
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import status_words
from medtasks.core.errors import UsageError
from medtasks.runs.samples import Sample

from ..intake.shown_layouts import layout_of
from . import selection_sql
from .addresses import BREAKDOWN_PREFIX, Query, parsed_query
from .bookmarks import read_bookmarks
from .library import Library, ViewedRun
from .parquet import SampleTable, quoted


class SampleRow(NamedTuple):
    """A sample of a list: the place of its line, its outcome and score.

    ``right`` of the ``scored`` runs have the full score.
    """

    file: str
    task: str
    id: str
    start: int
    size: int
    outcome: str
    score: float | None
    right: int
    scored: int

    @property
    def is_wrong(self) -> bool:
        """Whether the sample has a score, but not the full one."""
        return self.outcome in ("wrong", "partly")


class _Filter(NamedTuple):
    """A condition of the query in SQL, and the value of its parameter."""

    parameter: str
    condition: str
    value: Any


@dataclass(frozen=True, eq=False)
class Selection:
    """The samples of one run that an address selects, in order.

    ``query`` has the filters of the address. ``tables`` are the run's samples of the task or group,
    by file, and ``files_by_run`` the files of every run that has such samples, by the run's key.
    ``notes`` are those on the run's bookmarked samples, by task and sample id.
    """

    library: Library
    run: ViewedRun
    query: Query
    tables: Mapping[str, SampleTable]
    files_by_run: Mapping[str, Sequence[str]]
    layout: BoardLayout
    notes: Mapping[tuple[str, str], str]

    @classmethod
    def at(cls, library: Library, parameters: Mapping[str, str]) -> Selection:
        """The samples that an address with these parameters selects: by default, the first task's.

        Raises:
            UsageError: the address names a run that has no samples of the task.
        """
        first_task = next(iter(library.tasks), "")
        query = parsed_query({"task": first_task, **parameters})
        task = query["task"]
        run = library.run(query["run"], task, query["model"])
        files_by_run: dict[str, list[str]] = {}
        for run_of_task in library.runs_of[task]:
            files_by_run[run_of_task.key] = list(library.tables(run_of_task, task))
        disagree = query["disagree"]
        if disagree and disagree not in (*selection_sql.DISAGREEMENTS, *files_by_run):
            raise UsageError(f"{disagree}: no such run has samples of {task}; choose another.")
        return cls(
            library=library,
            run=run,
            query={**query, "run": run.key},
            tables=library.tables(run, task),
            files_by_run=files_by_run,
            layout=layout_of(load_spec(task).metadata.benchmark),
            notes=_bookmark_notes(run),
        )

    @cached_property
    def metrics(self) -> list[str]:
        """The metrics with scores of single samples."""
        return _distinct(table.metrics for table in self.tables.values())

    @cached_property
    def breakdowns(self) -> list[str]:
        """The breakdowns by which the samples can be filtered."""
        return _distinct(table.breakdowns for table in self.tables.values())

    @cached_property
    def metric(self) -> str:
        """The metric that decides outcomes: the query's, a headline metric or the first one."""
        headline = [column.metric for column in self.layout.headline]
        for metric in (self.query["metric"], *headline, *self.metrics):
            if metric in self.metrics:
                return metric
        return ""

    @cached_property
    def rows(self) -> list[SampleRow]:
        """The rows that meet all conditions of the query, in its order."""
        filters = [*self._value_filters(), *self._breakdown_filters()]
        conditions = [selected.condition for selected in filters]
        disagree = self.query["disagree"]
        if disagree in selection_sql.DISAGREEMENTS:
            conditions.append(selection_sql.DISAGREEMENTS[disagree].condition)
        elif disagree:
            conditions.append(selection_sql.DIFFERS_FROM_OTHER)
        statement = selection_sql.selecting(
            self.metric,
            conditions,
            self.query["sort"],
            joins_other=disagree in self.files_by_run,
        )
        values = {selected.parameter: selected.value for selected in filters}
        values["other"] = self.files_by_run.get(disagree, [])
        values["every"] = list(chain.from_iterable(self.files_by_run.values()))
        return [SampleRow(*row) for row in self._query_rows(statement, **values)]

    def _value_filters(self) -> Iterator[_Filter]:
        """The conditions on status, outcome, verdict, bookmark and words that the query has."""
        query = self.query
        values: dict[str, Any] = {}
        if query["status"]:
            values["status"] = query["status"]
        if query["outcome"] in selection_sql.OUTCOMES:
            values["outcome"] = query["outcome"]
        if query["verdict"]:
            values["verdict"] = query["verdict"]
        if query["marked"]:
            values["marked"] = [f"{task}/{sample_id}" for task, sample_id in self.notes]
        if query["words"]:
            values["words"] = query["words"].casefold()
        for parameter, value in values.items():
            yield _Filter(parameter, selection_sql.CONDITIONS[parameter], value)

    def _breakdown_filters(self) -> Iterator[_Filter]:
        """The conditions on groups of breakdowns that the query has."""
        for place, breakdown in enumerate(self.breakdowns):
            key = self.query.get(f"{BREAKDOWN_PREFIX}{breakdown}")
            if key:
                parameter = f"group{place}"
                yield _Filter(parameter, selection_sql.has_key(breakdown, parameter), key)

    def _query_rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.library.samples.rows(query, own=list(self.tables), **values)

    def sample(self, row: SampleRow) -> Sample:
        """The whole sample of a row."""
        return self.tables[row.file].sample(row.start, row.size)

    def place(self, task: str, sample_id: str) -> int | None:
        """The place of a sample in the list, from 0; None if it is not in the list."""
        for place, row in enumerate(self.rows):
            if (row.task, row.id) == (task, sample_id):
                return place
        return None

    def random_wrong(self) -> SampleRow | None:
        """A random one of the samples that do not have the full score, if there is any."""
        wrong = [row for row in self.rows if row.is_wrong]
        return random.choice(wrong) if wrong else None

    def counts(self, column: str) -> list[tuple[str, str]]:
        """The values of a column among all samples of the run, labelled with their numbers."""
        value = "status" if column == "status" else f"unnest({quoted(column)})"
        keys = f"select {value} as key from read_parquet($own, union_by_name = true)"
        statement = f"select key, count(*) from ({keys}) group by key order by key"
        labels = []
        for key, count in self._query_rows(statement):
            words = status_words(key) if column == "status" else str(key)
            labels.append((key, f"{words} ({count:,})"))
        return labels

    @property
    def total(self) -> int:
        """Number of samples without filters."""
        return int(self._query_rows("select count(*) from read_parquet($own)")[0][0])


def _bookmark_notes(run: ViewedRun) -> dict[tuple[str, str], str]:
    """The notes on a run's bookmarked samples, by task and sample id."""
    notes: dict[tuple[str, str], str] = {}
    for bookmark in read_bookmarks(run.folder):
        if bookmark.run == run.folder.name:
            notes[bookmark.task, bookmark.sample_id] = bookmark.note
    return notes


def _distinct(name_lists: Iterable[Iterable[str]]) -> list[str]:
    """The names in all lists, each once, in the order of their first list."""
    return list(dict.fromkeys(chain.from_iterable(name_lists)))
