"""What a view shows: the board of the result directories, the files of its site, the samples by task and run, and
bookmarks: samples that a reader marked, each with a note, in a file beside the result directories."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from pydantic import ValidationError

from medtasks.benchmarks.layouts import all_layouts
from medtasks.catalog.board_layout import BoardLayout
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.cache import cache_root
from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import canonical_json, read_lines, replaced
from medtasks.core.schema import Frozen, first_problem
from medtasks.runs.find import run_folders
from medtasks.runs.manifest import RunManifest
from medtasks.runs.record import RunFolder, read_manifest

from ..board.board import FORMATS, BenchmarkBoard, Board
from ..board.numbers import safe_name, shown_name
from ..figures.plots import figures_of
from ..intake.collect import find_everything
from ..publish import board_of, site_files
from ..site.data import runs_on_board, samples_of
from .parquet import SampleTable, SampleTables, state_of

TITLE = "medtasks results"
_DRAWING = threading.Lock()
"""matplotlib draws in one thread at a time."""
BOOKMARKS = "bookmarks.jsonl"
LONGEST_NOTE = 4_000
"""Characters."""
_WRITING = threading.Lock()

Notes = Mapping[tuple[str, str], str]
"""The notes on samples of one run, by task and sample id."""


class Bookmark(Frozen):
    """A line of the file; ``run`` is the name of the result directory."""

    run: str
    task: str
    sample_id: str
    note: str


@dataclass(frozen=True, eq=False)
class Run:
    """One run on the board: ``label`` names its model, and its time if the model has several runs of a task."""

    key: str
    model: str
    label: str
    folder: Path
    manifest: RunManifest


@dataclass(frozen=True)
class Library:
    """The result directories ``paths`` at one moment; later changes need a new one (:func:`state`).

    ``files`` make the files of the site by path when they are asked for; None for a figure without values.
    """

    board: Board
    runs: tuple[Run, ...]
    files: dict[str, Callable[[], bytes | None]]
    samples: SampleTables = field(repr=False)

    @cached_property
    def asked(self) -> dict[str, dict[Run, list[str]]]:
        """By task, and by group of which several tasks have samples here: the runs, each with its tasks in it."""
        found = {}
        for name, spec in load_specs().items():
            members = {run: [task for task in leaf_tasks(name) if task in run.manifest.tasks] for run in self.runs}
            tasks = {task for several in members.values() for task in several}
            if len(tasks) > (spec.kind == "group"):
                found[name] = {run: several for run, several in members.items() if several}
        return found

    @property
    def tasks(self) -> list[str]:
        """The tasks with samples, in the order of the installed tasks."""
        return [name for name in self.asked if load_spec(name).kind == "task"]

    def run(self, key: str, task: str, model: str = "") -> Run:
        """The run ``key``, or by default the newest of ``model``, or the first with samples of ``task``.

        Raises:
            UsageError: there is none.
        """
        for run in self.asked.get(task, ()):
            if key in ("", run.key) and (key or model in ("", run.model)):
                return run
        raise UsageError(f"{task or 'the address'}: no such task or run has samples here; choose another.")

    def tables(self, run: Run, task: str) -> list[SampleTable]:
        """The tables of a run's samples of a task, or of all tasks of a group."""
        leaves = self.asked[task].get(run, ())
        return [self.samples.table(run.folder / "samples" / f"{leaf}.jsonl", leaf) for leaf in leaves]


def layout_of(task: str) -> BoardLayout:
    """The board layout that says which part of a task's samples may be published; by default nothing."""
    benchmark = load_spec(task).metadata.benchmark
    return all_layouts().get(benchmark) or BoardLayout(benchmark=benchmark, headline=())


def title_of(task: str) -> str:
    return load_spec(task).benchmark.title


