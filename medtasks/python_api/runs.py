"""Runs in result directories, read when they are asked for: samples, scores and items as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from medtasks.catalog.spec import leaf_tasks
from medtasks.core.errors import UsageError
from medtasks.core.text import TextTable
from medtasks.judge.corrected_scores import CorrectedRun, corrected_run
from medtasks.leaderboard.verify.media import pictures
from medtasks.leaderboard.verify.model_identity import model_name
from medtasks.leaderboard.verify.scored_run import ScoredRun, scored_run
from medtasks.leaderboard.view.parquet import SampleTables
from medtasks.python_api.columns import ITEMS, SAMPLES, SCORES, Table, joined
from medtasks.python_api.latency_table import LATENCIES, latency_table
from medtasks.python_api.tables import item_table, sample_table, score_table
from medtasks.runs.find import (
    SUFFIX,
    finished_run,
    is_unfinished,
    require_directory,
    run_folders,
    unfinished_runs,
)
from medtasks.runs.manifest import RunManifest, now
from medtasks.runs.times import NO_TIMES, Times, read_times
from medtasks.scoring.finished_run import score_unfinished, unfinished_times
from medtasks.scoring.latency import RunLatency, run_latency
from medtasks.scoring.run_cache import user_store
from medtasks.scoring.run_folder import read_manifest
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.summary import format_score, headline_scores
from medtasks.scoring.verified_runs import scored_record

if TYPE_CHECKING:
    from PIL.Image import Image


class _Tables:
    """The tables of one run, or of several: then with the rows of all, without runs that lack the
    task or metric.
    """

    def samples(self, task: str | None = None) -> Table:
        """The samples of all tasks, or of one task or group, a row each, as they are scored here.

        Tasks of packages that are not installed are left out.
        """
        stored = SampleTables()
        parts: list[Any] = []
        available: list[str] = []
        for run in _runs_of(self):
            tasks_of_run = run.manifest.tasks
            available.extend(tasks_of_run)
            for name in tasks_of_run if task is None else leaf_tasks(task):
                is_installed = name in run.scored.verification
                if name in tasks_of_run and is_installed:
                    parts.append(sample_table(run, name, stored))
        return joined(parts, SAMPLES, task, available)

    def scores(self) -> Table:
        """All scores, a row for each metric of each task, group and group of a breakdown."""
        parts = [score_table(run) for run in _runs_of(self)]
        return joined(parts, SCORES)

    def items(self, task: str | None = None, metric: str | None = None) -> Table:
        """What scores are made of, a row for each item and metric.

        Those of all tasks and metrics by default. A group has the items of its tasks, and metrics
        over several of them.
        """
        parts: list[Any] = []
        available: set[str] = set()
        for run in _runs_of(self):
            entries = run.scored.entries
            if metric is None:
                available.update(run.manifest.tasks)
            for name in run.manifest.tasks if task is None else [task]:
                if name not in entries:
                    continue
                table = entries[name].table
                if metric is not None:
                    available.update(table.metrics)
                for metric_name in table.metrics:
                    if metric in (None, metric_name):
                        parts.append(item_table(run, table, metric_name))
        return joined(parts, ITEMS, task if metric is None else metric, available)

    def latency(self) -> Table:
        """How long the models took to answer, a row for each task and group.

        A run without seconds has one row with the reason.

        Raises:
            DataError: the times of a run cannot be read; names file, line and field.
        """
        parts = [latency_table(run.name, run.model, run.run_latency) for run in _runs_of(self)]
        return joined(parts, LATENCIES)


@dataclass(frozen=True, eq=False)
class Run(_Tables):
    """One run: a result directory, the replies of an unfinished run, or predictions scored here.

    Nothing is read before it is asked for. ``name`` is the path of the directory; empty if the run
    is not saved.
    """

    name: str
    path: Path | None
    _load: Callable[[], RunRecord] | None = field(default=None, repr=False)
    """Makes the run if it is not a finished result directory."""
    _remarks: Sequence[str] = field(default=(), repr=False)

    @property
    def unfinished(self) -> bool:
        """Whether the run was interrupted: repeating its command finishes it."""
        return self.path is not None and is_unfinished(self.path)

    @property
    def is_result_directory(self) -> bool:
        """Whether the run is a finished result directory, from which it is read."""
        return self._load is None

    @cached_property
    def _record(self) -> RunRecord | None:
        return None if self._load is None else self._load()

    @cached_property
    def manifest(self) -> RunManifest:
        """Everything needed to repeat the run, and to tell whether two results are comparable.

        Raises:
            DataError: it cannot be read; names file and field.
        """
        if self._record is not None:
            return self._record.manifest
        assert self.path is not None
        return read_manifest(self.path)

    @property
    def model(self) -> str:
        """The model's name, as on a board."""
        return str(model_name(self.manifest))

    @cached_property
    def scored(self) -> ScoredRun:
        """The run as a board scores it: from its responses, by the data and the rules of this
        machine.

        Raises:
            MedtasksError: it cannot be read or scored.
        """
        if self._record is None:
            assert self.path is not None
            return scored_run(self.path, user_store())
        run = scored_record(self._record.manifest, self._record.samples, self.name, own=True)
        return ScoredRun(run, self.name)

    @property
    def whole(self) -> ScoredRun:
        """The run as `scored` has it, with its samples, which are read anew.

        Raises:
            MedtasksError: it cannot be read or scored.
        """
        if self._record is None:
            assert self.path is not None
            return scored_run(self.path, user_store(), whole=True)
        record = self._record
        run = scored_record(record.manifest, record.samples, self.name, own=True, whole=True)
        return ScoredRun(run, self.name)

    def corrected(self, human: str | Path) -> CorrectedRun:
        """The judged scores, corrected by people: what they would give to all answers.

        Args:
            human: their ratings of a sample: a file or folder of ``medtasks rate``, or a CSV file
                with probabilities.

        Raises:
            UsageError: the run was not judged under the ratings' rubric, has several responses to a
                question, or the ratings are of other answers.
            MedtasksError: the run or the ratings cannot be read.
        """
        return corrected_run(self.whole.record, Path(human))

    @property
    def run_latency(self) -> RunLatency:
        """How long the model took to answer, by task and group, or why that is not known.

        Raises:
            DataError: the times of the run cannot be read; names file, line and field.
        """
        times: Times = NO_TIMES
        if self.unfinished:
            assert self.path is not None
            times = unfinished_times(self.path)
        elif self.path is not None:
            times = read_times(self.path)
        return run_latency(self.scored.record, times, self.path)

    @property
    def notes(self) -> list[str]:
        """What a reader of the scores must know: blind, miniature data, unanswered documents,
        claimed scores.
        """
        return [*self._remarks, *self.scored.public.notes]

    def pictures(self, task: str, sample_id: str) -> list[Image]:
        """What the model was shown of a sample of a task, in order, as PIL images of the data
        prepared here.

        Raises:
            MedtasksError: the data of the run are not prepared here, or have no such sample.
        """
        return list(pictures(task, sample_id, self.manifest))

    @property
    def table(self) -> TextTable:
        """The headline scores of all tasks and groups with their intervals."""
        rows = []
        for name, entry in self.scored.entries.items():
            for metric, score in headline_scores(entry.scores).items():
                rows.append((name, metric, format_score(metric, score), f"{score.samples:,}"))
        columns = ("task", "metric", "score [95 % interval]", "items")
        return TextTable(columns, rows, self.model, self.notes)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _runs_of(runs: Any) -> Sequence[Run]:
    """The runs; of one run, itself."""
    return [runs] if isinstance(runs, Run) else list(runs)


