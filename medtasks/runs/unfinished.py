"""Scores of an unfinished run from the replies saved so far, without asking the model."""

from __future__ import annotations

from pathlib import Path

from medtasks.benchmarks.documents import task_rows
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError, MedtasksError
from medtasks.core.settings import using
from medtasks.data.store import open_prepared
from medtasks.runs.folder import RunRecord
from medtasks.runs.manifest import TaskFacts
from medtasks.runs.replies import NOT_ASKED, Reply
from medtasks.runs.reply_files import Plan, by_document, read_answers, read_plan, read_spent
from medtasks.runs.run import AskedTask, collect_run, finish_run
from medtasks.runs.scored import Answered
from medtasks.runs.usage import RunUsage, run_usage


def score_unfinished(folder: Path, *, created: str) -> RunRecord:
    """The run made of the replies in ``folder``; requests that were not sent count as failed, with that reason.

    Raises:
        DataError: the directory cannot be read, or the prepared data are not those of the run.
        MedtasksError: none of its tasks can be scored.
    """
    plan = read_plan(folder)
    with using(miniature=plan.manifest.miniature):
        return _scored(folder, plan, created)


def _scored(folder: Path, plan: Plan, created: str) -> RunRecord:
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
    repeats = spec.repeats
    documents = []
    for number, document in zip(numbers, rows.select(numbers).to_list(), strict=True):
        given = found.get(number, {})
        replies = [given[repeat].reply if repeat in given else Reply.failure(NOT_ASKED) for repeat in range(repeats)]
        prompt = next((answer.slot.prompt for answer in given.values()), "")
        documents.append(Answered(document, tuple(replies), prompt, spec.prompt_hash or ""))
    return AskedTask(spec, facts.generation, len(rows), documents, facts.presentation)
