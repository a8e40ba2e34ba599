"""What a view shows: the board of the result directories, the files of its site, the samples by
task and run as the filters of an address select them, and bookmarks: samples that a reader marked,
each with a note, in a file beside the result directories.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from pydantic import ValidationError

from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.catalog.statuses import status_words
from medtasks.core.cache import cache_root
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import canonical_json, read_lines
from medtasks.core.replacement import replaced
from medtasks.core.schema import Frozen, first_problem
from medtasks.core.strict_json import model_from_json
from medtasks.metrics.registry import unit_of
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import read_manifest

from ..figures.figure import Figure
from ..figures.plots import figure_files, figures_of
from ..intake.collect import Progress
from ..intake.remove_rows import layout_of
from ..publish import board_of
from ..schema.board import FORMATS, Board
from ..schema.numbers import shown_name
from ..site.data import runs_on_board, samples_of
from ..verify.scored_run import RunStore, ScoredRun, scored_run
from ..written_site import site_files
from .parquet import SampleTable, SampleTables, quoted

TITLE = "medtasks results"
_DRAWING = threading.Lock()
"""matplotlib draws in one thread at a time."""
_MARKING = threading.Lock()


@dataclass(frozen=True, eq=False)
class Run:
    """One run on the board: ``label`` names its model, and its time if the model has several runs
    of a task.
    """

    key: str
    model: str
    label: str
    folder: Path
    tasks: frozenset[str]
    _store: RunStore = field(repr=False)

    @cached_property
    def scored(self) -> ScoredRun:
        """The run as it is scored here, read when a page first asks for its samples."""
        return scored_run(self.folder, self._store)

    @property
    def manifest(self) -> RunManifest:
        return self.scored.manifest

    def doubts(self, sample: Sample) -> str:
        """What of the sample could not be verified here, and why; empty if all of it was."""
        return self.scored.verification[sample.task].doubts(sample.sample_id)


@dataclass(frozen=True)
class Library:
    """The result directories at one moment; later changes need a new one. ``files`` make the files
    of the site by path when they are asked for.
    """

    board: Board
    runs: tuple[Run, ...]
    files: dict[str, Callable[[], bytes]]
    samples: SampleTables = field(default_factory=SampleTables, repr=False)

    @cached_property
    def asked(self) -> dict[str, dict[Run, list[str]]]:
        """By task, and by group of which several tasks have samples here: the runs, each with its
        tasks in it.
        """
        found = {}
        for name, spec in load_specs().items():
            members = {
                run: [task for task in leaf_tasks(name) if task in run.tasks] for run in self.runs
            }
            tasks = {task for several in members.values() for task in several}
            if len(tasks) > (spec.kind == "group"):
                found[name] = {run: several for run, several in members.items() if several}
        return found

    @property
    def tasks(self) -> list[str]:
        """The tasks with samples, in the order of the installed tasks."""
        return [name for name in self.asked if load_spec(name).kind == "task"]

    def run(self, key: str, task: str, model: str = "") -> Run:
        """The run ``key``, or by default the newest of ``model``, or the first with samples of
        ``task``.
        """
        for run in self.asked.get(task, ()):
            if key in ("", run.key) and (key or model in ("", run.model)):
                return run
        raise UsageError(
            f"{task or 'the address'}: no such task or run has samples here; choose another."
        )

    def tables(self, run: Run, task: str) -> dict[str, SampleTable]:
        """The tables of a run's samples of a task, or of all tasks of a group, by file."""
        leaves = self.asked[task].get(run, ())
        return {
            table.file: table
            for table in (self.samples.table(run.folder, run.scored, leaf) for leaf in leaves)
        }


def read_library(paths: Sequence[Path], progress: Progress = lambda _, __: None) -> Library:
    """The board, the runs and the site of ``paths``, which may have no finished run yet.

    Runs on miniature data are ranked if there are any: nothing is published from here.
    """
    board, _ = board_of(
        paths, title=TITLE, demonstration=None, cache=cache_root(), progress=progress
    )
    links: dict[tuple[str, str], dict[str, str]] = {}
    figures: dict[str, Callable[[], bytes]] = {}
    for benchmark in board.benchmarks:
        for name, figure in figures_of(board, benchmark).items():
            links[benchmark.name, name] = figure_files(benchmark, name, FORMATS)
            for kind, path in links[benchmark.name, name].items():
                figures[path] = partial(_drawn, board, figure, kind)
    found = runs_on_board(board, paths)
    store = RunStore(cache_root() / "scores")
    files = {**site_files(board, links, samples_of(board, found, store), served=True), **figures}

    counts = Counter(facts.model for facts in board.runs.values())
    runs = []
    for key in sorted(found, key=lambda key: board.runs[key].created, reverse=True):
        facts, folder = board.runs[key], found[key].directory
        manifest = read_manifest(folder)
        label = shown_name(board, facts.model, any(one.blind for one in manifest.tasks.values()))
        if counts[facts.model] > 1:
            label += f", {facts.created[:19].replace('T', ' ')}"
        runs.append(Run(key, facts.model, label, folder, frozenset(facts.counts), store))
    return Library(board, tuple(sorted(runs, key=lambda run: run.model)), files)


