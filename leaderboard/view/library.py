"""What a view shows: the board of the result directories, its site as files, and their samples by task and run."""

from __future__ import annotations

import functools
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.benchmarks.all_cards import all_cards
from medtasks.benchmarks.card import Card
from medtasks.cache import cache_root
from medtasks.errors import UsageError
from medtasks.results.find import run_folders
from medtasks.results.folder import folder_digest, read_manifest
from medtasks.results.manifest import RunManifest
from medtasks.results.table_file import code_hash
from medtasks.spec import load_spec, load_specs

from ..board import Board
from ..build import build_board
from ..collect import NO_RUN, collect, find_runs
from ..digest_cache import state_of
from ..exports import write_exports
from ..figures import draw_all
from ..numbers import shown_name
from ..releases import Releases
from ..site import samples_of, write_site
from ..site.data import data_scripts
from ..site.samples import runs_on_board
from .index import SampleIndex, read_index

if TYPE_CHECKING:
    from ..site.write import Figures

TITLE = "medtasks results"
_HELD = 48
"""Indexes in memory: those of one task for more models than a page compares."""


@dataclass(frozen=True, eq=False)
class Run:
    """One run on the board: ``label`` names its model, and its time if the model has several runs of a task."""

    key: str
    model: str
    label: str
    folder: Path
    manifest: RunManifest

    def samples(self, task: str) -> Path:
        return self.folder / "samples" / f"{task}.jsonl"


@dataclass(frozen=True)
class Library:
    """The result directories ``paths`` at one moment; later changes need a new one (:func:`state`)."""

    board: Board
    runs: tuple[Run, ...]
    scripts: dict[str, Callable[[], Any]]
    site: tempfile.TemporaryDirectory[str]
    _indexes: Callable[[Path, str], SampleIndex] = field(repr=False)

    @cached_property
    def files(self) -> dict[str, Path]:
        """The site's files by their addresses: nothing else can be asked for."""
        root = Path(self.site.name) / "site"
        return {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}

    @cached_property
    def tasks(self) -> dict[str, tuple[Run, ...]]:
        """The runs with samples of each task, by task in the order of the installed tasks."""
        specs = load_specs()
        found = {task: tuple(run for run in self.runs if task in run.manifest.tasks) for task in specs}
        return {task: runs for task, runs in found.items() if runs and specs[task].kind == "task"}

    def run(self, key: str, task: str, model: str = "") -> Run:
        """The run ``key``, or by default the newest of ``model``, or the first with samples of ``task``.

        Raises:
            UsageError: there is none.
        """
        for run in self.tasks.get(task, ()):
            if key in ("", run.key) and (key or model in ("", run.model)):
                return run
        raise UsageError(f"{task or 'the address'}: no such task or run has samples here; choose another.")

    def index(self, run: Run, task: str) -> SampleIndex:
        return self._indexes(run.samples(task), task)


def card_of(task: str) -> Card:
    """The board layout that says which part of a task's samples may be published; by default nothing."""
    benchmark = load_spec(task).metadata.benchmark
    return all_cards().get(benchmark) or Card(benchmark=benchmark, headline=())


def title_of(task: str) -> str:
    return load_spec(task).benchmark.title


def read_library(paths: Sequence[Path], root: str, progress: Callable[[int, int], None] | None = None) -> Library:
    """The board, the runs and the site of ``paths``, which may have no finished run yet; the site is below ``root``.

    Runs on miniature data are ranked if there are any: nothing is published from here.

    Raises:
        UsageError: one of the paths is not a directory.
    """
    digests, refused = collect(paths, cache_root() / "leaderboard", progress)
    mini = any(digest.facts.mini for digest in digests)
    found = [one for one in refused if digests or one.reason != NO_RUN]
    board = build_board(digests, found, title=TITLE, demonstration=mini, releases=Releases())
    rules = code_hash(Path(__file__).parent.parent)
    read = functools.partial(read_index, cache=cache_root() / "view", rules=rules)
    scripts = dict(data_scripts(board, samples_of(board, paths)))
    site = _written(board, root)
    return Library(board, tuple(_runs(board, paths)), scripts, site, functools.lru_cache(_HELD)(read))


class EndedError(Exception):
    """Figures are no longer wanted."""


def with_figures(library: Library, ended: Callable[[], bool]) -> Library:
    """The library with the figures of its board, which take longer than everything else.

    Raises:
        EndedError: ``ended``, which is asked before each figure, said so.
    """

    def check() -> None:
        if ended():
            raise EndedError

    draw = functools.partial(draw_all, formats=("svg",), before_each=check)
    return replace(library, site=_written(library.board, str(Path(library.site.name).parent), draw))


def _written(board: Board, root: str, draw: Figures | None = None) -> tempfile.TemporaryDirectory[str]:
    """The site, in a directory that exists as long as it is used."""
    site = tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True)
    write_site(board, Path(site.name) / "site", figures=draw, exports=write_exports, served=True)
    return site


def state(paths: Sequence[Path]) -> str:
    """Changes whenever a result directory comes, goes or is replaced."""
    folders = sorted({folder.resolve() for path in paths for folder in run_folders(path)})
    return state_of([file for folder in folders if (file := folder / "manifest.json").is_file()])


def _runs(board: Board, paths: Sequence[Path]) -> list[Run]:
    """The runs of the board, by model and then newest first."""
    several = {model for model, count in Counter(facts.model for facts in board.runs.values()).items() if count > 1}
    runs = []
    for key, folder in runs_on_board(board, board.runs, find_runs(paths), folder_digest).items():
        facts, manifest = board.runs[key], read_manifest(folder)
        name = shown_name(board, facts.model, any(one.blind for one in manifest.tasks.values()))
        label = f"{name}, {facts.created[:19].replace('T', ' ')}" if facts.model in several else name
        runs.append(Run(key, facts.model, label, folder, manifest))
    newest = sorted(runs, key=lambda run: run.manifest.created, reverse=True)
    return sorted(newest, key=lambda run: run.model)
