"""A run as it is scored on this machine: scored once, kept in the user's cache, and read by every command.

Responses and verdicts are taken from the directory; all else is worked out by the data and the rules of this machine
(`medtasks.leaderboard.verify.verification`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from pydantic import BaseModel

from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import sample_items
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.errors import DataError, UsageError
from medtasks.core.files import canonical_json
from medtasks.data.prepared import data_root, is_mini
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.runs.comparisons import LevelGap, Paired
from medtasks.runs.folder import RunRecord, as_data_error, file_sha256
from medtasks.runs.manifest import RunManifest, TaskFacts, scoring_versions
from medtasks.runs.samples import Sample, SampleLines, duplicate_ids, without_garbage_collection
from medtasks.runs.scores import Scores
from medtasks.runs.scoring import scores_of
from medtasks.runs.signature import signature
from medtasks.runs.table import ItemTable, Lazy, Rows, RunTables, shared
from medtasks.runs.table_file import TableStore, code_hash, compressed
from medtasks.runs.verdicts import judged_threshold, own_judge_hash

from ..board.board import BoardRun, Timeline
from ..board.models import model_key
from ..board.numbers import safe_name
from ..intake.sources import RunFolder, Source
from .board_run import board_run, created, run_notes, timelines
from .local_documents import is_miniature
from .verification import SubmittedTask, Verification, installed_rubrics, require_statistics, verification_notes

Samples = Mapping[str, Sequence[Sample]]
T = TypeVar("T")
_OF_BOTH = ("verification", "responses", "notes", "changes", "mode")
"""What a scored run has, and what is kept of it."""


@dataclass(frozen=True)
class Entry:
    """A task or group of one run.

    ``scores`` are recomputed from the samples, never read from scores.json. ``signatures`` are by metric the
    reproducibility signatures of the scores over all items (`medtasks.runs.signature`); breakdowns add their part.
    ``timelines`` are the first streaming items, by id.
    """

    name: str
    scores: Scores
    table: ItemTable
    signatures: Mapping[str, str]
    timelines: tuple[Timeline, ...] = ()

    @property
    def benchmark(self) -> str:
        """The benchmark of the task or group."""
        return load_spec(self.name).metadata.benchmark

    @cached_property
    def _rows(self) -> Rows | None:
        """The rows of the items that are scored; None for all."""
        return None if self.table.complete.all() else np.flatnonzero(self.table.complete)

    @cached_property
    def items(self) -> tuple[str, ...]:
        """Sorted ids of all items."""
        return self._scored(self.table.unique)

    @cached_property
    def clusters(self) -> tuple[str, ...]:
        """The cluster of each item."""
        return self._scored(self.table.clusters)

    @property
    def groups(self) -> Mapping[str, tuple[tuple[str, ...], ...]]:
        """Each item's keys by breakdown."""
        return {name: self._scored(keys) for name, keys in self.table.groups.items()}

    @property
    def statistics(self) -> Mapping[str, Array]:
        """By metric ``(items, width)``; a row of NaN is an item without a value (unjudged or not computed), a row of
        zeros of a mean-type metric an item to which it does not apply (NaN in wider ones)."""
        return Lazy(self.scores.metrics, self.part)

    def part(self, metric: str, key: str = "") -> Array:
        """The statistics of a metric with items that are judged by parts reduced to the part ``key``
        (`Benchmark.parts`)."""
        column = self.table.column(metric, key)
        found = column.statistics
        if found.shape[1] == 2 and not column.present.all():
            found = np.where(column.present[:, None], found, 0.0)
        return found if self._rows is None else found[self._rows]

    def _scored(self, values: tuple[T, ...]) -> tuple[T, ...]:
        return values if self._rows is None else shared(tuple(values[row] for row in self._rows.tolist()))


@dataclass(frozen=True)
class Change:
    """One value that differs from before: ``what`` is ``filtered``, ``status`` or a metric's name."""

    task: str
    sample_id: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True)