def _drawn(board: Board, figure: Figure, kind: str) -> bytes:
    from ..figures.draw import draw  # matplotlib takes a second to import

    with _DRAWING:
        return draw(board, figure, (kind,))[kind]


class Bookmark(Frozen):
    """A line of the file of bookmarks; ``run`` is the name of the result directory."""

    run: str
    task: str
    sample_id: str
    note: str


def bookmarks(run: Run) -> list[Bookmark]:
    """The bookmarked samples of the run, and of the runs beside it."""
    path, found = run.folder.parent / "bookmarks.jsonl", []
    with reading(path, "restore or remove it"):
        for number, line in enumerate(read_lines(path) if path.exists() else (), 1):
            try:
                found.append(model_from_json(Bookmark, line))
            except ValidationError as error:
                problem = first_problem(error, Bookmark)
                raise DataError(
                    f"{path}, line {number}: {problem}; correct or remove the line."
                ) from error
    return found


def mark(run: Run, task: str, sample_id: str, note: str | None) -> None:
    """Bookmark a sample with a note, which replaces an earlier one; None removes the bookmark."""
    path, name = run.folder.parent / "bookmarks.jsonl", run.folder.name
    with _MARKING:
        kept = [
            one
            for one in bookmarks(run)
            if (one.run, one.task, one.sample_id) != (name, task, sample_id)
        ]
        if note is not None:
            kept.append(Bookmark(run=name, task=task, sample_id=sample_id, note=note))
        try:
            with replaced(path) as partial:
                partial.write_text(
                    "".join(f"{canonical_json(dict(one))}\n" for one in kept), encoding="utf-8"
                )
        except OSError as error:
            raise DataError(
                f"{path}: cannot be written ({error.strerror}); give access to its directory."
            ) from error


# the samples that an address selects

OUTCOMES = {"right": "right", "partly": "partly right", "wrong": "wrong", "none": "no score"}
"""Outcomes of a sample by one metric, as pages name them: the full score, at least half of it,
less, no value.
"""
_FULL = {"fraction": 1.0, "points": 100.0}
"""The best value of a metric by its unit; other units have none."""
DISAGREEMENTS = {
    "any": "models disagree",
    "alone-wrong": "only this run is wrong",
    "alone-right": "only this run is right",
}
_FILTERS = (
    "task",
    "run",
    "metric",
    "status",
    "outcome",
    "disagree",
    "verdict",
    "marked",
    "words",
    "sort",
    "model",
)
_BREAKDOWN = "by."

_SELECT = """
with every as (select task, sample_id, {outcome} as outcome from read_parquet($every, union_by_name = true)),
     counted as (select task, sample_id, count_if(outcome = 'right') as "right", count_if(outcome != 'none') as scored
                 from every group by task, sample_id),
     own as (select *, {outcome} as outcome, {score} as score
             from read_parquet($own, filename = true, union_by_name = true))
select own.filename, task, sample_id, own.start, own.size, own.outcome, own.score, "right", scored
from own join counted using (task, sample_id) {other}
where {where} order by {order}, sample_id, task
"""
_OTHER = """join (select task, sample_id, choice, {outcome} as outcome
      from read_parquet(list_concat($own, $other), filename = true, union_by_name = true)
      where list_contains($other, filename)) as other using (task, sample_id)"""
_WHERE = {
    "status": "own.status = $status",
    "outcome": "own.outcome = $outcome",
    "verdict": "list_contains(own.decided, $verdict)",
    "marked": "list_contains($marked, task || '/' || sample_id)",
    "words": "contains(own.words, $words)",
    "any": '"right" > 0 and "right" < scored',
    "alone-wrong": """own.outcome in ('wrong', 'partly') and scored > 1 and "right" = scored - 1""",
    "alone-right": """own.outcome = 'right' and scored > 1 and "right" = 1""",
    "other": "(other.outcome != own.outcome or other.choice != own.choice)",
}
_ORDER = {
    "low": "own.score asc nulls last",
    "high": "own.score desc nulls last",
    "split": 'least("right", scored - "right") desc',
}

Query = Mapping[str, str]
"""The filters in an address; empty ones select everything.

``task`` is a task, or a group for the samples of all its tasks. ``model`` is the slug of a model
whose newest run is meant if there is no ``run``. ``disagree`` is one of `DISAGREEMENTS`, or the key
of a run whose outcome or option differs. ``marked`` selects the bookmarked samples,
``by.BREAKDOWN`` those with a key.
"""


