"""The samples of a board's runs, read from their directories when a page needs them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.errors import DataError
from medtasks.runs.sample_files import SampleFile
from medtasks.runs.samples import Sample
from medtasks.scoring.amended import samples_as_scored
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_folder import RunFolder
from medtasks.scoring.verification_outcome import VERIFIED, Verification

from ..intake.collect import find_everything
from ..schema.board import BenchmarkBoard, Board
from ..verify.scored_run import scored_run


@dataclass(frozen=True)
class Answers:
    """The samples of one task of a run as they are scored here, and what could be verified."""

    samples: Sequence[Sample]
    verification: Verification = VERIFIED


class SampleKey(NamedTuple):
    """Identifies the samples of one model on one task."""

    benchmark: str
    task: str
    model: str


SampleText = Mapping[SampleKey, Callable[[], Answers]]
"""Functions that read samples: only those of one task of one model are in memory at a time."""


@dataclass(frozen=True)
class _Amendments:
    """By task, what could be verified of a run, and how its samples are amended."""

    verification: Mapping[str, Verification]
    amended: Mapping[str, bytes]


class _RunSamples:
    """The samples of a run as they are scored here.

    Of the scored run, only what is needed to read them is kept in memory.
    """

    def __init__(self, folder: RunFolder, store: RunStore) -> None:
        self._folder = folder
        self._store = store

    def answers(self, task: str) -> Answers:
        """The samples of one task."""
        amended = self._amendments.amended.get(task, b"")
        file = SampleFile(self._folder.directory / "samples" / f"{task}.jsonl")
        samples = list(samples_as_scored(file, amended))
        return Answers(samples, self._amendments.verification[task])

    @cached_property
    def _amendments(self) -> _Amendments:
        run = scored_run(self._folder, self._store)
        return _Amendments(run.verification, run.record.amended)


def runs_on_board(board: Board, paths: Sequence[Path]) -> dict[str, RunFolder]:
    """The board's runs in ``paths`` by key, found by their contents.

    Unreadable runs are left out; the board itself reports them.
    """
    key_by_digest = {facts.digest: key for key, facts in board.runs.items()}
    runs = {}
    for run in find_everything(paths).runs:
        with contextlib.suppress(DataError):
            if run.content in key_by_digest:
                runs[key_by_digest[run.content]] = run
    return runs


def samples_of(board: Board, runs: Mapping[str, RunFolder], store: RunStore) -> SampleText:
    """The samples of those of the ``runs`` (by key) that ``board`` ranks, as they are scored here.

    If several runs of a model have a task, the newest is used. A track without a page of its own is
    on the page whose tables name its tasks.

    Raises:
        DataError: later, when samples are read, if a run or a sample cannot be read.
    """
    installed = load_specs().keys()
    run_samples: dict[str, _RunSamples] = {}
    samples: dict[SampleKey, Callable[[], Answers]] = {}
    for benchmark in board.benchmarks:
        page_tasks = _tasks_on_page(board, benchmark)
        for model, key in _ranked_runs(board, benchmark, runs):
            if key not in run_samples:
                run_samples[key] = _RunSamples(runs[key], store)
            for task in board.runs[key].counts.keys() & installed & page_tasks:
                read = partial(run_samples[key].answers, task)
                samples[SampleKey(benchmark.name, task, model)] = read
    return samples


def _ranked_runs(
    board: Board, benchmark: BenchmarkBoard, runs: Mapping[str, RunFolder]
) -> list[tuple[str, str]]:
    """The models and keys of the ``runs`` that the benchmark ranks, the newest last."""
    ranked: set[tuple[str, str]] = set()
    for table in benchmark.tables:
        for row in table.rows:
            ranked.update((row.model, key) for key in row.runs if key in runs)

    def age(model_and_key: tuple[str, str]) -> tuple[str, tuple[str, str]]:
        _, key = model_and_key
        return board.runs[key].created, model_and_key

    return sorted(ranked, key=age)


def _tasks_on_page(board: Board, benchmark: BenchmarkBoard) -> set[str]:
    """The benchmark's own tasks, and those that its tables name of tracks without a page."""
    benchmark_names = {entry.name for entry in board.benchmarks}
    in_tables = _tasks_of_tables(benchmark)
    tasks = set()
    for task in load_specs():
        owner = load_spec(task).metadata.benchmark
        is_own = owner == benchmark.name
        is_track = owner not in benchmark_names and task in in_tables
        if is_own or is_track:
            tasks.add(task)
    return tasks


def _tasks_of_tables(benchmark: BenchmarkBoard) -> set[str]:
    """The tasks that the benchmark's tables name, with those of groups."""
    names = {column.task for table in benchmark.tables for column in table.columns}
    tasks: set[str] = set()
    for name in names & load_specs().keys():
        tasks.update(leaf_tasks(name))
    return tasks
