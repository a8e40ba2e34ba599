"""What of a run's manifest holds on this machine: its contradictions, and the tasks, groups and
rubrics that are installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from medtasks.catalog.rubric import rubric_hash
from medtasks.catalog.rubric_files import load_rubric, rubric_files
from medtasks.catalog.spec import load_specs
from medtasks.core.errors import DataError, UsageError
from medtasks.runs.manifest import RubricFacts, RunManifest, TaskFacts
from medtasks.scoring.judge_identity import judge_hash
from medtasks.scoring.local_documents import is_miniature


def require_consistent(manifest: RunManifest, samples: Set[str]) -> None:
    """Refuse a manifest that contradicts itself, or has other tasks than the ``samples``."""
    problem = next(_contradictions(manifest, samples), None)
    if problem is not None:
        raise DataError(problem)


def _contradictions(manifest: RunManifest, samples: Set[str]) -> Iterator[str]:
    """What contradicts what, a sentence each; ``samples`` are the tasks with samples."""
    yield from _judge_contradictions(manifest)
    if not manifest.tasks:
        yield "manifest.json: field `tasks` names none, expected at least one; run again."
    for task in sorted(manifest.tasks.keys() - samples):
        yield f"samples/{task}.jsonl: missing, although the manifest names the task; restore it."
    for task in sorted(samples - manifest.tasks.keys()):
        yield f"samples/{task}.jsonl: of no task that the manifest names; remove it or run again."
    yield from _task_contradictions(manifest)
    yield from _group_contradictions(manifest)


def _judge_contradictions(manifest: RunManifest) -> Iterator[str]:
    """Judge hashes that do not follow from the rubric and the judges."""
    for name, judged in manifest.judge.items():
        expected = judge_hash(judged.rubric, judged.template_hash, judged.judges, judged.combine)
        if judged.judge_hash != expected:
            yield (
                f"manifest.json: field `judge.{name}.judge_hash` is {judged.judge_hash!r}, "
                f"expected {expected!r}, which follows from its rubric and judges; restore it, "
                "or judge again."
            )


def _task_contradictions(manifest: RunManifest) -> Iterator[str]:
    """Tasks with more answers than questions, or without data."""
    for task, facts in manifest.tasks.items():
        if facts.attempted > facts.asked:
            yield (
                f"manifest.json: field `tasks.{task}.answered` is {facts.answered:,} of "
                f"{facts.asked:,}."
            )
        if facts.benchmark not in manifest.data:
            yield (
                f"manifest.json: field `data` lacks {facts.benchmark}, the benchmark of {task}; "
                "restore it."
            )


def _group_contradictions(manifest: RunManifest) -> Iterator[str]:
    """Groups without tasks, or with tasks that the run does not have."""
    for group, members in manifest.groups.items():
        if not members:
            yield f"manifest.json: field `groups.{group}` names no task; restore it."
        for name in sorted({*members} - manifest.tasks.keys()):
            yield (
                f"manifest.json: field `groups.{group}` names {name}, which is not a task of the "
                "run; restore it."
            )


def installed_part(manifest: RunManifest, folder: str) -> tuple[RunManifest, list[str]]:
    """The manifest without the tasks and groups that are not installed (and their data), and the
    names of these.
    """
    specs = load_specs()
    tasks: dict[str, TaskFacts] = {}
    for name, facts in manifest.tasks.items():
        if name in specs and specs[name].kind == "task":
            tasks[name] = facts
    groups = {}
    for name, members in manifest.groups.items():
        if name in specs and specs[name].kind == "group" and set(members) <= tasks.keys():
            groups[name] = members
    left_out = sorted({*manifest.tasks, *manifest.groups} - {*tasks, *groups})
    if not tasks:
        raise UsageError(
            f"{folder}: no installed package has its tasks ({', '.join(left_out)}); install the "
            "one that does."
        )
    _require_own_benchmarks(tasks)
    benchmarks = {facts.benchmark for facts in tasks.values()}
    data = {}
    for name, data_facts in manifest.data.items():
        if name in benchmarks:
            mini = is_miniature(name, data_facts)
            data[name] = data_facts.model_copy(update={"mini": mini})
    return manifest.model_copy(update={"tasks": tasks, "groups": groups, "data": data}), left_out


def _require_own_benchmarks(tasks: Mapping[str, TaskFacts]) -> None:
    """Refuse tasks that the run has under another benchmark than their own."""
    for task, facts in tasks.items():
        expected = load_specs()[task].metadata.benchmark
        if facts.benchmark != expected:
            raise DataError(
                f"manifest.json: field `tasks.{task}.benchmark` is {facts.benchmark!r}, expected "
                f"{expected!r}; restore it."
            )


def installed_rubrics(judge: Mapping[str, RubricFacts]) -> tuple[dict[str, RubricFacts], list[str]]:
    """The facts on judging with the rubrics installed here, and notes on the others; verdicts under
    other versions of them do not count.
    """
    counted: dict[str, RubricFacts] = {}
    notes = []
    for name, facts in judge.items():
        installed = load_rubric(name) if name in rubric_files() else None
        if installed is not None and rubric_hash(facts.rubric) == rubric_hash(installed):
            counted[name] = facts.model_copy(update={"rubric": installed})
        else:
            notes.append(
                f"judged under another rubric {name} than the one installed here, "
                "so its verdicts do not count"
            )
    return counted, notes
