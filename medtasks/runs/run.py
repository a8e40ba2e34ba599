"""From replies to a finished run: samples, scores, manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from medtasks.benchmarks.documents import task_rows
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import DataError, MedtasksError, first_line
from medtasks.core.settings import current_settings, using
from medtasks.data.store import open_prepared
from medtasks.runs.folder import RunRecord, write_run
from medtasks.runs.manifest import DataFacts, RubricFacts, RunManifest, TaskFacts, task_facts, versions
from medtasks.runs.replies import ALL_BLANK, NOT_ASKED, Reply, is_blank
from medtasks.runs.reply_files import Plan, by_document, read_answers, read_plan, read_spent
from medtasks.runs.samples import Sample, SampleLines, duplicate_ids
from medtasks.runs.scored import Answered, scored_samples, with_learned_metrics
from medtasks.runs.scores import COVERAGE, Scores
from medtasks.runs.scoring import Scored, score_tables
from medtasks.runs.table import ItemTable, RunTables
from medtasks.runs.usage import RunUsage, run_usage
from medtasks.runs.verdicts import judged_threshold, with_judged_scores
from medtasks.stats.bootstrap import clustered_standard_error

JudgedSamples = tuple[dict[str, list[Sample]], dict[str, RubricFacts]]
"""Samples with their verdicts, and the facts for the manifest."""


@dataclass(frozen=True)
class AskedTask:
    """What a run asked of one task; ``total`` counts all documents of the task, even if a limit leaves some out, and
    ``presentation`` is how the back-end deviated from the task."""

    spec: TaskSpec
    generation: dict[str, Any]
    total: int
    documents: Sequence[Answered]
    presentation: Mapping[str, str] = field(default_factory=dict)


def collect_run(
    tasks: Iterable[AskedTask],
    groups: Mapping[str, Sequence[str]],
    model: dict[str, Any],
    judging: Callable[[Mapping[str, Sequence[Sample]]], JudgedSamples] | None = None,
    directory: Path | None = None,
) -> RunRecord:
    """One run, whose manifest lacks what is only known at its end (:func:`finish_run`).

    ``groups`` maps each group to those of its tasks that were run; ``model`` describes the back-end.

    Each task is taken from ``tasks`` when the one before it has been scored, so that only its documents and samples
    are in memory; finished samples are in a file in ``directory`` (see `SampleLines`). ``judging`` adds verdicts to the
    samples before they are scored, which needs those of all tasks in memory. A task, metric or judge that fails is
    reported in ``problems``; everything else is scored.

    Raises:
        OSError: ``directory`` cannot be written.
    """
    problems: list[str] = []
    samples: dict[str, Sequence[Sample]] = {}
    tables = RunTables(samples)
    facts: dict[str, TaskFacts] = {}
    for task in _without_blank_run(tasks):
        name = task.spec.name
        try:
            samples[name], facts[name] = _scored_task(task, model, problems)
            del task
            if judging is None:
                tables.of(name)
        except Exception as error:  # filters and metrics of other packages may raise anything
            samples.pop(name, None)
            problems.append(f"{name}: its answers could not be scored ({first_line(error)}).")
            continue
        if judging is None:
            samples[name] = SampleLines(samples[name], directory)
    judge: dict[str, RubricFacts] = {}
    if judging is not None:
        try:
            judged, judge = judging(samples)
            samples.update(judged)
        except Exception as error:
            problems.append(
                f"not judged, and the run is saved without verdicts; `medtasks judge` adds them. {first_line(error)}"
            )
    members = {name: tuple(one for one in leaves if one in samples) for name, leaves in groups.items()}
    members = {name: leaves for name, leaves in members.items() if leaves}
    tasks_scores, groups_scores = scores_of(tables, members, threshold=judged_threshold(judge))
    benchmarks = sorted({one.benchmark for one in facts.values()})
    manifest = RunManifest(
        created="",
        processes=model.get("processes", 1),
        versions=versions(),
        model={key: value for key, value in model.items() if key not in ("processes", "usage")},
        settings={},
        tasks=facts,
        groups=members,
        data={name: data_facts(name) for name in benchmarks},
        judge=judge,
        problems=tuple(problems),
    )
    return RunRecord(manifest, samples, tasks_scores, groups_scores, tables)


def _scored_task(task: AskedTask, model: Mapping[str, Any], problems: list[str]) -> tuple[Sequence[Sample], TaskFacts]:
    made = scored_samples(task.spec, task.documents)
    _refuse_duplicates(made)
    samples = with_judged_scores(task.spec, with_learned_metrics(task.spec, made, problems))
    facts = task_facts(
        task.spec,
        task.generation,
        task.total,
        made,
        blind=current_settings().blind or bool(model.get("blind")),
        presentation=task.presentation,
        replies=(reply for one in task.documents for reply in one.replies),
    )
    return samples, facts


def _without_blank_run(tasks: Iterable[AskedTask]) -> Iterator[AskedTask]:
    """``tasks``, with all replies marked as failed if every one is blank: the model is broken, not just bad.

    Tasks are held back until a response is not blank.
    """
    held: list[AskedTask] = []
    blank = True
    for task in tasks:
        blank = blank and all(is_blank(reply.text) for one in task.documents for reply in one.replies)
        held.append(task)
        del task  # only the caller needs its documents
        while held and not blank:
            yield held.pop(0)
    for task in held:
        marked = [replace(one, replies=tuple(map(_blank_as_failed, one.replies))) for one in task.documents]
        yield replace(task, documents=marked)


def _blank_as_failed(reply: Reply) -> Reply:
    return reply if reply.failed is not None else Reply.failure(ALL_BLANK)


def _refuse_duplicates(samples: Sequence[Sample]) -> None:
    repeated = duplicate_ids(samples)
    if repeated:
        raise MedtasksError(
            f"{len(repeated)} documents were answered more than once, such as {repeated[0]}; the back-end does "
            "not shard by the global rank"
        )


def finish_run(run: RunRecord, directory: Path | None, **facts: Any) -> RunRecord:
    """Add these fields to the manifest, and write the run to ``directory`` if it is given."""
    finished = replace(run, manifest=run.manifest.model_copy(update=facts))
    if directory is not None:
        write_run(directory, finished)
    return finished


def data_facts(benchmark: str) -> DataFacts:
    """The prepared data that the samples of ``benchmark`` come from."""
    manifest = open_prepared(benchmark).manifest
    return DataFacts(
        fingerprint=manifest.fingerprint,
        mini=manifest.mini,
        records=manifest.counts.rows,
        excluded=dict(manifest.excluded),
        coverage=manifest.coverage,
    )


def pooled_scores(
    samples: Mapping[str, Sequence[Sample]], groups: Mapping[str, Sequence[str]], *, threshold: float = COVERAGE
) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """As :func:`scores_of`, for samples by task."""
    return scores_of(RunTables(samples), groups, threshold=threshold)


def scores_of(
    tables: RunTables, groups: Mapping[str, Sequence[str]], *, threshold: float = COVERAGE
) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """Scores of every task, and of every group pooled over all samples of its tasks.

    ``threshold`` is the share of verdicts below which a judged score is marked incomplete.
    """
    entries = {name: _scored(name, tables.of(name)) for name in tables.tasks}
    entries |= {name: _scored(name, tables.of(name, members)) for name, members in groups.items()}
    scores = score_tables(entries, threshold=threshold)
    return {name: scores[name] for name in tables.tasks}, {name: scores[name] for name in groups}


def _scored(name: str, table: ItemTable) -> Scored:
    facts = load_spec(name).metadata
    return Scored(table, get_benchmark(facts.benchmark), facts.breakdowns)


def standard_errors(tables: RunTables, groups: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float | None]]:
    """Clustered standard errors by task and group, for the mean-type metrics whose items all have a value."""
    found = {name: _standard_errors(tables.of(name)) for name in tables.tasks}
    return found | {name: _standard_errors(tables.of(name, members)) for name, members in groups.items()}


def _standard_errors(table: ItemTable) -> dict[str, float | None]:
    errors: dict[str, float | None] = {}
    for metric in table.metrics:
        column = table.columns[metric]
        rows = np.flatnonzero(column.present)
        if column.statistics.shape[1] == 2 and column.known[rows].all() and column.applies[rows].any():
            errors[metric] = clustered_standard_error(column.statistics[rows], table.codes[rows])
    return errors


def score_unfinished(folder: Path, *, created: str) -> RunRecord:
    """The run made of the replies in ``folder``; requests that were not sent count as failed, with that reason.

    Raises:
        DataError: the directory cannot be read, or the prepared data are not those of the run.
        MedtasksError: none of its tasks can be scored.
    """
    plan = read_plan(folder)
    with using(miniature=plan.manifest.miniature):
        return _unfinished(folder, plan, created)


def _unfinished(folder: Path, plan: Plan, created: str) -> RunRecord:
    for name, facts in plan.manifest.data.items():
        prepared = open_prepared(name).manifest.fingerprint
        if prepared != facts.fingerprint:
            raise DataError(
                f"{folder}: the run used {name} data with fingerprint {facts.fingerprint[:16]}, but the data prepared "
                f"here have {prepared[:16]}; prepare the same data."
            )
    manifest = plan.manifest
    tasks = (_asked(folder, name, numbers, manifest.tasks[name]) for name, numbers in plan.documents.items())
    run = collect_run(tasks, manifest.groups, {**manifest.model, "processes": manifest.processes})
    if not run.samples:
        raise MedtasksError(f"{folder}: {' '.join(run.manifest.problems)}")
    spent = list(read_spent(folder).values())
    measured = any(one.reply.work is not None for process in spent for one in process)
    usage = run_usage(spent, devices=manifest.usage.devices or 1) if measured else RunUsage()
    return finish_run(run, None, settings=manifest.settings, created=created, usage=usage)


def _asked(folder: Path, name: str, numbers: tuple[int, ...], facts: TaskFacts) -> AskedTask:
    spec = load_spec(name)
    rows = task_rows(name).dataset()
    found = by_document(read_answers(folder, name), name)
    repeats = int(spec.resolved.get("repeats") or 1)
    documents = []
    for number, document in zip(numbers, rows.select(numbers).to_list(), strict=True):
        given = found.get(number, {})
        replies = [given[repeat].reply if repeat in given else Reply.failure(NOT_ASKED) for repeat in range(repeats)]
        prompt = next((answer.slot.prompt for answer in given.values()), "")
        documents.append(Answered(document, tuple(replies), prompt, spec.prompt_hash or ""))
    return AskedTask(spec, facts.generation, len(rows), documents, facts.presentation)
