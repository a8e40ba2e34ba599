"""Runs under way, from the replies that they have saved: progress, failures, abstentions, and
scores so far.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.locks import is_held
from medtasks.core.settings import using
from medtasks.runs.find import PLAN
from medtasks.runs.replies import Answer, Reply
from medtasks.runs.samples import Sample
from medtasks.runs.unfinished import RunPlan, by_document, read_answers, read_plan
from medtasks.scoring.group_scores import scores_of
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.local_documents import local_documents
from medtasks.scoring.run_tables import RunTables
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.scores import MetricScore, Scores

from ..intake.shown_layouts import layout_of
from ..verify.model_identity import model_name

LATEST = 20
"""Answers shown, the last ones."""
_SHARE = 0.2
"""Share of a processor's time that scoring the answers so far may take."""
_SILENT = 60.0
"""Seconds without a reply after which it is found out whether a process still writes the run."""


@dataclass(frozen=True)
class TaskProgress:
    """How far a task is, and its scores so far by metric.

    Requests are counted: ``planned``, ``answered`` and ``failed`` (by reason); of samples, those
    ``scored``, their statuses, and those whose answer is an abstention. A group has no progress of
    its own, but the number of items ``pooled``.
    """

    name: str
    scores: Sequence[tuple[str, MetricScore]]
    planned: int = 0
    answered: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    statuses: Mapping[str, int] = field(default_factory=dict)
    scored: int = 0
    abstained: int = 0
    pooled: int = 0

    @property
    def failures(self) -> int:
        return sum(self.failed.values())


@dataclass(frozen=True)
class RunProgress:
    """A run under way as its page shows it.

    ``seconds`` have passed since its last reply; a ``stopped`` run is written by no process.
    ``problem`` says why it, or one of its tasks, cannot be shown.
    """

    folder: str
    model: str = ""
    created: str = ""
    tasks: Sequence[TaskProgress] = ()
    latest: Sequence[Sample] = ()
    problem: str = ""
    seconds: float = 0.0
    stopped: bool = False


@dataclass(frozen=True)
class _AnsweredSample:
    """A scored sample, and the replies that it was made of."""

    replies: tuple[Reply, ...]
    sample: Sample


