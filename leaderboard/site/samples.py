"""Samples for the comparison page: what a benchmark's licence lets be shown of them, and never their media."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from medtasks.errors import DataError
from medtasks.results.folder import folder_digest
from medtasks.results.manifest import RunManifest
from medtasks.results.samples import Sample, read_samples
from medtasks.spec import leaf_tasks, load_specs

from ..board import BenchmarkBoard, Board
from ..collect import find_plain_runs, find_runs
from ..plain import converted, plain_digest

__all__ = ["SampleKey", "SampleRow", "SampleText", "sample_row", "samples_of"]

Run = TypeVar("Run")


class SampleKey(NamedTuple):
    """Whose samples: of one task, answered by one model."""

    benchmark: str
    task: str
    model: str


@dataclass(frozen=True)
class SampleRow:
    """What may be shown of one answered question. Texts that may not be shown are None.

    Args:
        sample_id: of the sample.
        question: what was asked, with the options where there are some.
        target: the reference answer, or the right option's letter.
        response: what the model said; several responses to one question follow one another.
        extracted: what was scored.
        status: of the extraction.
        scores: by metric; None where the sample has no value of its own.
    """

    sample_id: str
    question: str | None
    target: str | None
    response: str | None
    extracted: str | None
    status: str
    scores: Mapping[str, float | None]


class SampleText(Protocol):
    """Where the pages take samples from, one task of one model at a time."""

    def keys(self) -> Sequence[SampleKey]:
        """What there is, sorted."""

    def rows(self, key: SampleKey) -> tuple[SampleRow, ...]:
        """The samples of ``key``, sorted by id."""


@dataclass(frozen=True)
class _RunSamples:
    """Samples of runs, read from their files when they are asked for, so that memory holds those of one task alone.

    A run that only the harness logged has no such files: its samples are held. ``texts`` says by benchmark whether
    texts may be shown.
    """

    sources: Mapping[SampleKey, Path | Sequence[Sample]]
    texts: Mapping[str, bool]

    def keys(self) -> Sequence[SampleKey]:
        return sorted(self.sources)

    def rows(self, key: SampleKey) -> tuple[SampleRow, ...]:
        source = self.sources[key]
        samples = read_samples(source) if isinstance(source, Path) else source
        rows = (sample_row(one, self.texts[key.benchmark]) for one in samples)
        return tuple(sorted(rows, key=lambda row: row.sample_id))


def samples_of(board: Board, paths: Sequence[Path]) -> SampleText:
    """The samples of the runs that ``board`` ranks, found in ``paths`` by their digests.

    Where several runs of a model hold a task, the newest counts. Runs that are set apart are left out: there is no
    comparison of them. So are folders that cannot be read: no board has them. A track without a page of its own stands
    on the page whose tables name its tasks.

    Args:
        board: made of the runs in ``paths`` (`medtasks.leaderboard.collect`).
        paths: result folders, or trees that hold some.

    Raises:
        UsageError: one of the paths is not a directory.
        DataError: a run cannot be read; on reading rows, a sample cannot.
    """
    ranked = {(model, run) for benchmark in board.benchmarks for model, run in _ranked(benchmark)}
    runs = {board.runs[key].digest: key for _, key in ranked}
    found: dict[str, Mapping[str, tuple[str, Path | Sequence[Sample]]]] = {}
    for folder in find_runs(paths):
        if key := runs.get(_content(folder_digest, folder)):
            found[key] = _of_folder(folder)
    for plain in find_plain_runs(paths):
        if key := runs.get(_content(plain_digest, plain)):
            record = converted(plain)
            found[key] = {task: (record.manifest.tasks[task].benchmark, it) for task, it in record.samples.items()}
    sources: dict[SampleKey, Path | Sequence[Sample]] = {}
    pages = {one.name for one in board.benchmarks}
    for benchmark in board.benchmarks:
        beside = _tasks_on(benchmark)
        for model, run in sorted(_ranked(benchmark), key=lambda one: (board.runs[one[1]].created, one)):
            for task, (owner, source) in found.get(run, {}).items():
                if owner == benchmark.name or (owner not in pages and task in beside):
                    sources[SampleKey(benchmark.name, task, model)] = source
    return _RunSamples(sources, {one.name: one.shows != "nothing" for one in board.benchmarks})


def _content(digest: Callable[[Run], str], run: Run) -> str:
    """The digest of what a run holds; empty where it cannot be read, which the board says."""
    try:
        return digest(run)
    except DataError:
        return ""


def _tasks_on(benchmark: BenchmarkBoard) -> set[str]:
    """The tasks, and those of the groups, that the page's tables name."""
    named = {column.task for table in benchmark.tables for column in table.columns} & load_specs().keys()
    return {leaf for name in named for leaf in leaf_tasks(name)}


def _ranked(benchmark: BenchmarkBoard) -> set[tuple[str, str]]:
    """Models, and the runs that their ranked rows rest on."""
    return {(row.model, run) for table in benchmark.tables for row in table.rows if not row.blind for run in row.runs}


def _of_folder(folder: Path) -> dict[str, tuple[str, Path]]:
    """The tasks that ``folder`` has samples of, with their benchmarks. Files are found, never named by a manifest."""
    path = folder / "manifest.json"
    try:
        manifest = RunManifest.model_validate_json(path.read_text(encoding="utf-8"))
    except (ValidationError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not the manifest of a run; restore it.") from error
    files = sorted((folder / "samples").glob("*.jsonl"))
    return {file.stem: (manifest.tasks[file.stem].benchmark, file) for file in files if file.stem in manifest.tasks}


def sample_row(sample: Sample, texts: bool) -> SampleRow:
    """What may be shown of ``sample``; without ``texts`` its id, extracted option, status and scores alone."""
    choices = sample.document.get("choices")
    options = dict(choices) if isinstance(choices, dict) else {}
    if not texts:
        option = sample.filtered if sample.filtered in options else None
        return SampleRow(sample.sample_id, None, None, None, option, sample.status, dict(sample.scores))
    return SampleRow(
        sample_id=sample.sample_id,
        question=_question(sample, options),
        target=sample.target,
        response=_responses(sample.responses),
        extracted=sample.filtered,
        status=sample.status,
        scores=dict(sample.scores),
    )


def _question(sample: Sample, options: Mapping[str, object]) -> str:
    question = sample.document.get("question")
    lines = [question if isinstance(question, str) else sample.prompt]
    return "\n".join([*lines, *(f"{letter}. {text}" for letter, text in sorted(options.items()))])


def _responses(responses: Sequence[str]) -> str:
    if len(responses) == 1:
        return responses[0]
    return "\n\n".join(f"[response {number}] {text}" for number, text in enumerate(responses, 1))