def parsed(given: Mapping[str, str]) -> Query:
    """The query of an address's parameters; others are ignored."""
    query = {name: given.get(name, "").strip() for name in _FILTERS}
    query |= {name: key for name, key in given.items() if name.startswith(_BREAKDOWN) and key}
    return query | {"sort": query["sort"] if query["sort"] in _ORDER else ""}


def address(query: Query, page: str, /, **more: str | int) -> str:
    """The address of a page with these filters; ``more`` are other parameters."""
    given = {
        name: value for name, value in {**query, **more}.items() if value != "" and name != "model"
    }
    return f"{page}?{urlencode(given, errors='surrogatepass')}"


def sample_address(query: Query, task: str, sample_id: str, page: str = "sample.html") -> str:
    """The address of a sample's page; only in a group it names the task, too."""
    return address(query, page, id=sample_id, **({} if task == query["task"] else {"of": task}))


class Row(NamedTuple):
    """A sample of a list: the place of its line, its outcome and score; ``right`` of the ``scored``
    runs are right.
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


class Selection:
    """The samples of one run's answers to a task or group that an address asks for, in order; by
    default those of the first task. ``notes`` are those on bookmarked samples of the run, by task
    and sample id.
    """

    def __init__(self, library: Library, given: Mapping[str, str]) -> None:
        query = parsed({"task": next(iter(library.tasks), ""), **given})
        task, disagree = query["task"], query["disagree"]
        self.library, self.run = library, library.run(query["run"], task, query["model"])
        self.query = {**query, "run": self.run.key}
        self.tables = library.tables(self.run, task)
        runs = {run.key: [*library.tables(run, task)] for run in library.asked[task]}
        if disagree and disagree not in (*DISAGREEMENTS, *runs):
            raise UsageError(f"{disagree}: no such run has samples of {task}; choose another.")
        self.metrics = list(
            dict.fromkeys(name for table in self.tables.values() for name in table.metrics)
        )
        self.breakdowns = list(
            dict.fromkeys(name for table in self.tables.values() for name in table.breakdowns)
        )
        self.layout = layout_of(load_spec(task).metadata.benchmark)
        first = (
            query["metric"],
            *(column.metric for column in self.layout.headline),
            *self.metrics,
        )
        self.metric = next((name for name in first if name in self.metrics), "")
        marked = [one for one in bookmarks(self.run) if one.run == self.run.folder.name]
        self.notes = {(one.task, one.sample_id): one.note for one in marked}

        values: dict[str, Any] = {
            "status": query["status"],
            "outcome": query["outcome"] if query["outcome"] in OUTCOMES else "",
            "verdict": query["verdict"],
            "marked": [f"{task}/{name}" for task, name in self.notes] if query["marked"] else None,
            "words": query["words"].casefold(),
        }
        where = [_WHERE[name] for name, value in values.items() if value not in (None, "")]
        if disagree:
            where.append(_WHERE[disagree if disagree in DISAGREEMENTS else "other"])
        for place, name in enumerate(self.breakdowns):
            if key := query.get(f"{_BREAKDOWN}{name}"):
                where.append(f"list_contains(own.{quoted(f'group_{name}')}, $group{place})")
                values[f"group{place}"] = key
        statement = _SELECT.format(
            outcome=outcome(self.metric),
            other=_OTHER.format(outcome=outcome(self.metric)) if disagree in runs else "",
            score=quoted(f"score_{self.metric}") if self.metric else "null::double",
            where=" and ".join(where) or "true",
            order=_ORDER.get(query["sort"], "sample_id"),
        )
        every, other = [file for files in runs.values() for file in files], runs.get(disagree, [])
        self.rows = [Row(*row) for row in self._rows(statement, every=every, other=other, **values)]

    def _rows(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        return self.library.samples.rows(query, own=list(self.tables), **values)

    def sample(self, row: Row) -> Sample:
        return self.tables[row.file].sample(row.start, row.size)

    def counts(self, column: str) -> list[tuple[str, str]]:
        """The values of a column among all samples of the run, labelled with their numbers."""
        value = "status" if column == "status" else f"unnest({quoted(column)})"
        keys = f"select {value} as key from read_parquet($own, union_by_name = true)"
        found = self._rows(f"select key, count(*) from ({keys}) group by key order by key")
        words = status_words if column == "status" else str
        return [(key, f"{words(key)} ({count:,})") for key, count in found]

    @property
    def total(self) -> int:
        """Number of samples without filters."""
        return int(self._rows("select count(*) from read_parquet($own)")[0][0])


def outcome(metric: str) -> str:
    """The outcome of a sample by ``metric`` in SQL."""
    full = _FULL.get(unit_of(metric)) if metric else None
    if full is None:
        return "'none'"
    score = quoted(f"score_{metric}")
    ends = (
        f"when {score} >= {full * (1 - 1e-9)} then 'right' when {score} >= {full / 2} then 'partly'"
    )
    return f"case when {score} is null then 'none' {ends} else 'wrong' end"
