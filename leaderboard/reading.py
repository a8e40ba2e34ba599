"""Digests of result directories: every score is recomputed from the samples, with the same functions as in a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from medtasks.benchmarks.variants import joined_items
from medtasks.errors import DataError, UsageError
from medtasks.registry import get_benchmark
from medtasks.results.folder import RunRecord, folder_digest, read_run
from medtasks.results.judge_facts import own_judge_hash
from medtasks.results.manifest import RunManifest
from medtasks.results.run import scores_of
from medtasks.results.run_tables import RunTables
from medtasks.results.samples import Sample, duplicate_ids, without_garbage_collection
from medtasks.results.scores import Scores
from medtasks.results.signature import signature
from medtasks.results.verdict_scores import judged_threshold
from medtasks.spec import leaf_tasks, load_spec, load_specs

from .board import Timeline
from .digest import Digest, Entry
from .facts import created, run_facts, run_notes
from .limits import require_numbers, require_statistics
from .local_data import is_miniature
from .models import model_key
from .timelines import timelines
from .verify import Verified, verification_notes, verify

Samples = Mapping[str, Sequence[Sample]]


@without_garbage_collection()
def digest_run(folder: Path) -> Digest:
    """The digest of the result directory ``folder``.

    Tasks of packages that are not installed are left out, and so are their groups; the run's notes list them.

    Raises:
        UsageError: it is not a result directory, or none of its tasks is installed.
        DataError: it cannot be read, or manifest and samples do not match; names file and field.
        MedtasksError: the samples cannot be scored.
    """
    record = RunRecord(*read_run(folder), {}, {})
    return digest_record(record, folder.resolve().name, folder_digest(folder))


def digest_record(record: RunRecord, folder: str, digest: str, *, trusted: bool = False) -> Digest:
    """The digest of a run in the directory called ``folder``, if any; ``digest`` is the hash of its content.

    A ``trusted`` run was scored in this process, and is not scored again.

    Raises:
        MedtasksError: as :func:`digest_run`.
    """
    samples = record.samples
    _check(record.manifest, samples)
    manifest, unknown_tasks = _installed_part(record.manifest)
    for task, one in manifest.tasks.items():
        if one.benchmark != (benchmark := load_spec(task).metadata.benchmark):
            raise DataError(
                f"manifest.json: field `tasks.{task}.benchmark` is {one.benchmark!r}, expected {benchmark!r}; "
                "restore it."
            )
    if not manifest.tasks:
        raise UsageError(
            f"{folder}: no installed package has its tasks ({', '.join(unknown_tasks)}); install the one that does."
        )
    data = {name: one.model_copy(update={"mini": is_miniature(name, one)}) for name, one in manifest.data.items()}
    manifest = manifest.model_copy(update={"data": data})
    own = {task: samples[task] for task in manifest.tasks}
    verified = Verified.of(manifest, own) if trusted else verify(manifest, own)
    manifest, samples = verified.manifest, verified.samples
    tables = RunTables(samples)
    tasks, groups = scores_of(tables, manifest.groups, threshold=judged_threshold(manifest.judge))
    scores = {**tasks, **groups}
    compact = tables.compact()
    notes = [f"left out, because no installed package has the task: {name}" for name in unknown_tasks]
    notes += [*run_notes(manifest, scores), *verified.notes, *verification_notes(verified.outcomes)]
    model = model_key(manifest)
    complete = {task: _is_complete(manifest, task, tasks[task]) for task in tasks}
    return Digest(
        facts=run_facts(manifest, folder, digest, notes),
        model=model,
        blind=any(one.blind for one in manifest.tasks.values()),
        entries={name: _entry(verified, name, compact, scores[name], model) for name in scores},
        complete={
            **complete,
            **{name: _is_whole(name, manifest.groups[name], complete) for name in groups},
        },
        tables=compact,
        verification=verified.outcomes,
        responses=verified.responses,
    )


def _check(manifest: RunManifest, samples: Samples) -> None:
    """Refuse a run whose manifest contradicts itself or the samples."""
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
        place = f"samples/{task}.jsonl"
        found = samples[task]
        if len(found) != facts.attempted:
            raise DataError(
                f"{place}: {len(found):,} samples, expected {facts.attempted:,}, the sum of `answered` and `failed` of "
                f"`tasks.{task}` in manifest.json; restore the file."
            )
        if facts.attempted > facts.asked:
            raise DataError(f"manifest.json: field `tasks.{task}.answered` is {facts.answered:,} of {facts.asked:,}.")
        if repeated := duplicate_ids(found):
            raise DataError(f"{place}: sample {repeated[0]} is duplicated, expected once; run again.")
        for sample in found:
            if sample.task != task or sample.prompt_hash != facts.prompt_hash:
                value, expected = (
                    (sample.task, task) if sample.task != task else (sample.prompt_hash, facts.prompt_hash)
                )
                field = "task" if sample.task != task else "prompt_hash"
                raise DataError(
                    f"{place}: sample {sample.sample_id}: field `{field}` is {value!r}, expected {expected!r}; "
                    "restore the file."
                )
        if facts.benchmark not in manifest.data:
            raise DataError(
                f"manifest.json: field `data` lacks {facts.benchmark}, the benchmark of {task}; restore it."
            )
    for group, members in manifest.groups.items():
        if not members or (unknown := sorted(set(members) - manifest.tasks.keys())):
            problem = "names no task" if not members else f"names {unknown[0]}, which is not a task of the run"
            raise DataError(f"manifest.json: field `groups.{group}` {problem}; restore it.")


def _installed_part(manifest: RunManifest) -> tuple[RunManifest, list[str]]:
    """The manifest without the tasks and groups that are not installed (and their data), and the names of these."""
    specs = load_specs()
    tasks = {name: one for name, one in manifest.tasks.items() if name in specs and specs[name].kind == "task"}
    groups = {
        name: members
        for name, members in manifest.groups.items()
        if name in specs and specs[name].kind == "group" and set(members) <= tasks.keys()
    }
    unknown_tasks = sorted({*manifest.tasks, *manifest.groups} - {*tasks, *groups})
    if not unknown_tasks:
        return manifest, []
    benchmarks = {one.benchmark for one in tasks.values()}
    data = {name: one for name, one in manifest.data.items() if name in benchmarks}
    return manifest.model_copy(update={"tasks": tasks, "groups": groups, "data": data}), unknown_tasks


def _entry(verified: Verified, name: str, tables: RunTables, scores: Scores, model: str) -> Entry:
    manifest, samples = verified.manifest, verified.samples
    benchmark = get_benchmark(load_spec(name).metadata.benchmark)
    table = tables.of(name, manifest.groups.get(name, ()))
    ids = [one for row in np.flatnonzero(table.complete).tolist() for one in table.samples[row]]
    shown: tuple[Timeline, ...] = ()
    if name in manifest.tasks and benchmark.timeline is not None:
        items = joined_items(benchmark, [one.view() for one in samples[name]]).items
        shown = timelines(model, name, items, benchmark.timeline)
    signatures = {
        metric: signature(verified.signed(name, metric), name, metric, score.signature, ids)
        for metric, score in scores.metrics.items()
    }
    entry: Entry = Entry.of(name, benchmark.name, table, scores, signatures, shown)
    for metric, found in entry.statistics.items():
        require_statistics(metric, found)
    require_numbers(name, scores)
    for one in shown:
        require_numbers(one.task, one, f" of {one.item}")
    return entry


def _is_complete(manifest: RunManifest, task: str, scores: Scores) -> bool:
    facts = manifest.tasks[task]
    return facts.attempted == facts.asked and not scores.incomplete


def _is_whole(group: str, members: Sequence[str], complete: Mapping[str, bool]) -> bool:
    """Whether all tasks of the group were run and are complete; those without prepared rows are never run."""
    lacking = set(leaf_tasks(group)) - set(members)
    return all(complete[task] for task in members) and not lacking
