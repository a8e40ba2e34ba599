"""The samples that an address selects: those of one run's answers to a task or group."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import status_words
from medtasks.core.errors import UsageError
from medtasks.runs.samples import Sample

from ..intake.shown_layouts import layout_of
from . import selection_sql
from .addresses import BREAKDOWN_PREFIX, parsed_query
from .bookmarks import read_bookmarks
from .library import Library
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


class Selection:
    """The samples that an address selects, in order; by default those of the first task.

    ``notes`` are those on the run's bookmarked samples, by task and sample id.
    """

    def __init__(self, library: Library, parameters: Mapping[str, str]) -> None:
        """Select the samples for an address's query; a `UsageError` if it names an unknown run."""
        first_task = next(iter(library.tasks), "")
        query = parsed_query({"task": first_task, **parameters})
        task = query["task"]
        self.library = library
        self.run = library.run(query["run"], task, query["model"])
        self.query = {**query, "run": self.run.key}
        self.tables = library.tables(self.run, task)
        self._files = {run.key: [*library.tables(run, task)] for run in library.runs_of[task]}
        disagree = query["disagree"]
        if disagree and disagree not in (*selection_sql.DISAGREEMENTS, *self._files):
            raise UsageError(f"{disagree}: no such run has samples of {task}; choose another.")
        self.metrics = _union(self.tables, "metrics")
        self.breakdowns = _union(self.tables, "breakdowns")
        self.layout = layout_of(load_spec(task).metadata.benchmark)
        self.metric = self._metric()
        self.notes: dict[tuple[str, str], str] = {}
        for bookmark in read_bookmarks(self.run.folder):
            if bookmark.run == self.run.folder.name:
                self.notes[bookmark.task, bookmark.sample_id] = bookmark.note
        self.rows = self._selected_rows()

    def _metric(self) -> str:
        """The metric that decides outcomes: the query's, a headline metric or the first one."""
        headline = [column.metric for column in self.layout.headline]
        for metric in (self.query["metric"], *headline, *self.metrics):
            if metric in self.metrics:
                return metric
        return ""

    def _selected_rows(self) -> list[SampleRow]:
        """The rows that meet all conditions of the query, in its order."""
        disagree = self.query["disagree"]
        values = self._condition_values()
        conditions = [selection_sql.CONDITIONS[name] for name in values]
        if disagree in selection_sql.DISAGREEMENTS:
            conditions.append(selection_sql.DISAGREEMENTS[disagree].condition)
        elif disagree:
            conditions.append(selection_sql.DIFFERS_FROM_OTHER)
        for place, breakdown in enumerate(self.breakdowns):
            key = self.query.get(f"{BREAKDOWN_PREFIX}{breakdown}")
            if key:
                parameter = f"group{place}"
                conditions.append(selection_sql.has_key(breakdown, parameter))
                values[parameter] = key
        values["other"] = self._files.get(disagree, [])
        values["every"] = []
        for files in self._files.values():
            values["every"] += files
        statement = selection_sql.selecting(
            self.metric, conditions, self.query["sort"], joins_other=disagree in self._files
        )
        return [SampleRow(*row) for row in self._query_rows(statement, **values)]

    def _condition_values(self) -> dict[str, Any]:
        """The values of the query's conditions, without those that select everything."""
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
        return values

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


def _union(tables: Mapping[str, SampleTable], field: str) -> list[str]:
    """The names in a field of the tables, each once, in the order of their first table."""
    names: dict[str, None] = {}
    for table in tables.values():
        names |= dict.fromkeys(getattr(table, field))
    return list(names)
