"""From the replies of a run to its samples, scores and manifest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from medtasks.benchmarks.documents import task_rows
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import DataError, MedtasksError, first_line
from medtasks.core.settings import read_subset, using
from medtasks.data.store import open_prepared
from medtasks.runs.manifest import DataFacts, RubricFacts, RunManifest, TaskFacts
from medtasks.runs.replies import ALL_BLANK, NOT_ASKED, Answer, Reply, is_blank
from medtasks.runs.sample_files import SampleLines
from medtasks.runs.samples import Sample
from medtasks.runs.times import RequestTime, request_times
from medtasks.runs.unfinished import RunPlan, by_document, read_answers, read_plan, read_work
from medtasks.runs.usage import run_usage
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.learned_scores import with_learned_metrics
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scored_samples import scored_samples

JudgedSamples = tuple[dict[str, list[Sample]], dict[str, RubricFacts]]
"""Samples with their verdicts, and the facts for the manifest."""


class AskedDocument(NamedTuple):
    """A document that was asked, its prompt, and the replies, one per repeat."""

    document: Mapping[str, Any]
    prompt: str
    replies: Sequence[Reply]


AnsweredTask = tuple[str, Sequence[AskedDocument]]
"""A task, and its documents that were asked."""


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


def collect_run(
    planned: RunManifest,
    tasks: Iterable[AnsweredTask],
    judging: Callable[[Mapping[str, Sequence[Sample]]], JudgedSamples] | None = None,
    directory: Path | None = None,
) -> RunRecord:
    """The run that the manifest ``planned`` describes as it was before any reply.

    Each task is taken from ``tasks`` when the one before it has been scored, so that only its
    documents and samples are in memory; finished samples are in a file in ``directory`` (see
    `SampleLines`). ``judging`` adds verdicts to the samples before they are scored, which needs
    those of all tasks in memory. A task, metric or judge that fails is reported in ``problems``;
    everything else is scored.
    """
    collected = _CollectedRun(planned)
    for name, asked in _without_blank_run(tasks):
        spec = load_spec(name)
        try:
            scored = _scored_task(spec, asked, planned.tasks[name].prompt_hash)
            outcomes = [sample.outcome for sample in scored]
            facts = planned.tasks[name].with_outcomes(outcomes, _replies_of(asked))
            del asked
            collected.add(spec, facts, scored)
            if judging is None:
                collected.tables.of(name)
        except Exception as error:  # filters and metrics of other packages may raise anything
            collected.leave_out(name, error)
            continue
        if judging is None:
            collected.samples[name] = SampleLines(collected.samples[name], directory)
    if judging is not None:
        collected.judge(judging)
    return collected.record()


class _CollectedRun:
    """A run whose tasks are added one after the other: their samples, tables and facts, the judges'
    facts, and what failed.
    """

    def __init__(self, planned: RunManifest) -> None:
        self.samples: dict[str, Sequence[Sample]] = {}
        self.tables = RunTables(self.samples)
        self._planned = planned
        self._facts: dict[str, TaskFacts] = {}
        self._judge: dict[str, RubricFacts] = {}
        self._problems: list[str] = []

    def add(self, spec: TaskSpec, facts: TaskFacts, scored: list[Sample]) -> None:
        """Add a task, whose samples have yet to get their learned and judged metrics."""
        self._facts[spec.name] = facts
        samples = with_learned_metrics(spec, scored, self._problems)
        self.samples[spec.name] = with_judged_scores(spec, samples)

    def leave_out(self, name: str, error: Exception) -> None:
        """Report a task that could not be scored, and forget what was added of it."""
        self.samples.pop(name, None)
        self._facts.pop(name, None)
        self._problems.append(f"{name}: its answers could not be scored ({first_line(error)}).")

    def judge(self, judging: Callable[[Mapping[str, Sequence[Sample]]], JudgedSamples]) -> None:
        """Add verdicts to all samples; a failure is reported and adds none."""
        try:
            judged, self._judge = judging(self.samples)
        except Exception as error:  # judging may raise anything, too
            self._problems.append(
                "not judged, and the run is saved without verdicts; `medtasks judge` adds them. "
                f"{first_line(error)}"
            )
        else:
            self.samples.update(judged)

    def record(self) -> RunRecord:
        """The run with the scores of its tasks and groups."""
        update = {
            "tasks": self._facts,
            "groups": _groups_of(self._planned, self.samples),
            "judge": self._judge,
            "problems": tuple(self._problems),
        }
        manifest = self._planned.model_copy(update=update)
        return RunRecord.scored(manifest, self.samples, self.tables)


def _groups_of(planned: RunManifest, tasks: Container[str]) -> dict[str, tuple[str, ...]]:
    """The planned groups with those of their members that are among ``tasks``."""
    groups = {}
    for name, leaves in planned.groups.items():
        members = tuple(task for task in leaves if task in tasks)
        if members:
            groups[name] = members
    return groups


def _scored_task(spec: TaskSpec, asked: Iterable[AskedDocument], prompt_hash: str) -> list[Sample]:
    """The scored samples of a task whose documents were ``asked``."""
    answered = []
    for document, prompt, replies in asked:
        answered.append(Sample.answered(spec.name, document, replies, prompt, prompt_hash))
    scored = scored_samples(spec, answered)
    counts = Counter(sample.sample_id for sample in scored)
    repeated = sorted(sample_id for sample_id, count in counts.items() if count > 1)
    if repeated:
        raise MedtasksError(
            f"{len(repeated)} documents were answered more than once, such as {repeated[0]}; the "
            "back-end does not shard by the global rank"
        )
    return scored


def _replies_of(asked: Iterable[AskedDocument]) -> Iterator[Reply]:
    for document in asked:
        yield from document.replies


def _without_blank_run(tasks: Iterable[AnsweredTask]) -> Iterator[AnsweredTask]:
    """``tasks``, with all replies marked as failed if every one is blank.

    Then the model is broken, not just bad.
    """
    held: list[AnsweredTask] = []  # until a response is not blank
    blank = True
    for name, asked in tasks:
        blank = blank and all(_is_blank_or_missed(reply) for reply in _replies_of(asked))
        held.append((name, asked))
        del asked  # only the caller needs its documents
        while held and not blank:
            yield held.pop(0)
    for name, asked in held:
        yield name, [_failed_as_blank(document) for document in asked]


def _is_blank_or_missed(reply: Reply) -> bool:
    """Whether there is no text, be it that the model gave none, or that it was not asked."""
    return reply.missed or is_blank(reply.text)


def _failed_as_blank(asked: AskedDocument) -> AskedDocument:
    """The document, whose replies are marked as failed if they are not yet."""
    replies = []
    for reply in asked.replies:
        is_blank_response = reply.failed is None and not reply.missed
        replies.append(Reply.failure(ALL_BLANK) if is_blank_response else reply)
    return asked._replace(replies=replies)


def score_unfinished(folder: Path, *, created: str) -> RunRecord:
    """The run made of the replies in ``folder``.

    Requests that were not sent count as failed, with that reason.
    """
    plan = read_plan(folder)
    with using(miniature=plan.manifest.miniature):
        _require_same_data(folder, plan.manifest)
        tasks = (_answered_task(folder, plan, name) for name in plan.documents)
        run = collect_run(plan.manifest, tasks)
    if not run.samples:
        raise MedtasksError(f"{folder}: {' '.join(run.manifest.problems)}")
    usage = run_usage([*read_work(folder).values()], devices=plan.manifest.usage.devices or 1)
    update = {"created": created, "usage": usage}
    return replace(run, manifest=run.manifest.model_copy(update=update))


def _require_same_data(folder: Path, manifest: RunManifest) -> None:
    """Refuse a run on other data than those prepared here."""
    for name, facts in manifest.data.items():
        prepared = open_prepared(name).manifest.fingerprint
        if prepared != facts.fingerprint:
            raise DataError(
                f"{folder}: the run used {name} data with fingerprint "
                f"{facts.fingerprint[:16]}, but the data prepared here have {prepared[:16]}; "
                "prepare the same data."
            )


def unfinished_times(folder: Path) -> dict[str, list[RequestTime]]:
    """The times of the requests so far of the unfinished run in ``folder``, by task."""
    plan = read_plan(folder)
    answers_of_task: dict[str, list[Answer]] = {}
    for answers in read_work(folder).values():
        for answer in answers:
            answers_of_task.setdefault(answer.slot.task, []).append(answer)
    times: dict[str, list[RequestTime]] = {}
    with using(miniature=plan.manifest.miniature):
        for name, answers in answers_of_task.items():
            documents = zip(plan.documents[name], _asked_documents(plan, name), strict=True)
            sample_ids = {number: document["sample_id"] for number, document in documents}
            times[name] = request_times(answers, sample_ids)
    return times


def _asked_documents(plan: RunPlan, name: str) -> list[dict[str, Any]]:
    """The documents of a task that the run asks, in the order of their numbers in the plan."""
    facts = plan.manifest.tasks[name]
    # of the run's documents
    with using(subset=read_subset(facts.subset), max_frames=facts.frames.get("cap")):
        documents: list[dict[str, Any]] = (
            task_rows(name).dataset().select(plan.documents[name]).to_list()
        )
    return documents


def _answered_task(folder: Path, plan: RunPlan, name: str) -> AnsweredTask:
    """A task of the run, with the replies in ``folder``."""
    documents = _asked_documents(plan, name)
    answers_by_document = by_document(read_answers(folder, name), name)
    repeats = range(load_spec(name).repeats)
    asked = []
    for number, document in zip(plan.documents[name], documents, strict=True):
        answers = answers_by_document.get(number, {})
        prompt = ""
        if answers:
            prompt = next(iter(answers.values())).slot.prompt
        replies = []
        for repeat in repeats:
            answer = answers.get(repeat)
            replies.append(Reply.failure(NOT_ASKED) if answer is None else answer.reply)
        asked.append(AskedDocument(document, prompt, replies))
    return name, asked
