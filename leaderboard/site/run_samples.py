"""The samples of a board's runs, read from their directories when a page needs them."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
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


class RunSamples:
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
    """Functions that read the samples of each benchmark, task and model, as they are scored here.

    They are those of the ``runs`` (by key) that ``board`` ranks. If several runs of a model have a
    task, the newest is used. A track without a page of its own is on the page whose tables name its
    tasks.

    Raises:
        DataError: later, when samples are read, if a run or a sample cannot be read.
    """
    readers: dict[str, RunSamples] = {}
    samples: dict[SampleKey, Callable[[], Answers]] = {}
    for benchmark in board.benchmarks:
        for sample_key, run_key in _newest_runs(board, benchmark, runs).items():
            if run_key not in readers:
                readers[run_key] = RunSamples(runs[run_key], store)
            samples[sample_key] = partial(readers[run_key].answers, sample_key.task)
    return samples


def _newest_runs(
    board: Board, benchmark: BenchmarkBoard, runs: Iterable[str]
) -> dict[SampleKey, str]:
    """The key of the newest of the ``runs`` that the benchmark ranks, by task and model."""
    page_tasks = _tasks_on_page(board, benchmark)
    candidates: dict[SampleKey, list[str]] = defaultdict(list)
    for model, run_keys in _ranked_runs(benchmark, runs).items():
        for run_key in run_keys:
            for task in board.runs[run_key].counts.keys() & page_tasks:
                candidates[SampleKey(benchmark.name, task, model)].append(run_key)

    def age(run_key: str) -> tuple[str, str]:
        return board.runs[run_key].created, run_key

    return {sample_key: max(run_keys, key=age) for sample_key, run_keys in candidates.items()}


def _ranked_runs(benchmark: BenchmarkBoard, runs: Iterable[str]) -> dict[str, set[str]]:
    """The keys of the ``runs`` in a ranked row of the benchmark's tables, by model."""
    available = set(runs)
    ranked: dict[str, set[str]] = defaultdict(set)
    for table in benchmark.tables:
        for row in table.rows:
            ranked[row.model] |= available.intersection(row.runs)
    return ranked


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
