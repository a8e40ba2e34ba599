"""Runs of tasks that ask each question several times, answered by a function of the document."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from made_samples import made_manifest
from medtasks.adapters.policies import PolicyQuestion, make_policy

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.runs.manifest import versions
from medtasks.runs.protocol import task_facts
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.finished_run import AskedDocument, collect_run, data_facts
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.run_folder import write_run
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.scores import Scores

FAILURE = Reply.failure("the server is gone")


def plain(task: str) -> dict[str, dict[str, Any]]:
    """The documents of the task whose questions ``task`` asks several times."""
    return {
        one["sample_id"]: one for one in task_documents(str(load_spec(task).metadata.compare_with))
    }


def samples_of(
    task: str, reply: Callable[[dict[str, Any]], str | Reply], documents: Any = None
) -> list[Sample]:
    made = task_documents(task) if documents is None else documents
    replies = [
        one if isinstance(one := reply(document), Reply) else Reply(one) for document in made
    ]
    pairs = zip(made, replies, strict=True)
    return scored_samples(
        load_spec(task), [Sample.answered(task, document, (one,)) for document, one in pairs]
    )


def scores_of(
    task: str, reply: Callable[[dict[str, Any]], str | Reply], documents: Any = None
) -> Scores:
    benchmark = get_benchmark(load_spec(task).metadata.benchmark)
    return score_samples(samples_of(task, reply, documents), benchmark)


def values(scores: Scores) -> dict[str, float | None]:
    return {name: score.value for name, score in scores.metrics.items()}


def policy(name: str, **options: Any) -> Callable[[dict[str, Any]], str]:
    asked = make_policy(name, **options)
    return lambda document: asked(PolicyQuestion.of(document, document["sample_id"], ("no", "yes")))


def run_of(
    folder: Path, reply: Callable[[dict[str, Any]], str | Reply], groups: Sequence[str]
) -> Any:
    """A run of the groups' tasks, written to ``folder``."""
    members = {group: leaf_tasks(group) for group in groups}
    tasks: dict[str, list[AskedDocument]] = {}
    for task in itertools.chain.from_iterable(members.values()):
        documents = task_documents(task)
        tasks[task] = []
        for document in documents:
            answer = reply(document)
            made = answer if isinstance(answer, Reply) else Reply(answer)
            tasks[task].append(AskedDocument(document, "?", (made,)))
    planned = made_manifest(
        versions=versions(),
        model={"model": "m"},
        tasks={
            task: task_facts(load_spec(task), {}, len(answered)) for task, answered in tasks.items()
        },
        groups=members,
        data={
            name: data_facts(name)
            for name in sorted({load_spec(task).metadata.benchmark for task in tasks})
        },
    )
    record = collect_run(planned, tasks.items())
    write_run(folder, record)
    return record