class UnfinishedRun:
    """Follows one run.

    A sample is scored once; scores are computed again as often as the time allows.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._progress = RunProgress(folder.name)
        self._sizes: dict[str, int] = {}
        self._samples: dict[tuple[str, int], _AnsweredSample] = {}
        self._next_look = 0.0

    def now(self) -> RunProgress:
        """The run as its page shows it; scores may be a few seconds old."""
        try:
            files = {path.name: path.stat() for path in sorted(self._folder.glob("*.rank*.jsonl"))}
            self._update({name: file.st_size for name, file in files.items()})
            times = [file.st_mtime for file in files.values()]
            last_reply = max(times) if times else (self._folder / PLAN).stat().st_mtime
        except (MedtasksError, OSError) as error:  # a run that ends removes its directory
            return replace(self._progress, problem=first_line(error))
        seconds = max(0.0, time.time() - last_reply)
        is_stopped = seconds > _SILENT and not self._is_written(files)
        return replace(self._progress, seconds=seconds, stopped=is_stopped)

    def _update(self, sizes: dict[str, int]) -> None:
        """Read the replies if files have grown, and if the time allows it."""
        is_current = sizes == self._sizes and self._progress.tasks
        start = time.monotonic()
        if is_current or start < self._next_look:
            return
        self._progress = self._read_progress()
        self._sizes = sizes
        end = time.monotonic()
        self._next_look = end + (end - start) * (1 - _SHARE) / _SHARE

    def _is_written(self, names: Mapping[str, object]) -> bool:
        """Whether a process still writes the run; ``names`` are those of its files."""
        ranks = {"0"}
        for name in names:
            ranks.add(name.partition(".rank")[2].partition(".")[0])
        return any(is_held(self._folder / f"rank{rank}") for rank in ranks)

    def _read_progress(self) -> RunProgress:
        """The progress of the run by the replies that are saved now."""
        plan = read_plan(self._folder)
        answers = read_answers(self._folder)
        samples: dict[str, list[Sample]] = {}
        problem = ""
        for task in plan.documents:
            try:
                samples[task] = self._scored(task, plan, answers)
            except MedtasksError as error:
                problem = f"{task}: its answers cannot be scored here ({first_line(error)})."
        return RunProgress(
            folder=self._folder.name,
            model=model_name(plan.manifest),
            created=plan.manifest.created,
            tasks=_progress_of_tasks(plan, answers, samples),
            latest=self._latest(answers),
            problem=problem,
        )

    def _latest(self, answers: Sequence[Answer]) -> list[Sample]:
        """The samples answered last, the newest first."""
        keys: dict[tuple[str, int], None] = {}
        for answer in reversed(answers):
            if answer.slot.outcome:
                keys[answer.slot.task, answer.slot.doc_id] = None
        samples = [self._samples[key].sample for key in keys if key in self._samples]
        return samples[:LATEST]

    def _scored(self, task: str, plan: RunPlan, answers: Sequence[Answer]) -> list[Sample]:
        """The samples of all documents with every reply, scored as at the end of a run, without
        learned metrics.
        """
        spec = load_spec(task)
        answered = by_document(answers, task)
        new = self._new_samples(spec, plan, answered)
        with using(miniature=plan.manifest.miniature):
            unjudged = scored_samples(spec, [answer.sample for answer in new.values()])
            scored = with_judged_scores(spec, unjudged)
        for number, sample in zip(new, scored, strict=True):
            self._samples[task, number] = replace(new[number], sample=sample)
        keys = [(task, number) for number in answered]
        return [self._samples[key].sample for key in keys if key in self._samples]

    def _new_samples(
        self, spec: TaskSpec, plan: RunPlan, answered: Mapping[int, Mapping[int, Answer]]
    ) -> dict[int, _AnsweredSample]:
        """The samples, not scored, of documents whose last reply has come, by document number.

        ``answered`` has the answers to each document by repeat.
        """
        documents = list(local_documents(spec.name, plan.manifest).values())
        prompt_hash = plan.manifest.tasks[spec.name].prompt_hash
        new: dict[int, _AnsweredSample] = {}
        for number, by_repeat in answered.items():
            repeats = [repeat for repeat in range(spec.repeats) if repeat in by_repeat]
            if len(repeats) < spec.repeats:
                continue
            replies = tuple(by_repeat[repeat].reply for repeat in repeats)
            earlier = self._samples.get((spec.name, number))
            if earlier is not None and earlier.replies == replies:
                continue
            prompt = by_repeat[0].slot.prompt
            sample = Sample.answered(spec.name, documents[number], replies, prompt, prompt_hash)
            new[number] = _AnsweredSample(replies, sample)
        return new


def _progress_of_tasks(
    plan: RunPlan, answers: Sequence[Answer], samples: Mapping[str, Sequence[Sample]]
) -> list[TaskProgress]:
    """The progress of all tasks, then the scores of groups that have a scored sample."""
    scored = {task: rows for task, rows in samples.items() if rows}
    groups = {}
    for name, members in plan.manifest.groups.items():
        tasks = tuple(task for task in members if task in scored)
        if tasks:
            groups[name] = tasks
    scores, group_scores = scores_of(RunTables(scored), groups)
    progress = []
    for task in plan.documents:
        progress.append(_progress(task, plan, answers, samples.get(task, ()), scores.get(task)))
    for name, pooled in group_scores.items():
        progress.append(TaskProgress(name, _shown_scores(name, pooled), pooled=pooled.items))
    return progress


def _progress(
    task: str,
    plan: RunPlan,
    answers: Sequence[Answer],
    samples: Sequence[Sample],
    scores: Scores | None,
) -> TaskProgress:
    """The progress of one task."""
    spec = load_spec(task)
    replies = []
    for answer in answers:
        if answer.slot.task == task and answer.slot.outcome:
            replies.append(answer.reply.checked())
    failed = Counter(reply.failed for reply in replies if reply.failed is not None)
    outcomes = [sample.outcome for sample in samples]
    responses = [sample for sample in samples if sample.status != FAILED]
    return TaskProgress(
        task,
        [] if scores is None else _shown_scores(task, scores),
        planned=len(plan.documents[task]) * spec.repeats,
        answered=len(replies) - failed.total(),  # with missed rounds, which are not asked again
        failed=failed,
        statuses=plan.manifest.tasks[task].with_outcomes(outcomes).status,
        scored=len(responses),
        abstained=_count_abstentions(spec, responses),
    )


def _count_abstentions(spec: TaskSpec, samples: Sequence[Sample]) -> int:
    """The number of samples whose answer is the abstention that their document defines.

    Answers are compared as filtered, so each abstention is filtered once, too.
    """
    document_by_abstention = {_abstention(sample): sample.document for sample in samples}
    responses = [[abstention] for abstention in document_by_abstention]
    documents = list(document_by_abstention.values())
    readings = spec.filter.kind().apply(responses, documents)
    filtered_abstentions = {}
    for abstention, reading in zip(document_by_abstention, readings, strict=True):
        filtered_abstentions[abstention] = str(reading)
    return sum(sample.filtered == filtered_abstentions[_abstention(sample)] for sample in samples)


def _abstention(sample: Sample) -> str:
    """The response with which a model declines the sample's question; empty if there is none."""
    return str(sample.document.get("abstention", ""))


def _shown_scores(name: str, scores: Scores) -> list[tuple[str, MetricScore]]:
    """The metrics and scores by which the board ranks, or else all that apply.

    ``name`` is the task or group of the ``scores``.
    """
    layout = layout_of(load_spec(name).metadata.benchmark)
    ranking_metrics = {column.metric for column in layout.headline}
    applicable = []
    ranking = []
    for metric, score in scores.metrics.items():
        if not score.samples:
            continue
        applicable.append((metric, score))
        if metric in ranking_metrics:
            ranking.append((metric, score))
    return ranking or applicable
