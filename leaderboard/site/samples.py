"""Samples for the comparison page: only what a benchmark's licence allows, and never media."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from medtasks.catalog.spec import leaf_tasks, load_specs
from medtasks.core.errors import DataError
from medtasks.runs.samples import Sample, without_garbage_collection

from ..board.board import BenchmarkBoard, Board
from ..intake.collect import find_everything
from ..intake.sources import Source


class SampleKey(NamedTuple):
    """Identifies the samples of one task answered by one model."""

    benchmark: str
    task: str
    model: str


@dataclass(frozen=True)
class SampleRow:
    """What may be shown of one sample; texts that may not be shown are None.

    ``question`` includes the options, ``target`` is the reference answer or the correct letter, ``response`` joins
    repeated responses, ``extracted`` is what was scored; a score is None for metrics without a value per sample.
    """

    sample_id: str
    extracted: str | None
    status: str
    scores: Mapping[str, float | None]
    question: str | None = None
    target: str | None = None
    response: str | None = None


SampleText = Mapping[SampleKey, Callable[[], Sequence[SampleRow]]]
"""Functions that read samples, so that only those of one task of one model are in memory."""


def samples_of(board: Board, paths: Sequence[Path]) -> SampleText:
    """The samples of the runs that ``board`` ranks, found in ``paths`` by their digests.

    If several runs of a model have a task, the newest is used. A track without a page of its own is on the page whose
    tables name its tasks.

    Args:
        board: made of the runs in ``paths`` (`medtasks.leaderboard.intake.collect`).
        paths: result directories, or trees that contain some.

    Raises:
        UsageError: one of the paths is not a directory.
        DataError: a run cannot be read; on reading rows, a sample cannot.
    """
    ranked = {run for benchmark in board.benchmarks for _, run in _ranked(benchmark)}
    on_board = runs_on_board(board, ranked, find_everything(paths).runs)
    found = {key: source.read() for key, source in on_board.items()}
    samples: dict[SampleKey, Callable[[], Sequence[SampleRow]]] = {}
    pages = {one.name for one in board.benchmarks}
    for benchmark in board.benchmarks:
        named = {column.task for table in benchmark.tables for column in table.columns} & load_specs().keys()
        other_tasks = {leaf for name in named for leaf in leaf_tasks(name)}
        for model, run in sorted(_ranked(benchmark), key=lambda one: (board.runs[one[1]].created, one)):
            if run not in found:
                continue
            manifest, by_task = found[run]
            for task in by_task:  # asking whether it has a task would read that task's samples
                owner = manifest.tasks[task].benchmark if task in manifest.tasks else ""
                if owner == benchmark.name or (owner and owner not in pages and task in other_tasks):
                    read = partial(_sample_rows, by_task, task, benchmark.shows != "nothing")
                    samples[SampleKey(benchmark.name, task, model)] = read
    return samples


@without_garbage_collection()
def _sample_rows(by_task: Mapping[str, Sequence[Sample]], task: str, texts: bool) -> list[SampleRow]:
    return sorted((sample_row(one, texts) for one in by_task[task]), key=lambda row: row.sample_id)


def runs_on_board(board: Board, keys: Iterable[str], runs: Iterable[Source]) -> dict[str, Source]:
    """The runs with these keys, found by their contents; the board reports those that are unreadable."""
    wanted = {board.runs[key].digest: key for key in keys}
    found = {}
    for run in runs:
        with contextlib.suppress(DataError):
            if key := wanted.get(run.content):
                found[key] = run
    return found


def _ranked(benchmark: BenchmarkBoard) -> set[tuple[str, str]]:
    return {(row.model, run) for table in benchmark.tables for row in table.rows if not row.blind for run in row.runs}


def sample_row(sample: Sample, texts: bool) -> SampleRow:
    """What may be shown of ``sample``; without ``texts`` only its id, extracted option, status and scores."""
    choices = sample.document.get("choices")
    options = dict(choices) if isinstance(choices, dict) else {}
    shown = SampleRow(
        sample_id=sample.sample_id,
        extracted=sample.filtered if texts or sample.filtered in options else None,
        status=sample.status,
        scores=dict(sample.scores),
    )
    if not texts:
        return shown
    question = sample.document.get("question")
    lines = [question if isinstance(question, str) else sample.prompt]
    lines += [f"{letter}. {text}" for letter, text in sorted(options.items())]
    responses = sample.responses
    if len(responses) != 1:
        responses = tuple(f"[response {number}] {text}" for number, text in enumerate(responses, 1))
    return replace(shown, question="\n".join(lines), target=sample.target, response="\n\n".join(responses))
