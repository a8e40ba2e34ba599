"""A run's responses scored by the data and rules of this machine, and kept in the user's cache.

Responses and verdicts are taken from the run; all else is worked out here (`medtasks.verify.verification`).
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from medtasks.catalog.benchmark import sample_items
from medtasks.catalog.spec import leaf_tasks, load_spec, load_specs
from medtasks.core.cache import cache_root
from medtasks.core.errors import DataError, UsageError
from medtasks.core.files import canonical_json
from medtasks.data.prepared import data_root, is_mini
from medtasks.metrics.registry import get_metric
from medtasks.runs.folder import RunFolder, file_sha256, read_manifest
from medtasks.runs.manifest import RunManifest, TaskFacts, created_at
from medtasks.runs.record import Change, RunRecord
from medtasks.runs.samples import Sample, SampleLines, duplicate_ids
from medtasks.runs.signature import signatures
from medtasks.runs.table import RunTables
from medtasks.runs.table_file import TableStore, code_hash, compressed
from medtasks.runs.verdicts import own_judge_hash
from medtasks.verify.documents import forget_documents, is_miniature
from medtasks.verify.verification import SubmittedTask, installed_rubrics, require_statistics, verification_notes

_RUNS = TypeAdapter(RunRecord)


Contains = Callable[[], tuple[Collection[str], Mapping[str, bool]]]
"""Gives the names of the tasks of a run, and by benchmark whose data it names whether they are miniature data."""


class RunStore(TableStore):
    """Scored runs, in the directory ``folder``; None keeps nothing. Damaged entries count as missing.

    The key of a run is a hash of its content, of all code, task files and rubrics, of the metrics' signatures and of
    what keeps them from being computed here, and of the prepared data.
    """

    @cached_property
    def _rules(self) -> str:
        return code_hash()

    def key(self, *texts: str) -> str:
        """A hash of the texts and of all that scores depend on except results."""
        return hashlib.sha256("\0".join((self._rules, *texts)).encode("utf-8", "surrogatepass")).hexdigest()

    def key_of(self, content: str, contains: Contains) -> str:
        """The key of a run, from a hash of everything in it that scores depend on; empty if nothing is kept.

        Raises:
            MedtasksError: the run cannot be read.
        """
        if self.folder is None:
            return ""
        tasks, miniature = contains()
        specs = [spec for name, spec in load_specs().items() if spec.kind == "task" and name in tasks]
        metrics = {name: get_metric(name) for spec in specs for name in (*spec.scores, *spec.metadata.learned)}
        state = {name: (one.signature, one.unavailable()) for name, one in sorted(metrics.items())}
        names = sorted({*miniature, *(one.metadata.benchmark for one in specs)})
        data = {name: "mini" if miniature.get(name) else _prepared(name) for name in names}  # made from the code
        return self.key(content, canonical_json([state, data]))

    def knows(self, key: str) -> bool:
        """Whether there is an entry for the board, if it is not damaged."""
        return self.folder is not None and any((self.folder / f"{key}{mode}").is_dir() for mode in ("", "submitted"))

    def read_run(self, key: str, *, own: bool) -> RunRecord | None:
        """The run that was kept under the key, as it is scored with ``own``; None if there is none."""
        for mode in ("", "own" if own else "submitted"):
            if (found := self.read(f"{key}{mode}")) is not None:
                kept, tables = found
                return replace(_RUNS.validate_python({**kept, "samples": {}}), made=RunTables({}, tables))
        return None

    def keep(self, key: str, run: RunRecord) -> None:
        """Keep a run without its samples, unless a learned metric could not be computed."""
        if self.folder is not None and not run.problems:
            content = _RUNS.dump_python(run, mode="json", exclude={"samples", "made"})
            self.write(f"{key}{run.mode}", content, run.tables.made)


def user_store() -> RunStore:
    """The scored runs in the user's cache."""
    return RunStore(cache_root() / "scores")


def _prepared(benchmark: str) -> str:
    """A hash of the manifest of the data prepared for a benchmark that a run names; ``mini`` for miniature data."""
    if is_mini():
        return "mini"
    path = data_root() / benchmark / "manifest.json"
    return file_sha256(path) if path.parent.parent == data_root() and path.is_file() else ""


def keep_finished(folder: Path, run: RunRecord, store: RunStore) -> None:
    """Keep a run that was scored here and written to ``folder`` just now, as it would be read from there.

    A run that needs a word about what was verified is left to whoever reads it.
    """
    with contextlib.suppress(Exception):  # the run is finished, and scored again when it is read
        manifest, _ = _installed_part(read_manifest(folder), folder.name)  # in the order in which it is read
        rubrics, others = installed_rubrics(manifest.judge)
        manifest = manifest.model_copy(update={"judge": rubrics})
        tasks = []
        for name in manifest.tasks:
            tasks.append(SubmittedTask(name, manifest, run.samples[name][:], own=False))
            tasks[-1].take_as_scored()
            forget_documents()
        if not others and all(one.is_plain for one in tasks):
            kept = replace(
                run,
                manifest=manifest,
                tasks={name: run.tasks[name] for name in manifest.tasks},
                groups={name: run.groups[name] for name in manifest.groups},
                kept=(run.comparisons, run.level_gaps),
            )
            store.keep(_key_of_folder(folder, store), _verified(kept, tasks))


def _key_of_folder(folder: Path, store: RunStore) -> str:
    source = RunFolder(folder)
    return store.key_of(source.content, source.contains)