class ScoredRun:
    """One run, scored here.

    ``public`` is what a board shows of it, ``blind`` marks a run without media. ``complete`` says by task and group
    whether every prepared document was asked, according to the manifest. ``verification`` is the outcome for each task
    (`leaderboard.verify.verification`), ``responses`` a hash of its responses, ``notes`` are those of the verification.
    ``record`` has the manifest as verified, the scores and the tables, and the samples if they were asked for;
    ``changes`` are the values that differ from those in the directory, ``problems`` learned metrics that could not be
    computed. ``mode`` is ``own`` or ``submitted`` if the scores depend on the argument ``own`` of :func:`scored_run`.
    """

    public: BoardRun
    blind: bool
    entries: Mapping[str, Entry]
    record: RunRecord
    complete: Mapping[str, bool] = field(default_factory=dict)
    verification: Mapping[str, Verification] = field(default_factory=dict)
    responses: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    problems: tuple[str, ...] = ()
    mode: str = ""

    @property
    def model(self) -> str:
        """The model's slug."""
        return self.public.model

    @property
    def rescored(self) -> RunRecord:
        """The run as ``medtasks score`` writes it: its manifest has the versions that score it now."""
        update = {"scored": scoring_versions(), "problems": self.problems}
        return replace(self.record, manifest=self.record.manifest.model_copy(update=update))


class Contents(Protocol):
    """Something that is scored."""

    def contains(self) -> tuple[Collection[str], Collection[str]]:
        """The names of its tasks, and of the benchmarks whose data it names."""


class RunStore:
    """Scored runs, in the directory ``folder``; None keeps nothing. Damaged entries count as missing.

    The key of a run is a hash of its content, of all code, task files and rubrics, of the metrics' signatures and of
    what keeps them from being computed here, and of the prepared data.
    """

    def __init__(self, folder: Path | None) -> None:
        self.tables = TableStore(folder)
        self._rules = "" if folder is None else code_hash(Path(__file__).parents[1])

    @property
    def is_kept(self) -> bool:
        """Whether runs are kept."""
        return self.tables.folder is not None

    def key(self, *texts: str) -> str:
        """A hash of the texts and of all that scores and pages depend on except results."""
        return hashlib.sha256("\0".join((self._rules, *texts)).encode("utf-8", "surrogatepass")).hexdigest()

    def key_of(self, run: Contents, content: str) -> str:
        """The key of a run with this content; empty if nothing is kept.

        Raises:
            MedtasksError: the run cannot be read.
        """
        if not self.is_kept:
            return ""
        tasks, benchmarks = run.contains()
        specs = [spec for name, spec in load_specs().items() if spec.kind == "task" and name in tasks]
        metrics = {name: get_metric(name) for spec in specs for name in (*spec.scores, *spec.metadata.learned)}
        state = {name: (one.signature, one.unavailable()) for name, one in sorted(metrics.items())}
        data = {name: _prepared(name) for name in sorted({*benchmarks, *(one.metadata.benchmark for one in specs)})}
        return self.key(content, canonical_json([state, data]))

    def knows(self, key: str) -> bool:
        """Whether there is an entry for the board, if it is not damaged."""
        folder = self.tables.folder
        return folder is not None and any((folder / f"{key}{mode}").is_dir() for mode in ("", "submitted"))


def _prepared(benchmark: str) -> str:
    """A hash of the manifest of the data prepared for a benchmark that a run names; ``mini`` for miniature data."""
    if is_mini():
        return "mini"
    path = data_root() / benchmark / "manifest.json"
    return file_sha256(path) if safe_name(benchmark) == benchmark and path.is_file() else ""


@without_garbage_collection()
def scored_run(
    run: Path | Source, store: RunStore | None = None, *, own: bool = False, whole: bool = False
) -> ScoredRun:
    """The run in a result directory or in lmms-eval's logs, scored by the data and rules of this machine.

    Args:
        run: the run; tasks of packages that are not installed are left out, and so are their groups, with a note.
        store: keeps the run, and its columns out of memory; None scores it now.
        own: compute learned metrics with their models, and score verdicts under the rubrics with which they were made:
            for a run that its owner scores. Otherwise learned metrics are taken as submitted, with a note, and only
            verdicts under installed rubrics count.
        whole: with the samples.

    Raises:
        UsageError: it is not a result directory, or none of its tasks is installed.
        DataError: it cannot be read, or manifest and samples do not match; names file and field.
        MedtasksError: the samples cannot be scored.
    """
    store = store or RunStore(None)
    source = RunFolder(run) if isinstance(run, Path) else run
    content = source.content
    key = store.key_of(source, content)
    found = None if whole else _read(store, key, source.name, content, own=own)
    if found is not None and (found.record.kept is not None or not own):
        return found
    if found is None:
        with as_data_error(source.directory):
            small = not (whole or store.is_kept)
            found = scored_record(*source.read(), source.name, content, own=own, whole=whole, small=small)
    if own:
        found = replace(found, record=replace(found.record, kept=(found.record.comparisons, found.record.level_gaps)))
    _keep(store, key, found)
    # with less in memory: a board has many runs
    return found if whole else _read(store, key, source.name, content, own=own) or found


