"""A run's responses scored by the data and rules of this machine, and kept in the user's cache.

Responses and verdicts are taken from the run; all else is worked out here
(`medtasks.scoring.verification`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np

from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.timelines import Timeline, timelines
from medtasks.runs.manifest import RunManifest, created_at
from medtasks.runs.samples import Sample, SampleFile, SampleLines
from medtasks.runs.signature import signatures
from medtasks.scoring.amended import Amendments
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.judged_scores import judge_hash
from medtasks.scoring.run_cache import RunStore
from medtasks.scoring.run_record import Change, Difference, RunFolder, RunRecord, read_manifest
from medtasks.scoring.run_tables import RunTables, batches
from medtasks.scoring.verification import (
    SubmittedTask,
    forget_documents,
    installed_rubrics,
    is_miniature,
    require_statistics,
    verification_notes,
)


def scored_record(
    manifest: RunManifest,
    samples: Mapping[str, Sequence[Sample] | SampleFile],
    folder: str = "",
    *,
    own: bool = False,
    whole: bool = False,
) -> RunRecord:
    """The run with this manifest and these samples, scored from its responses on this machine.

    With ``own``, learned metrics are computed with their models, and verdicts scored under the
    rubrics with which they were made: for a run that its owner scores. Otherwise learned metrics
    are taken as submitted, with a note, and only verdicts under installed rubrics count. With
    ``whole``, the run has its samples.

    Raises:
        UsageError: none of its tasks is installed.
        DataError: manifest and samples do not match; names file and field.
        MedtasksError: the samples cannot be scored.
    """
    created_at(manifest)
    for problem in _contradictions(manifest, samples.keys()):
        raise DataError(problem)
    manifest, left_out = _installed_part(manifest, folder)
    rubrics, other_rubrics = installed_rubrics(manifest.judge)
    notes = [f"left out, because no installed package has the task: {name}" for name in left_out]
    if not own:
        manifest = manifest.model_copy(update={"judge": rubrics})
        notes += other_rubrics
    kept: dict[str, Sequence[Sample]] = {}
    tables = RunTables(kept)
    differing = _Differing()
    tasks: list[SubmittedTask] = []
    for name in manifest.tasks:
        task = SubmittedTask(name, manifest, own=own)
        kept[name] = _scored_task(task, samples[name], tables, differing, whole=whole)
        tables.of(name)
        tasks.append(task)
    run = _verified(RunRecord.scored(manifest, kept, tables), tasks, notes)
    mode = ""
    if other_rubrics or not all(task.either for task in tasks):
        mode = "own" if own else "submitted"
    problems = chain.from_iterable(task.problems for task in tasks)
    return replace(
        run,
        samples=kept if whole else {},
        made=RunTables({}, tables.made),
        changes=tuple(differing.changes),
        differences=tuple(differing.differences),
        amended=differing.amended,
        problems=tuple(problems),
        mode=mode,
    )


@dataclass
class _Differing:
    """What is scored otherwise than the directory has it; the fields are those of `RunRecord`."""

    changes: list[Change] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    amended: dict[str, bytes] = field(default_factory=dict)


def _scored_task(
    task: SubmittedTask,
    samples: Sequence[Sample] | SampleFile,
    tables: RunTables,
    differing: _Differing,
    *,
    whole: bool,
) -> SampleLines | list[Sample]:
    """Score a task into ``tables``; returns those of its scored samples that are still needed."""
    name, benchmark = task.spec.name, task.spec.benchmark
    # groups of the benchmark may join samples of several tasks
    keeps_samples = whole or not benchmark.repeatable or benchmark.stream.timeline is not None
    kept: SampleLines | list[Sample] = SampleLines(()) if whole else []
    amendments = Amendments(name)
    for submitted, scored in task.parts(samples):
        for before, after in zip(submitted, scored, strict=True):
            amendments.add(before, after)
            differing.changes += _changes(name, before, after)
        tables.add(name, scored)
        if keeps_samples:
            kept.extend(scored)
    differing.differences += amendments.differences
    packed = amendments.packed()
    if packed:
        differing.amended[name] = packed
    return kept


def _changes(task: str, before: Sample, after: Sample) -> Iterator[Change]:
    """The filtered response, status and scores that differ."""
    old = {"filtered": before.filtered, "status": before.status, **before.scores}
    new = {"filtered": after.filtered, "status": after.status, **after.scores}
    if old == new:
        return
    for what in dict.fromkeys((*old, *new)):
        if old.get(what) != new.get(what):
            yield Change(task, before.sample_id, what, old.get(what), new.get(what))


def _verified(
    run: RunRecord, tasks: Sequence[SubmittedTask], notes: Sequence[str] = ()
) -> RunRecord:
    """The scored run without its samples, with what was found out about its tasks."""
    facts = {task.spec.name: task.facts_now for task in tasks}
    manifest = run.manifest.model_copy(update={"tasks": facts})
    _make_compared_groups(run.tables, facts.keys())
    signed = {}
    for name in run.scores:
        members = manifest.groups.get(name, (name,))
        of_members = [task for task in tasks if task.spec.name in members]
        table = run.tables.of(name, members)
        signed[name] = _signatures(run, manifest, name, table, of_members)
        _require_own_statistics(run, name, table, of_members)
    verification = {task.spec.name: task.outcome for task in tasks}
    all_notes = list(notes)
    for task in tasks:
        all_notes += task.notes
    all_notes += verification_notes(verification)
    return replace(
        run,
        manifest=manifest,
        samples={},
        signatures=signed,
        timelines=_timelines(run, tasks),
        verification=verification,
        responses={task.spec.name: task.responses for task in tasks if task.responses},
        questions={task.spec.name: task.questions for task in tasks if task.questions},
        notes=tuple(all_notes),
    )


def _make_compared_groups(tables: RunTables, tasks: Set[str]) -> None:
    """Make the tables of groups that are compared and need samples, which are not kept."""
    compared: dict[str, None] = {}
    partners: dict[str, None] = {}
    for name, spec in load_specs().items():
        if spec.metadata.compare_with:
            compared[name] = None
            partners[spec.metadata.compare_with] = None
    for name in compared | partners:
        spec, leaves = load_spec(name), leaf_tasks(name)
        needs_samples = spec.kind == "group" and not spec.benchmark.repeatable
        if needs_samples and set(leaves) <= tasks:
            tables.of(name, leaves)


def _signatures(
    run: RunRecord,
    manifest: RunManifest,
    name: str,
    table: ItemTable,
    tasks: Sequence[SubmittedTask],
) -> dict[str, str]:
    """The signatures of a task's or group's scores, by metric."""
    sample_ids: list[str] = []
    for row in np.flatnonzero(table.complete).tolist():
        sample_ids += table.samples[row]
    own = {metric: score.signature for metric, score in run.scores[name].metrics.items()}
    elsewhere: set[str] = set()
    for task in tasks:
        elsewhere |= task.submitted
    return signatures(manifest, name, own, sample_ids, elsewhere)


def _require_own_statistics(
    run: RunRecord, name: str, table: ItemTable, tasks: Sequence[SubmittedTask]
) -> None:
    """Check the statistics of a task or group if some may be as submitted."""
    if any(task.submitted or task.outcome.outcome != "verified" for task in tasks):
        for metric in run.scores[name].metrics:
            require_statistics(metric, table.column(metric).statistics[table.complete])


def _timelines(run: RunRecord, tasks: Sequence[SubmittedTask]) -> dict[str, tuple[Timeline, ...]]:
    """The first streaming items of each task that has some."""
    lines_by_task = {}
    for task in tasks:
        name, benchmark = task.spec.name, task.spec.benchmark
        if benchmark.stream.timeline is None:
            continue
        views = [sample.view() for sample in run.samples[name]]
        lines = timelines(name, joined_items(benchmark, views).items, benchmark.stream.timeline)
        if lines:
            lines_by_task[name] = lines
    return lines_by_task


def _contradictions(manifest: RunManifest, samples: Set[str]) -> Iterator[str]:
    for name, judged in manifest.judge.items():
        own = judge_hash(judged.rubric, judged.template_hash, judged.judges, judged.combine)
        if judged.judge_hash != own:
            yield (
                f"manifest.json: field `judge.{name}.judge_hash` is {judged.judge_hash!r}, expected {own!r}, which "
                "follows from its rubric and judges; restore it, or judge again."
            )
    if not manifest.tasks:
        yield "manifest.json: field `tasks` names none, expected at least one; run again."
    for task in sorted(manifest.tasks.keys() - samples):
        yield f"samples/{task}.jsonl: missing, although the manifest names the task; restore it."
    for task in sorted(samples - manifest.tasks.keys()):
        yield f"samples/{task}.jsonl: of no task that the manifest names; remove it or run again."
    for task, facts in manifest.tasks.items():
        if facts.attempted > facts.asked:
            yield f"manifest.json: field `tasks.{task}.answered` is {facts.answered:,} of {facts.asked:,}."
        if facts.benchmark not in manifest.data:
            yield f"manifest.json: field `data` lacks {facts.benchmark}, the benchmark of {task}; restore it."
    for group, members in manifest.groups.items():
        if not members:
            yield f"manifest.json: field `groups.{group}` names no task; restore it."
        for name in sorted({*members} - manifest.tasks.keys()):
            yield f"manifest.json: field `groups.{group}` names {name}, which is not a task of the run; restore it."


def _installed_part(manifest: RunManifest, folder: str) -> tuple[RunManifest, list[str]]:
    """The manifest without the tasks and groups that are not installed (and their data), and the
    names of these.
    """
    specs = load_specs()
    tasks = {
        name: one
        for name, one in manifest.tasks.items()
        if name in specs and specs[name].kind == "task"
    }
    groups = {
        name: members
        for name, members in manifest.groups.items()
        if name in specs and specs[name].kind == "group" and set(members) <= tasks.keys()
    }
    left_out = sorted({*manifest.tasks, *manifest.groups} - {*tasks, *groups})
    if not tasks:
        names = ", ".join(left_out)
        raise UsageError(
            f"{folder}: no installed package has its tasks ({names}); install the one that does."
        )
    for task, one in tasks.items():
        if one.benchmark != (benchmark := specs[task].metadata.benchmark):
            field = f"manifest.json: field `tasks.{task}.benchmark`"
            raise DataError(f"{field} is {one.benchmark!r}, expected {benchmark!r}; restore it.")
    benchmarks = {one.benchmark for one in tasks.values()}
    data = {
        name: one.model_copy(update={"mini": is_miniature(name, one)})
        for name, one in manifest.data.items()
        if name in benchmarks
    }
    return manifest.model_copy(update={"tasks": tasks, "groups": groups, "data": data}), left_out


def with_documents_of_data(
    manifest: RunManifest, samples: Mapping[str, list[Sample]]
) -> dict[str, list[Sample]]:
    """The samples of a directory with the documents of the data prepared here: judges are asked
    with their references.

    Samples of tasks that are not installed, and of data that are not prepared, stay as they are.

    Raises:
        DataError: the samples are not those that the manifest describes.
    """
    replaced = dict(samples)
    for task in manifest.tasks.keys() & samples.keys() & load_specs().keys():
        submitted = SubmittedTask(task, manifest, own=True)
        replaced[task] = [
            sample for _, of_data in submitted.checked(batches(samples[task])) for sample in of_data
        ]
    forget_documents()
    return replaced


# --- keeping a run that was scored here ---


def is_known_as_scored(folder: Path, store: RunStore) -> bool:
    """Whether the store has the run in ``folder``, and its samples are as they are scored here."""
    source = RunFolder(folder)
    known = store.read_run(store.key_of(source.content, *source.contains()), own=False)
    return known is not None and not known.differences


def keep_finished(folder: Path, run: RunRecord, store: RunStore) -> None:
    """Keep a run that was scored here and written to ``folder`` just now, as it would be read from
    there.

    A run that needs a word about what was verified is left to whoever reads it.
    """
    with contextlib.suppress(Exception):  # the run is finished, and scored again when it is read
        manifest, _ = _installed_part(
            read_manifest(folder), folder.name
        )  # in the order in which it is read
        rubrics, others = installed_rubrics(manifest.judge)
        manifest = manifest.model_copy(update={"judge": rubrics})
        tasks, as_data = [], True
        for name in manifest.tasks:
            tasks.append(task := SubmittedTask(name, manifest, own=False))
            for samples, of_data in task.checked(batches(run.samples[name])):
                as_data = as_data and samples == of_data
                task.outcomes += [sample.outcome for sample in of_data]
            forget_documents()
        if as_data and not others and all(one.is_plain for one in tasks):
            kept = replace(
                run,
                manifest=manifest,
                tasks={name: run.tasks[name] for name in manifest.tasks},
                groups={name: run.groups[name] for name in manifest.groups},
                kept=(run.comparisons, run.level_gaps),
            )
            source = RunFolder(folder)
            store.keep(store.key_of(source.content, *source.contains()), _verified(kept, tasks))


def keep_written(folder: Path, run: RunRecord, store: RunStore) -> None:
    """Keep the scored run under the content of the directory to which it was written, too."""
    if not run.mode and run.notes == (
        *verification_notes(run.verification),
    ):  # else it reads otherwise
        source = RunFolder(folder)
        kept = replace(run.rescored, changes=(), differences=(), amended={})
        store.keep(store.key_of(source.content, *source.contains()), kept)