def keep_written(folder: Path, run: RunRecord, store: RunStore) -> None:
    """Keep the scored run under the content of the directory to which it was written, too."""
    if not run.mode and run.notes == (*verification_notes(run.verification),):  # else it reads otherwise
        store.keep(_key_of_folder(folder, store), replace(run.rescored, changes=()))


def scored_record(
    manifest: RunManifest,
    samples: Mapping[str, Sequence[Sample]],
    folder: str = "",
    *,
    own: bool = False,
    whole: bool = False,
    small: bool = False,
) -> RunRecord:
    """The run with this manifest and these samples, scored from its responses by the data and rules of this machine.

    Args:
        manifest: of the run.
        samples: by task.
        folder: the name of the run's directory.
        own: compute learned metrics with their models, and score verdicts under the rubrics with which they were made:
            for a run that its owner scores. Otherwise learned metrics are taken as submitted, with a note, and only
            verdicts under installed rubrics count.
        whole: with the samples.
        small: compress the tables, because they stay in memory.

    Raises:
        UsageError: none of its tasks is installed.
        DataError: manifest and samples do not match; names file and field.
        MedtasksError: the samples cannot be scored.
    """
    created_at(manifest)
    _refuse(_contradictions(manifest, samples.keys()))
    manifest, left_out = _installed_part(manifest, folder)
    rubrics, other_rubrics = installed_rubrics(manifest.judge)
    if not own:
        manifest = manifest.model_copy(update={"judge": rubrics})
    notes = [f"left out, because no installed package has the task: {name}" for name in left_out]
    notes += [] if own else other_rubrics
    kept: dict[str, Sequence[Sample]] = {}
    tables = RunTables(kept)
    changes: list[Change] = []
    tasks: list[SubmittedTask] = []
    for task in manifest.tasks:
        ordered = sorted(samples[task], key=lambda sample: sample.sample_id)
        _refuse(_other_samples(manifest.tasks[task], task, ordered))
        one = SubmittedTask(task, manifest, ordered, own=own)
        del ordered
        joined = one.spec.benchmark.join is not sample_items  # groups join samples of several tasks
        again: SampleLines | list[Sample] = SampleLines(()) if whole else []
        for part, made in one.parts():
            changes += [change for pair in zip(part, made, strict=True) for change in _changes(task, *pair)]
            tables.add(task, made)
            if whole or joined or one.spec.benchmark.timeline is not None:
                again.extend(made)
        kept[task] = again
        tables.of(task)
        one.show_timelines(again)
        tasks.append(one)
    run = _verified(RunRecord.scored(manifest, kept, tables), tasks, notes)
    depends = other_rubrics or not all(one.either for one in tasks)
    return replace(
        run,
        samples=kept if whole else {},
        made=RunTables({}, {name: compressed(one) if small else one for name, one in tables.made.items()}),
        changes=tuple(changes),
        problems=tuple(text for one in tasks for text in one.problems),
        mode=("own" if own else "submitted") if depends else "",
    )


def _verified(run: RunRecord, tasks: Sequence[SubmittedTask], notes: Sequence[str] = ()) -> RunRecord:
    """The scored run without its samples, with what was found out about its tasks."""
    manifest = run.manifest.model_copy(update={"tasks": {one.spec.name: one.facts_now for one in tasks}})
    for name in _compared_groups(manifest.tasks):  # their tables are made of samples, which are not kept
        run.tables.of(name, leaf_tasks(name))
    submitted = {one.spec.name: one.submitted for one in tasks}
    verification = {one.spec.name: one.outcome for one in tasks}
    made_here = {task for task, one in verification.items() if one.outcome == "verified" and not submitted[task]}
    signed = {}
    for name, one in run.scores.items():
        members = manifest.groups.get(name, (name,))
        claimed = frozenset[str]().union(*(submitted[task] for task in members))
        table = run.tables.of(name, members)
        ids = [sample for row in np.flatnonzero(table.complete).tolist() for sample in table.samples[row]]
        scored = {metric: score.signature for metric, score in one.metrics.items()}
        signed[name] = signatures(manifest, name, scored, ids, claimed)
        if not made_here.issuperset(members):
            for metric in one.metrics:
                require_statistics(metric, table.columns[metric].statistics[table.complete])
    return replace(
        run,
        manifest=manifest,
        samples={},
        signatures=signed,
        timelines={one.spec.name: one.timelines for one in tasks if one.timelines},
        verification=verification,
        responses={one.spec.name: one.responses for one in tasks if one.responses},
        notes=(*notes, *(note for one in tasks for note in one.notes), *verification_notes(verification)),
    )


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


def _contradictions(manifest: RunManifest, samples: Set[str]) -> Iterator[str]:
    """How the manifest contradicts itself, or the tasks that have samples, a sentence each."""
    for name, judged in manifest.judge.items():
        if judged.judge_hash != (own := own_judge_hash(judged)):
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


def _other_samples(facts: TaskFacts, task: str, samples: Sequence[Sample]) -> Iterator[str]:
    """How the samples are not those that the manifest describes, a sentence each."""
    place = f"samples/{task}.jsonl"
    if len(samples) != facts.attempted:
        yield (
            f"{place}: {len(samples):,} samples, expected {facts.attempted:,}, the sum of `answered` and `failed` of "
            f"`tasks.{task}` in manifest.json; restore the file."
        )
    for name in duplicate_ids(samples):
        yield f"{place}: sample {name} is duplicated, expected once; run again."
    for sample in samples:
        if sample.task != task:
            yield (
                f"{place}: sample {sample.sample_id}: field `task` is {sample.task!r}, expected {task!r}; restore "
                "the file."
            )


def _refuse(problems: Iterator[str]) -> None:
    for problem in problems:
        raise DataError(problem)


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