def keep_written(folder: Path, run: ScoredRun, store: RunStore) -> None:
    """Keep the scored run under the content of the directory to which it was written, too."""
    if not run.mode and run.notes == (*verification_notes(run.verification),):  # else it reads otherwise
        written = replace(run, record=run.rescored, changes=())
        source = RunFolder(folder)
        _keep(store, store.key_of(source, source.content), written)


def _keep(store: RunStore, key: str, run: ScoredRun) -> None:
    if store.is_kept and not run.problems:
        store.tables.write(f"{key}{run.mode}", KeptRun.of(run).model_dump(mode="json"), run.record.tables.made)


def scored_record(
    manifest: RunManifest,
    samples: Samples,
    folder: str = "",
    digest: str = "",
    *,
    own: bool = False,
    whole: bool = False,
    small: bool = False,
) -> ScoredRun:
    """The run with this manifest and these samples, scored as by :func:`scored_run`.

    Args:
        manifest: of the run.
        samples: by task.
        folder: the name of the run's directory.
        digest: a hash of the run's content.
        own: as in :func:`scored_run`.
        whole: as in :func:`scored_run`.
        small: compress the tables, because they stay in memory.

    Raises:
        MedtasksError: as :func:`scored_run`.
    """
    _check(manifest, samples)
    manifest, left_out = _installed_part(manifest, folder)
    rubrics, other_rubrics = installed_rubrics(manifest.judge)
    if not own:
        manifest = manifest.model_copy(update={"judge": rubrics})
    notes = [f"left out, because no installed package has the task: {name}" for name in left_out]
    notes += [] if own else other_rubrics
    depends = bool(other_rubrics)
    kept: dict[str, Sequence[Sample]] = {}
    tables = RunTables(kept)
    changes: list[Change] = []
    problems: list[str] = []
    facts: dict[str, TaskFacts] = {}
    verification: dict[str, Verification] = {}
    responses: dict[str, str] = {}
    submitted: dict[str, frozenset[str]] = {}
    shown: dict[str, tuple[Timeline, ...]] = {}
    for task in manifest.tasks:
        ordered = sorted(samples[task], key=lambda sample: sample.sample_id)
        _check_samples(manifest, task, ordered)
        one = SubmittedTask(task, manifest, ordered, own=own)
        del ordered
        benchmark = load_spec(task).benchmark
        joined = benchmark.join is not sample_items  # groups join samples of several tasks
        again: SampleLines | list[Sample] = SampleLines(()) if whole else []
        for part, made in one.parts():
            changes += [change for pair in zip(part, made, strict=True) for change in _changes(task, *pair)]
            tables.add(task, made)
            if whole or joined or benchmark.timeline is not None:
                again.extend(made)
        kept[task] = again
        tables.of(task)
        if benchmark.timeline is not None:
            items = joined_items(benchmark, [sample.view() for sample in again]).items
            shown[task] = timelines(model_key(manifest), task, items, benchmark.timeline)
        facts[task] = one.facts_now
        verification[task], submitted[task], responses[task] = one.outcome, one.submitted, one.responses
        notes += one.notes
        problems += one.problems
        depends = depends or not one.either
    manifest = manifest.model_copy(update={"tasks": facts})
    for name in _compared_groups(kept):  # their tables are made of samples, which are not kept
        tables.of(name, leaf_tasks(name))
    task_scores, group_scores = scores_of(tables, manifest.groups, threshold=judged_threshold(manifest.judge))
    signatures = {
        name: _signatures(name, scores, tables, manifest, submitted)
        for name, scores in {**task_scores, **group_scores}.items()
    }
    done = {name: compressed(table) for name, table in tables.made.items()} if small else tables.made
    scored = KeptRun(
        manifest=manifest,
        tasks=task_scores,
        groups=group_scores,
        kept=None,
        signatures=signatures,
        timelines=shown,
        verification=verification,
        responses={task: one for task, one in responses.items() if one},
        notes=(*notes, *verification_notes(verification)),
        changes=tuple(changes),
        mode=("own" if own else "submitted") if depends else "",
    )
    found = _run(scored, RunTables({}, done), folder, digest, kept if whole else None)
    found = replace(found, problems=tuple(problems))
    for entry in found.entries.values():
        for metric, statistics in entry.statistics.items():
            require_statistics(metric, statistics)
    return found


