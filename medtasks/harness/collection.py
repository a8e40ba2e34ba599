"""What all processes of a command have: replies, scored and judged as one run, and usage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.errors import MedtasksError
from medtasks.core.settings import current_settings
from medtasks.judge.judge_run import judge_all
from medtasks.judge.judging_report import plain_progress
from medtasks.judge.settings import JudgeConfig
from medtasks.runs.manifest import RunManifest
from medtasks.runs.replies import Answer
from medtasks.runs.times import RequestTime, request_times
from medtasks.runs.unfinished import read_work
from medtasks.runs.usage import RunUsage, run_usage
from medtasks.scoring.finished_run import AnsweredTask, AskedDocument, collect_run
from medtasks.scoring.run_record import RunRecord

from .processes import gathered
from .requests import DocumentReplies, Requests


@dataclass
class GatheredReplies:
    """The replies of all processes, each process's by task."""

    processes: Sequence[dict[str, list[DocumentReplies]]]

    def take(self, name: str) -> list[DocumentReplies]:
        """Remove and return the replies to a task, so that they can be freed once it is scored."""
        replies: list[DocumentReplies] = []
        for process in self.processes:
            replies.extend(process.pop(name))
        return replies


def collected_run(
    requests: Requests,
    tasks: Mapping[str, tuple[TaskSpec, Any]],
    planned: RunManifest,
    judges: JudgeConfig | None,
    *,
    first: bool,
) -> RunRecord | None:
    """The run with the replies of all processes, scored, and judged if there are ``judges``.

    None on every process but the ``first``.

    Raises:
        MedtasksError: no task could be scored.
    """
    gathered_replies: GatheredReplies | None = None
    if current_settings().processes > 1:
        own = {name: requests.answers(task) for name, (_, task) in tasks.items()}
        gathered_replies = GatheredReplies(gathered(own))
    if not first:
        return None
    judging = None
    if judges is not None:
        judging = partial(_judged, judges=judges, planned=planned)
    answered = _answered_tasks(requests, tasks, gathered_replies)
    run = collect_run(planned, answered, judging, requests.store.folder)
    if not run.samples:
        raise MedtasksError(" ".join(run.manifest.problems) or "no task of the run has an answer")
    return run


def _answered_tasks(
    requests: Requests,
    tasks: Mapping[str, tuple[TaskSpec, Any]],
    gathered_replies: GatheredReplies | None,
) -> Iterator[AnsweredTask]:
    """Yield each task with its documents and replies.

    Those of a single process are read only now, and no variable here keeps them: only one task's
    are in memory.
    """
    for name, (_, task) in tasks.items():
        if gathered_replies is None:
            yield name, _with_documents(requests.answers(task), task)
        else:
            yield name, _with_documents(gathered_replies.take(name), task)


def _with_documents(answers: Sequence[DocumentReplies], task: Any) -> list[AskedDocument]:
    """The documents of a task that were asked, in their order, with prompt and replies."""
    ordered = sorted(answers, key=lambda answer: answer.doc_id)
    documents = task.eval_docs.select([answer.doc_id for answer in ordered]).to_list()
    answered = []
    for document, answer in zip(documents, ordered, strict=True):
        answered.append(AskedDocument(document, answer.prompt, answer.replies))
    return answered


def _judged(samples: Any, *, judges: JudgeConfig, planned: RunManifest) -> Any:
    """The samples with verdicts, and facts about the judging."""
    if not any(load_spec(name).metadata.rubrics for name in samples):
        return samples, {}
    verdicts = judge_all(samples, judges, planned, progress=plain_progress())
    if verdicts.error is not None and not verdicts.report:
        raise verdicts.error
    print("\n".join(verdicts.report), flush=True)
    return verdicts.samples, verdicts.facts


def collected_work(folder: Path) -> list[list[Answer]]:
    """The replies of all processes in ``folder`` without texts, those of earlier, unfinished runs
    included; only the first process gets them.
    """
    all_work: list[list[Answer]] = []
    for process_work in gathered(_own_work(folder)):
        all_work.extend(process_work)
    return all_work


def collected_usage(lm: Any, work: Sequence[Sequence[Answer]]) -> RunUsage:
    """The usage of all processes; without ``work``, times and memory are unknown."""
    own_counts = lm.describe().get("usage", {}) if hasattr(lm, "describe") else {}
    counters = Counter[str]()
    for counts in gathered(own_counts):
        counters.update(counts)
    return run_usage(work, devices=getattr(lm, "devices", 1), counters=counters)


def collected_times(
    work: Sequence[Sequence[Answer]], tasks: Mapping[str, tuple[TaskSpec, Any]]
) -> dict[str, list[RequestTime]]:
    """The times of the requests behind the ``work``, by task; empty if none was measured."""
    answers_of_task: dict[str, list[Answer]] = {}
    for answers in work:
        for answer in answers:
            answers_of_task.setdefault(answer.slot.task, []).append(answer)
    times: dict[str, list[RequestTime]] = {}
    for name, answers in answers_of_task.items():
        if any(answer.reply.timing is not None for answer in answers):
            _, task = tasks[name]
            sample_ids = task.eval_docs.select_columns(["sample_id"])["sample_id"]
            times[name] = request_times(answers, [*sample_ids])
    return times


def _own_work(folder: Path) -> list[list[Answer]]:
    """The replies without texts that this process reads, a list for each process's file.

    Each process reads its own file, which no other is writing to; the first one also those of
    processes that no longer exist.
    """
    rank, processes = current_settings().rank, current_settings().processes
    own_work: list[list[Answer]] = []
    for number, answers in sorted(read_work(folder).items()):
        is_abandoned = number >= processes
        if number == rank or (rank == 0 and is_abandoned):
            own_work.append(answers)
    return own_work
