"""What a view shows: the board of the result directories, its runs, and the files of its site."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.extras import needs
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.run_folder import RunFolder, read_manifest

from ..audit.audit_folders import answered_run
from ..audit.audit_report import AuditReport, audit_runs
from ..figures.figure import Figure
from ..figures.plots import figure_files, figures_of
from ..intake.collect import Progress
from ..publish import BoardOptions, board_of
from ..schema.board import Board
from ..schema.numbers import shown_name
from ..schema.plot_data import FORMATS
from ..site.run_samples import runs_on_board, samples_of
from ..verify.gold_verdicts import GoldVerdicts, verdicts_beside
from ..verify.scored_run import RunStore, ScoredRun, scored_run
from ..written_site import site_files
from .parquet import SampleTable, SampleTables

TITLE = "medtasks results"
_DRAWING = threading.Lock()
"""matplotlib draws in one thread at a time."""


@dataclass(frozen=True, eq=False)
class ViewedRun:
    """One run on the board.

    ``label`` names its model, and its time if the model has several runs.
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
    """The result directories at one moment; later changes need a new one.

    ``files`` make the files of the site by path when they are asked for. ``results`` is the first
    of the paths that were read.
    """

    board: Board
    runs: tuple[ViewedRun, ...]
    files: dict[str, Callable[[], bytes]]
    samples: SampleTables = field(default_factory=SampleTables, repr=False)
    results: Path | None = None

    @cached_property
    def runs_of(self) -> dict[str, dict[ViewedRun, list[str]]]:
        """The runs with samples of each task, or of several tasks of each group.

        Each run is with its tasks in the group.
        """
        runs_of = {}
        for name, spec in load_specs().items():
            leaves = leaf_tasks(name)
            members: dict[ViewedRun, list[str]] = {}
            for run in self.runs:
                tasks = [task for task in leaves if task in run.tasks]
                if tasks:
                    members[run] = tasks
            fewest = 2 if spec.kind == "group" else 1
            if len(set().union(*members.values())) >= fewest:
                runs_of[name] = members
        return runs_of

    @cached_property
    def audit(self) -> AuditReport:
        """The questions whose gold answer deserves a second look; made when a page first asks."""
        return audit_runs([answered_run(run.scored, run.folder) for run in self.runs])

    @property
    def gold_verdicts(self) -> GoldVerdicts:
        """What people said of gold answers by now: the ratings beside the first results."""
        return GoldVerdicts() if self.results is None else verdicts_beside(self.results)

    @property
    def tasks(self) -> list[str]:
        """The tasks with samples, in the order of the installed tasks."""
        return [name for name in self.runs_of if load_spec(name).kind == "task"]

    def run(self, key: str, task: str, model: str = "") -> ViewedRun:
        """The run ``key``, or by default the newest of ``model``, or the first with samples of
        ``task``.
        """
        for run in self.runs_of.get(task, ()):
            is_default = not key and model in ("", run.model)
            if is_default or key == run.key:
                return run
        raise UsageError(
            f"{task or 'the address'}: no such task or run has samples here; choose another."
        )

    def tables(self, run: ViewedRun, task: str) -> dict[str, SampleTable]:
        """The tables of a run's samples of a task, or of all tasks of a group, by file."""
        tables = {}
        for leaf in self.runs_of[task].get(run, ()):
            table = self.samples.table(run.folder, run.scored.record, leaf)
            tables[table.file] = table
        return tables


def read_library(paths: Sequence[Path], progress: Progress = lambda _, __: None) -> Library:
    """The board, the runs and the site of ``paths``, which may have no finished run yet.

    Runs on miniature data are ranked if there are any: nothing is published from here.
    """
    options = BoardOptions(title=TITLE, demonstration=None)
    board = board_of(paths, options, cache=cache_root(), progress=progress).board
    links: dict[tuple[str, str], dict[str, str]] = {}
    figures: dict[str, Callable[[], bytes]] = {}
    for benchmark in board.benchmarks:
        for name, figure in figures_of(board, benchmark).items():
            paths_by_format = figure_files(benchmark, name, FORMATS)
            links[benchmark.name, name] = paths_by_format
            for kind, path in paths_by_format.items():
                figures[path] = partial(_drawn, board, figure, kind)
    folders = runs_on_board(board, paths)
    store = RunStore(cache_root() / "scores")
    files = site_files(board, links, samples_of(board, folders, store), served=True)
    runs = _viewed_runs(board, folders, store)
    return Library(board, runs, {**files, **figures}, results=next(iter(paths), None))


def _viewed_runs(
    board: Board, folders: Mapping[str, RunFolder], store: RunStore
) -> tuple[ViewedRun, ...]:
    """The runs in ``folders`` by model, the newest of a model first."""
    runs_of_model = Counter(facts.model for facts in board.runs.values())
    runs = []
    for key in sorted(folders, key=lambda key: board.runs[key].created, reverse=True):
        facts, folder = board.runs[key], folders[key].directory
        tasks = read_manifest(folder).tasks.values()
        label = shown_name(board, facts.model, any(task.blind for task in tasks))
        if runs_of_model[facts.model] > 1:
            time = facts.created[:19].replace("T", " ")
            label += f", {time}"
        runs.append(ViewedRun(key, facts.model, label, folder, frozenset(facts.counts), store))
    return tuple(sorted(runs, key=lambda run: run.model))


def _drawn(board: Board, figure: Figure, kind: str) -> bytes:
    """A figure as a file of the format ``kind``."""
    with needs("figures", "drawing figures as files"):
        from ..figures.draw import draw  # matplotlib takes a second to import

    with _DRAWING:
        return draw(board, figure, (kind,))[kind]