def _compared_groups(tasks: Collection[str]) -> Iterator[str]:
    """The groups of these tasks that are compared with others, and whose items join samples of several tasks."""
    pairs = {name: spec.metadata.compare_with for name, spec in load_specs().items() if spec.metadata.compare_with}
    for name in dict.fromkeys((*pairs, *pairs.values())):
        spec = load_spec(name)
        if spec.kind == "group" and spec.benchmark.join is not sample_items and {*leaf_tasks(name)} <= {*tasks}:
            yield name


def _changes(task: str, before: Sample, after: Sample) -> list[Change]:
    pairs: list[tuple[str, Any, Any]] = [
        ("filtered", before.filtered, after.filtered),
        ("status", before.status, after.status),
    ]
    names = dict.fromkeys((*before.scores, *after.scores))
    pairs += [(name, before.scores.get(name), after.scores.get(name)) for name in names]
    return [Change(task, before.sample_id, what, old, new) for what, old, new in pairs if old != new]


def _check(manifest: RunManifest, samples: Samples) -> None:
    """Refuse a run whose manifest contradicts itself, or names other tasks than have samples."""
    created(manifest)
    for name, judged in manifest.judge.items():
        if judged.judge_hash != (own := own_judge_hash(judged)):
            raise DataError(
                f"manifest.json: field `judge.{name}.judge_hash` is {judged.judge_hash!r}, expected {own!r}, which "
                "follows from its rubric and judges; restore it, or judge again."
            )
    if not manifest.tasks:
        raise DataError("manifest.json: field `tasks` names none, expected at least one; run again.")
    if lacking := sorted(manifest.tasks.keys() - samples.keys()):
        raise DataError(f"samples/{lacking[0]}.jsonl: missing, although the manifest names the task; restore it.")
    if beyond := sorted(samples.keys() - manifest.tasks.keys()):
        raise DataError(f"samples/{beyond[0]}.jsonl: of no task that the manifest names; remove it or run again.")
    for task, facts in manifest.tasks.items():
        if facts.attempted > facts.asked:
            raise DataError(f"manifest.json: field `tasks.{task}.answered` is {facts.answered:,} of {facts.asked:,}.")
        if facts.benchmark not in manifest.data:
            raise DataError(
                f"manifest.json: field `data` lacks {facts.benchmark}, the benchmark of {task}; restore it."
            )
    for group, members in manifest.groups.items():
        if not members or (unknown := sorted(set(members) - manifest.tasks.keys())):
            problem = "names no task" if not members else f"names {unknown[0]}, which is not a task of the run"
            raise DataError(f"manifest.json: field `groups.{group}` {problem}; restore it.")


def _check_samples(manifest: RunManifest, task: str, samples: Sequence[Sample]) -> None:
    """Refuse samples that are not those that the manifest describes."""
    place, facts = f"samples/{task}.jsonl", manifest.tasks[task]
    if len(samples) != facts.attempted:
        raise DataError(
            f"{place}: {len(samples):,} samples, expected {facts.attempted:,}, the sum of `answered` and `failed` of "
            f"`tasks.{task}` in manifest.json; restore the file."
        )
    if repeated := duplicate_ids(samples):
        raise DataError(f"{place}: sample {repeated[0]} is duplicated, expected once; run again.")
    for sample in samples:
        if sample.task != task:
            raise DataError(
                f"{place}: sample {sample.sample_id}: field `task` is {sample.task!r}, expected {task!r}; restore "
                "the file."
            )


