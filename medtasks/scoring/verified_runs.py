"""A run's responses scored by the data and rules of this machine, and kept in the user's cache.

Responses and verdicts are taken from the run; all else is worked out here
(`medtasks.scoring.verification`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

import numpy as np

from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.metrics.timelines import Timeline, timelines
from medtasks.runs.manifest import RunManifest, created_at
from medtasks.runs.run_signatures import signatures
from medtasks.runs.sample_files import SampleFile, SampleLines
from medtasks.runs.samples import Sample
from medtasks.scoring.amended import Amendments
from medtasks.scoring.installed_manifest import (
    installed_part,
    installed_rubrics,
    require_consistent,
)
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.local_documents import forget_documents
from medtasks.scoring.run_record import Change, Difference, RunRecord
from medtasks.scoring.run_tables import RunTables, batches
from medtasks.scoring.submitted_statistics import require_statistics
from medtasks.scoring.verification import SubmittedTask
from medtasks.scoring.verification_outcome import verification_notes


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
    require_consistent(manifest, samples.keys())
    manifest, left_out = installed_part(manifest, folder)
    rubrics, rubric_notes = installed_rubrics(manifest.judge)
    notes = [f"left out, because no installed package has the task: {name}" for name in left_out]
    if not own:
        manifest = manifest.model_copy(update={"judge": rubrics})
        notes += rubric_notes
    rescored = _RescoredTasks(whole=whole)
    for name in manifest.tasks:
        rescored.add(SubmittedTask(name, manifest, own=own), samples[name])
    scored = RunRecord.scored(manifest, rescored.samples, rescored.tables)
    run = rescored.with_differences(verified(scored, rescored.tasks, notes))
    depends_on_mode = bool(rubric_notes) or not all(task.either for task in rescored.tasks)
    if not depends_on_mode:
        return run
    return replace(run, mode="own" if own else "submitted")


class _RescoredTasks:
    """The tasks of a run that are scored again one after the other, and what differs from the
    directory; the latter's fields are those of `RunRecord`.

    ``samples`` has the scored samples that are still needed, with ``whole`` all of them.
    """

    def __init__(self, *, whole: bool) -> None:
        self.samples: dict[str, Sequence[Sample]] = {}
        self.tables = RunTables(self.samples)
        self.tasks: list[SubmittedTask] = []
        self.changes: list[Change] = []
        self.differences: list[Difference] = []
        self.amended: dict[str, bytes] = {}
        self._whole = whole

    def add(self, task: SubmittedTask, samples: Sequence[Sample] | SampleFile) -> None:
        """Score a task into the tables."""
        name, benchmark = task.spec.name, task.spec.benchmark
        # groups of the benchmark may join samples of several tasks
        joins_tasks = not benchmark.repeatable or benchmark.stream.timeline is not None
        kept: SampleLines | list[Sample] = SampleLines(()) if self._whole else []
        amendments = Amendments(name)
        for submitted, scored in task.parts(samples):
            for before, after in zip(submitted, scored, strict=True):
                amendments.add(before, after)
                self.changes += _changes(name, before, after)
            self.tables.add(name, scored)
            if self._whole or joins_tasks:
                kept.extend(scored)
        self.differences += amendments.differences
        packed = amendments.packed()
        if packed:
            self.amended[name] = packed
        self.samples[name] = kept
        self.tables.of(name)
        self.tasks.append(task)

    def with_differences(self, run: RunRecord) -> RunRecord:
        """The run with its tables and with what differs from the directory; with ``whole``, with
        all samples.
        """
        problems: list[str] = []
        for task in self.tasks:
            problems += task.problems
        return replace(
            run,
            samples=self.samples if self._whole else {},
            made=RunTables({}, self.tables.made),
            changes=tuple(self.changes),
            differences=tuple(self.differences),
            amended=self.amended,
            problems=tuple(problems),
        )


def _changes(task: str, before: Sample, after: Sample) -> Iterator[Change]:
    """The filtered response, status and scores that differ."""
    old = {"filtered": before.filtered, "status": before.status, **before.scores}
    new = {"filtered": after.filtered, "status": after.status, **after.scores}
    if old == new:
        return
    for what in dict.fromkeys((*old, *new)):
        if old.get(what) != new.get(what):
            yield Change(task, before.sample_id, what, old.get(what), new.get(what))


def verified(
    run: RunRecord, tasks: Sequence[SubmittedTask], notes: Sequence[str] = ()
) -> RunRecord:
    """The scored run without its samples, with what was found out about its tasks."""
    facts = {task.spec.name: task.facts_now for task in tasks}
    manifest = run.manifest.model_copy(update={"tasks": facts})
    _make_compared_groups(run.tables, facts.keys())
    verification = {task.spec.name: task.outcome for task in tasks}
    all_notes = list(notes)
    for task in tasks:
        all_notes += task.notes
    all_notes += verification_notes(verification)
    return replace(
        run,
        manifest=manifest,
        samples={},
        signatures=_signatures_by_name(run, manifest, tasks),
        timelines=_timelines(run, tasks),
        verification=verification,
        responses={task.spec.name: task.responses for task in tasks if task.responses},
        questions={task.spec.name: task.questions for task in tasks if task.questions},
        notes=tuple(all_notes),
    )


def _signatures_by_name(
    run: RunRecord, manifest: RunManifest, tasks: Sequence[SubmittedTask]
) -> dict[str, dict[str, str]]:
    """The signatures of all scores, by task or group, then by metric.

    Raises:
        DataError: submitted statistics cannot be true.
    """
    signatures_by_name = {}
    for name in run.scores:
        members = manifest.groups.get(name, (name,))
        member_tasks = [task for task in tasks if task.spec.name in members]
        table = run.tables.of(name, members)
        signatures_by_name[name] = _signatures(run, manifest, name, table, member_tasks)
        _require_own_statistics(run, name, table, member_tasks)
    return signatures_by_name


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
    for name in manifest.tasks.keys() & samples.keys() & load_specs().keys():
        task = SubmittedTask(name, manifest, own=True)
        replaced[name] = []
        for _, checked in task.checked(batches(samples[name])):
            replaced[name] += checked
    forget_documents()
    return replaced