def read_library(paths: Sequence[Path], progress: Callable[[int, int], None] | None = None) -> Library:
    """The board, the runs and the site of ``paths``, which may have no finished run yet.

    Runs on miniature data are ranked if there are any: nothing is published from here.
    """
    board, _ = board_of(paths, title=TITLE, demonstration=None, cache=cache_root(), progress=progress)
    links: dict[tuple[str, str], dict[str, str]] = {}
    figures: dict[str, Callable[[], bytes | None]] = {}
    for benchmark in board.benchmarks:
        for plot in benchmark.plots:
            if plot.kind not in ("letters", "timeline"):
                stem = f"figures/{safe_name(benchmark.name)}/{safe_name(plot.name)}"
                links[benchmark.name, plot.name] = {kind: f"{stem}.{kind}" for kind in FORMATS}
                figures |= {f"{stem}.{kind}": partial(_drawn, board, benchmark, plot.name, kind) for kind in FORMATS}
    return Library(
        board,
        tuple(_runs(board, paths)),
        {**site_files(board, links, samples_of(board, paths), served=True), **figures},
        SampleTables(),
    )


def _drawn(board: Board, benchmark: BenchmarkBoard, plot: str, kind: str) -> bytes | None:
    from ..figures.draw import draw  # matplotlib takes a second to import

    figure = figures_of(board, benchmark).get(plot)
    with _DRAWING:
        return None if figure is None else draw(board, figure, (kind,))[kind]


def state(paths: Sequence[Path]) -> str:
    """Changes whenever a result directory comes, goes or is replaced."""
    folders = sorted({folder.resolve() for path in paths for folder in run_folders(path)})
    return state_of([file for folder in folders if (file := folder / "manifest.json").is_file()])


def _runs(board: Board, paths: Sequence[Path]) -> list[Run]:
    """The runs of the board, by model and then newest first."""
    several = {model for model, count in Counter(facts.model for facts in board.runs.values()).items() if count > 1}
    runs = []
    for key, run in runs_on_board(board, board.runs, map(RunFolder, find_everything(paths).folders)).items():
        folder = run.directory
        facts, manifest = board.runs[key], read_manifest(folder)
        name = shown_name(board, facts.model, any(one.blind for one in manifest.tasks.values()))
        label = f"{name}, {facts.created[:19].replace('T', ' ')}" if facts.model in several else name
        runs.append(Run(key, facts.model, label, folder, manifest))
    runs.sort(key=lambda run: run.manifest.created, reverse=True)
    return sorted(runs, key=lambda run: run.model)


def notes_of(run: Run) -> Notes:
    """The notes on the run's bookmarked samples.

    Raises:
        DataError: the file cannot be read; names the line.
    """
    kept = _bookmarks(run.folder.parent / BOOKMARKS)
    return {(one.task, one.sample_id): one.note for one in kept if one.run == run.folder.name}


def bookmark(run: Run, task: str, sample_id: str, note: str | None) -> None:
    """Bookmark a sample with a note, which replaces an earlier one; None removes the bookmark.

    Raises:
        UsageError: the note is too long.
        DataError: the file cannot be read or written.
    """
    if note is not None and len(note) > LONGEST_NOTE:
        raise UsageError(f"the note has {len(note):,} characters, expected at most {LONGEST_NOTE:,}; shorten it.")
    path, name = run.folder.parent / BOOKMARKS, run.folder.name
    with _WRITING:
        kept = [one for one in _bookmarks(path) if (one.run, one.task, one.sample_id) != (name, task, sample_id)]
        if note is not None:
            kept.append(Bookmark(run=name, task=task, sample_id=sample_id, note=note))
        try:
            with replaced(path) as partial:
                partial.write_text("".join(f"{canonical_json(dict(one))}\n" for one in kept), encoding="utf-8")
        except OSError as error:
            raise DataError(f"{path}: cannot be written ({error.strerror}); give access to its directory.") from error


def _bookmarks(path: Path) -> list[Bookmark]:
    found = []
    with reading(path, "restore or remove it"):
        for number, line in enumerate(read_lines(path) if path.exists() else (), 1):
            try:
                found.append(Bookmark.model_validate_json(line))
            except ValidationError as error:
                problem = first_problem(error, Bookmark)
                raise DataError(f"{path}, line {number}: {problem}; correct or remove the line.") from error
    return found