def _installed_part(manifest: RunManifest, folder: str) -> tuple[RunManifest, list[str]]:
    """The manifest without the tasks and groups that are not installed (and their data), and the names of these."""
    specs = load_specs()
    tasks = {name: one for name, one in manifest.tasks.items() if name in specs and specs[name].kind == "task"}
    groups = {
        name: members
        for name, members in manifest.groups.items()
        if name in specs and specs[name].kind == "group" and set(members) <= tasks.keys()
    }
    left_out = sorted({*manifest.tasks, *manifest.groups} - {*tasks, *groups})
    if not tasks:
        raise UsageError(
            f"{folder}: no installed package has its tasks ({', '.join(left_out)}); install the one that does."
        )
    for task, one in tasks.items():
        if one.benchmark != (benchmark := specs[task].metadata.benchmark):
            raise DataError(
                f"manifest.json: field `tasks.{task}.benchmark` is {one.benchmark!r}, expected {benchmark!r}; "
                "restore it."
            )
    benchmarks = {one.benchmark for one in tasks.values()}
    data = {
        name: one.model_copy(update={"mini": is_miniature(name, one)})
        for name, one in manifest.data.items()
        if name in benchmarks
    }
    return manifest.model_copy(update={"tasks": tasks, "groups": groups, "data": data}), left_out


def _signatures(
    name: str,
    scores: Scores,
    tables: RunTables,
    manifest: RunManifest,
    submitted: Mapping[str, frozenset[str]],
) -> dict[str, str]:
    """The signatures of a task's or group's scores, without the versions of the packages that computed them elsewhere,
    unless their values are those that were submitted."""
    members = manifest.groups.get(name, (name,))
    table = tables.of(name, manifest.groups.get(name, ()))
    ids = [one for row in np.flatnonzero(table.complete).tolist() for one in table.samples[row]]
    here = manifest.model_copy(update={"versions": {}, "scored": None})
    claimed = frozenset[str]().union(*(submitted[task] for task in members))
    return {
        metric: signature(manifest if metric in claimed else here, name, metric, score.signature, ids)
        for metric, score in scores.metrics.items()
    }


def _run(kept: KeptRun, tables: RunTables, folder: str, digest: str, samples: Samples | None = None) -> ScoredRun:
    manifest, scores = kept.manifest, {**kept.tasks, **kept.groups}
    complete = {
        task: facts.attempted == facts.asked and not kept.tasks[task].incomplete
        for task, facts in manifest.tasks.items()
    }
    complete |= {
        name: all(complete[task] for task in manifest.groups[name])
        and set(leaf_tasks(name)) <= {*manifest.groups[name]}
        for name in kept.groups  # tasks without prepared rows are never run
    }
    made = {name: tables.of(name, manifest.groups.get(name, ())) for name in scores}
    return ScoredRun(
        public=board_run(manifest, folder, digest, [*run_notes(manifest, scores), *kept.notes]),
        blind=any(one.blind for one in manifest.tasks.values()),
        entries={
            name: Entry(name, one, made[name], kept.signatures[name], kept.timelines.get(name, ()))
            for name, one in scores.items()
        },
        record=RunRecord(manifest, samples or {}, kept.tasks, kept.groups, tables, kept.kept),
        complete=complete,
        **{name: getattr(kept, name) for name in _OF_BOTH},
    )


class KeptRun(BaseModel, frozen=True):
    """A run without its tables, as the store keeps it."""

    manifest: RunManifest
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    kept: tuple[dict[str, Paired], dict[str, LevelGap]] | None
    signatures: dict[str, dict[str, str]]
    timelines: dict[str, tuple[Timeline, ...]]
    verification: dict[str, Verification]
    responses: dict[str, str]
    notes: tuple[str, ...]
    changes: tuple[Change, ...]
    mode: str

    @classmethod
    def of(cls, run: ScoredRun) -> KeptRun:
        """The run without its tables."""
        return cls(
            **{name: getattr(run.record, name) for name in ("manifest", "tasks", "groups", "kept")},
            signatures={name: {**one.signatures} for name, one in run.entries.items()},
            timelines={name: one.timelines for name, one in run.entries.items()},
            **{name: getattr(run, name) for name in _OF_BOTH},
        )


def _read(store: RunStore, key: str, name: str, digest: str, *, own: bool) -> ScoredRun | None:
    """The kept run, if there is one."""
    for mode in ("", "own" if own else "submitted"):
        if (found := store.tables.read(f"{key}{mode}")) is not None:
            return _run(KeptRun.model_validate(found[0]), RunTables({}, found[1]), name, digest)
    return None
