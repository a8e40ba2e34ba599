"""Runs in result directories, read when they are asked for: samples, scores and items as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from medtasks.catalog.spec import leaf_tasks
from medtasks.core.errors import UsageError
from medtasks.core.text import TextTable
from medtasks.leaderboard.board.cells import part_signature
from medtasks.leaderboard.verify.media import pictures
from medtasks.leaderboard.verify.model_identity import model_name
from medtasks.leaderboard.verify.scored_run import ScoredRun, scored_run
from medtasks.leaderboard.view.parquet import SampleTables, table_of
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.python_api.columns import (
    ITEMS,
    SAMPLES,
    SCORES,
    STATES,
    TYPES,
    Table,
    joined,
    repeated,
)
from medtasks.runs.find import (
    SUFFIX,
    finished_run,
    is_unfinished,
    require_directory,
    run_folders,
    unfinished_runs,
)
from medtasks.runs.manifest import RunManifest, now
from medtasks.scoring.finished_run import score_unfinished
from medtasks.scoring.run_cache import user_store
from medtasks.scoring.run_record import RunRecord, read_manifest
from medtasks.scoring.scores import Scores
from medtasks.scoring.summary import format_score, headline_scores
from medtasks.scoring.verified_runs import scored_record

if TYPE_CHECKING:
    from PIL.Image import Image

_OF_SCORE = {
    "value",
    "interval_method",
    "answered",
    "judged",
    "chance",
    "constant",
    "constant_answer",
    "incomplete",
    "reason",
}
"""Columns of `Run.scores` that are fields of the score."""


class _Tables:
    """The tables of one run, or of several: then with the rows of all, without runs that lack the
    task or metric.
    """

    def samples(self, task: str | None = None) -> Table:
        """The samples of all tasks, or of one task or group, a row each, as they are scored here.

        Tasks of packages that are not installed are left out.
        """
        stored, parts = SampleTables(), []
        for run in _each(self):
            known = run.manifest.tasks
            for name in [
                one for one in (known if task is None else leaf_tasks(task)) if one in known
            ]:
                if name not in run.scored.verification:  # of a package that is not installed
                    continue
                if run._record is not None:
                    samples = ((0, 0, sample) for sample in run._record.samples[name])
                    found = table_of(samples, name, run.scored.verification[name])
                else:
                    assert run.path is not None
                    found = pq.read_table(stored.table(run.path, run.scored, name).file)
                public = [
                    one for one in found.column_names if one in SAMPLES or one.startswith("score_")
                ]
                columns = {one: found[one] for one in public if one != "task"}
                parts.append(
                    pa.table(
                        {
                            **repeated(len(found), run=run.name, model=run.model, task=name),
                            **columns,
                        }
                    )
                )
        return joined(
            parts, SAMPLES, task, (name for run in _each(self) for name in run.manifest.tasks)
        )

    def scores(self) -> Table:
        """All scores, a row for each metric of each task, group and group of a breakdown."""
        rows = []
        entries = [(run, entry) for run in _each(self) for entry in run.scored.entries.values()]
        for run, entry in entries:
            parts: list[tuple[str | None, str | None, Scores]] = [(None, None, entry.scores)]
            for name, groups in entry.scores.breakdowns.items():
                parts += [(name, group, scores) for group, scores in groups.items()]
            for breakdown, group, scores in parts:
                place: dict[str, object] = {
                    "run": run.name,
                    "model": run.model,
                    "task": entry.name,
                    "breakdown": breakdown,
                    "group": group,
                }
                for metric, score in scores.metrics.items():
                    low, high = score.interval or (None, None)
                    least, most = score.bounds or (None, None)
                    signature = part_signature(entry.signatures[metric], breakdown, group)
                    row = place | {
                        "metric": metric,
                        "unit": unit_of(metric),
                        "signature": signature,
                    }
                    row |= {
                        "low": low,
                        "high": high,
                        "least": least,
                        "most": most,
                        "items": score.samples,
                    }
                    row |= score.model_dump(include=_OF_SCORE)
                    rows.append(row)
        schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in SCORES])
        return joined([pa.Table.from_pylist(rows, schema=schema)], SCORES)

    def items(self, task: str | None = None, metric: str | None = None) -> Table:
        """What scores are made of, a row for each item and metric; by default of all tasks and
        metrics.

        A group has the items of its tasks, and metrics over several of them.
        """
        parts: list[Any] = []
        known: set[str] = set()
        for run in _each(self):
            entries, names = run.scored.entries, run.manifest.tasks if task is None else [task]
            tables = [entries[name].table for name in names if name in entries]
            known.update(
                run.manifest.tasks
                if metric is None
                else (name for one in tables for name in one.metrics)
            )
            found = [
                (table, name)
                for table in tables
                for name in table.metrics
                if metric in (None, name)
            ]
            for table, name in found:
                size, column = len(table.items), table.column(name)
                with np.errstate(invalid="ignore", divide="ignore"):
                    values = np.asarray(get_metric(name).score(column.statistics), dtype=np.float64)
                flat = pa.array(np.ascontiguousarray(column.statistics).ravel())
                offsets = pa.array(np.arange(size + 1, dtype=np.int32) * column.statistics.shape[1])
                columns = {
                    **repeated(size, run=run.name, model=run.model),
                    "task": list(table.tasks),
                    "item": list(table.items),
                    "cluster": list(table.clusters),
                    "samples": pa.array(table.samples, pa.list_(pa.string())),
                    **repeated(size, metric=name),
                    "state": [STATES[code] for code in column.state.tolist()],
                    "value": pa.array(values, mask=~np.isfinite(values)),
                    **repeated(size, unit=unit_of(name)),
                    "statistics": pa.ListArray.from_arrays(offsets, flat),
                    **{
                        f"group_{key}": pa.array(keys, pa.list_(pa.string()))
                        for key, keys in table.groups.items()
                    },
                }
                parts.append(pa.table(columns))
        return joined(parts, ITEMS, task if metric is None else metric, known)


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
        return ScoredRun.of(run, self.name)

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
        rows = [
            (name, metric, format_score(metric, score), f"{score.samples:,}")
            for name, entry in self.scored.entries.items()
            for metric, score in headline_scores(entry.scores).items()
        ]
        return TextTable(
            ("task", "metric", "score [95 % interval]", "items"), rows, self.model, self.notes
        )

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def _each(of: Any) -> Sequence[Run]:
    """The runs; of one run, itself."""
    return [of] if isinstance(of, Run) else list(of)


class Runs(tuple[Run, ...], _Tables):
    """Several runs; their tables have the rows of all, told apart by the columns ``run`` and
    ``model``.
    """

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        return Runs(found) if isinstance(place, slice) else found

    def __repr__(self) -> str:
        return f"Runs({[run.name for run in self]})"

    def _repr_html_(self) -> str:
        rows = []
        for run in self:
            tasks = ", ".join(run.manifest.groups or run.manifest.tasks)
            rows.append(
                (
                    run.name,
                    run.model,
                    tasks,
                    run.manifest.created,
                    "unfinished" if run.unfinished else "",
                )
            )
        return TextTable(("run", "model", "tasks", "created", ""), rows)._repr_html_()


def open(*paths: str | Path | Iterable[str | Path]) -> Runs:
    """The runs at or below ``paths``, in the order of their paths; nothing is read yet.

    A path is a result directory (``…_medtasks``), a directory that contains some, at any depth, or
    an unfinished run. Several are given one by one, or as a list.

    Raises:
        UsageError: no path is given, one is not a directory, or there is no run.
    """
    named: list[str | Path] = []
    for one_or_several in paths:
        if isinstance(one_or_several, str | Path):
            named.append(one_or_several)
        else:
            named += one_or_several
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
    found = {Path(run.name).resolve(): run for run in reversed(runs)}  # the first of several names
    if not found:
        raise UsageError(
            f"{named[0]}: contains no result directory (…{SUFFIX}); give one, or a directory of some."
        )
    return Runs(found[key] for key in sorted(found))


def scored_of(run: Run | ScoredRun | str | Path) -> ScoredRun:
    """The scored run; of a path, the only one at or below it."""
    if isinstance(run, Run):
        return run.scored
    return scored_run(finished_run(Path(run)), user_store()) if isinstance(run, str | Path) else run