class Runs(tuple[Run, ...], _Tables):
    """Several runs; their tables have the rows of all, told apart by the columns ``run`` and
    ``model``.
    """

    def __getitem__(self, place: Any) -> Any:
        chosen = super().__getitem__(place)
        return Runs(chosen) if isinstance(place, slice) else chosen

    def __repr__(self) -> str:
        return f"Runs({[run.name for run in self]})"

    def _repr_html_(self) -> str:
        rows = []
        for run in self:
            tasks = ", ".join(run.manifest.groups or run.manifest.tasks)
            state = "unfinished" if run.unfinished else ""
            rows.append((run.name, run.model, tasks, run.manifest.created, state))
        return TextTable(("run", "model", "tasks", "created", ""), rows)._repr_html_()


def open(*paths: str | Path | Iterable[str | Path]) -> Runs:
    """The runs at or below ``paths``, in the order of their paths; nothing is read yet.

    A path is a result directory (``…_medtasks``), a directory that contains some, at any depth, or
    an unfinished run. Several are given one by one, or as a list.

    Raises:
        UsageError: no path is given, one is not a directory, or there is no run.
    """
    named: list[str | Path] = []
    for argument in paths:
        if isinstance(argument, str | Path):
            named.append(argument)
        else:
            named.extend(argument)
    if not named:
        raise UsageError(
            "open() needs a path; give a result directory (…_medtasks), or one that contains some."
        )
    runs: list[Run] = []
    for path in map(Path, named):
        require_directory(path)
        for folder in unfinished_runs(path):
            runs.append(Run(str(folder), folder, partial(score_unfinished, folder, created=now())))
        runs += [Run(str(folder), folder) for folder in run_folders(path)]
    # reversed: of several names of one directory, the first is kept
    by_path = {Path(run.name).resolve(): run for run in reversed(runs)}
    if not by_path:
        raise UsageError(
            f"{named[0]}: contains no result directory (…{SUFFIX}); give one, or a directory "
            "of some."
        )
    return Runs(by_path[path] for path in sorted(by_path))


AnyRun: TypeAlias = Run | ScoredRun | str | Path
"""A run, or the path of a directory that contains one."""


def scored_of(run: AnyRun, *, whole: bool = False) -> ScoredRun:
    """The scored run, with ``whole`` with its samples; of a path, the only one at or below it."""
    if isinstance(run, Run):
        return run.whole if whole else run.scored
    if isinstance(run, ScoredRun):
        return run
    return scored_run(finished_run(Path(run)), user_store(), whole=whole)
