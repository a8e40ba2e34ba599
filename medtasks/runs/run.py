"""From replies to a finished run: samples, scores, manifest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from medtasks.benchmarks.documents import task_rows
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import DataError, MedtasksError, first_line
from medtasks.core.settings import read_subset, using
from medtasks.data.store import open_prepared
from medtasks.runs.manifest import DataFacts, RubricFacts, RunManifest, TaskFacts
from medtasks.runs.record import RunRecord
from medtasks.runs.replies import ALL_BLANK, NOT_ASKED, Reply, RunUsage, is_blank, run_usage
from medtasks.runs.reply_files import Plan, by_document, read_answers, read_plan, read_work
from medtasks.runs.samples import Sample, SampleLines, duplicate_ids
from medtasks.runs.scored import Answered, scored_samples, with_learned_metrics
from medtasks.runs.table import RunTables
from medtasks.runs.verdicts import with_judged_scores

JudgedSamples = tuple[dict[str, list[Sample]], dict[str, RubricFacts]]
"""Samples with their verdicts, and the facts for the manifest."""
AnsweredTask = tuple[str, Sequence[Answered]]
"""A task, and the documents that were asked."""


def collect_run(
    planned: RunManifest,
    tasks: Iterable[AnsweredTask],
    judging: Callable[[Mapping[str, Sequence[Sample]]], JudgedSamples] | None = None,
    directory: Path | None = None,
) -> RunRecord:
    """The run that the manifest ``planned`` describes as it was before any reply.

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
    for name, answered in _without_blank_run(tasks):
        try:
            made = scored_samples(load_spec(name), answered)
            if repeated := duplicate_ids(made):
                raise MedtasksError(
                    f"{len(repeated)} documents were answered more than once, such as {repeated[0]}; the back-end does "
                    "not shard by the global rank"
                )
            outcomes = [sample.outcome for sample in made]
            replies = (reply for one in answered for reply in one.replies)
            facts[name] = planned.tasks[name].with_outcomes(outcomes, replies)
            del answered
            scored = with_learned_metrics(load_spec(name), made, problems)
            samples[name] = with_judged_scores(load_spec(name), scored)
            if judging is None:
                tables.of(name)
        except Exception as error:  # filters and metrics of other packages may raise anything
            samples.pop(name, None)
            facts.pop(name, None)
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
    members = {name: tuple(one for one in leaves if one in samples) for name, leaves in planned.groups.items()}
    members = {name: leaves for name, leaves in members.items() if leaves}
    update = {"tasks": facts, "groups": members, "judge": judge, "problems": tuple(problems)}
    return RunRecord.scored(planned.model_copy(update=update), samples, tables)


def _without_blank_run(tasks: Iterable[AnsweredTask]) -> Iterator[AnsweredTask]:
    """``tasks``, with all replies marked as failed if every one is blank: the model is broken, not just bad.

    Tasks are held back until a response is not blank.
    """
    held: list[AnsweredTask] = []
    blank = True
    for name, answered in tasks:
        blank = blank and all(is_blank(reply.text) for one in answered for reply in one.replies)
        held.append((name, answered))
        del answered  # only the caller needs its documents
        while held and not blank:
            yield held.pop(0)
    blank_reply = Reply.failure(ALL_BLANK)
    for name, answered in held:
        failed = [tuple(blank_reply if reply.failed is None else reply for reply in one.replies) for one in answered]
        yield name, [replace(one, replies=replies) for one, replies in zip(answered, failed, strict=True)]


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


def score_unfinished(folder: Path, *, created: str) -> RunRecord:
    """The run made of the replies in ``folder``; requests that were not sent count as failed, with that reason.

    Raises:
        DataError: the directory cannot be read, or the prepared data are not those of the run.
        MedtasksError: none of its tasks can be scored.
    """
    plan = read_plan(folder)
    with using(miniature=plan.manifest.miniature):
        for name, facts in plan.manifest.data.items():
            prepared = open_prepared(name).manifest.fingerprint
            if prepared != facts.fingerprint:
                raise DataError(
                    f"{folder}: the run used {name} data with fingerprint {facts.fingerprint[:16]}, but the data "
                    f"prepared here have {prepared[:16]}; prepare the same data."
                )
        answered = ((name, _answered(folder, plan, name)) for name in plan.documents)
        run = collect_run(plan.manifest, answered)
    if not run.samples:
        raise MedtasksError(f"{folder}: {' '.join(run.manifest.problems)}")
    spent = list(read_work(folder).values())
    measured = any(one.reply.work is not None for process in spent for one in process)
    usage = run_usage(spent, devices=plan.manifest.usage.devices or 1) if measured else RunUsage()
    return replace(run, manifest=run.manifest.model_copy(update={"created": created, "usage": usage}))


def _answered(folder: Path, plan: Plan, name: str) -> list[Answered]:
    """The documents of a task that the run asks, with the replies so far."""
    spec, facts, numbers = load_spec(name), plan.manifest.tasks[name], plan.documents[name]
    with using(
        subset=read_subset(facts.subset), max_frames=facts.frames.get("cap")
    ):  # numbers are those of the run's documents
        rows = task_rows(name).dataset().select(numbers).to_list()
    found = by_document(read_answers(folder, name), name)
    documents = []
    for number, document in zip(numbers, rows, strict=True):
        given = found.get(number, {})
        replies = [
            given[repeat].reply if repeat in given else Reply.failure(NOT_ASKED) for repeat in range(spec.repeats)
        ]
        prompt = next((answer.slot.prompt for answer in given.values()), "")
        documents.append(Answered(document, tuple(replies), prompt, spec.prompt_hash or ""))
    return documents
