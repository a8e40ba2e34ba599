"""Contradictions in a run's samples, found without the data: a board does not rank such a run.

Every response is scored again, but no model is loaded: learned metrics are left to `medtasks.leaderboard.check`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from medtasks.benchmarks.base import FAILED, Document
from medtasks.benchmarks.stages import asked_prompt
from medtasks.errors import MedtasksError, first_line
from medtasks.results.manifest import RunManifest, TaskFacts, protocol_today
from medtasks.results.samples import Sample
from medtasks.results.signature import changed_options
from medtasks.spec import TaskSpec, load_spec

from .check_scores import rescored, scored_otherwise
from .documents import document_of, once
from .strip import is_stripped, is_withheld

UNSCORED = "scores are taken as submitted, because they cannot be computed here"
"""In notes on tasks that could be scored again on another machine, or after data were prepared."""


def doubts_of(
    manifest: RunManifest, samples: Mapping[str, Sequence[Sample]]
) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """By task, the reasons not to rank it, a sentence each; and notes on what could not be scored again.

    Args:
        manifest: of the run, with installed tasks only.
        samples: by task.
    """
    notes: list[str] = []
    found = {
        task: tuple(_doubts(task, manifest, facts, samples[task], notes)) for task, facts in manifest.tasks.items()
    }
    return {task: doubts for task, doubts in found.items() if doubts}, notes


def _doubts(
    task: str, manifest: RunManifest, facts: TaskFacts, samples: Sequence[Sample], notes: list[str]
) -> Iterator[str]:
    if is_stripped(samples):
        if not is_withheld(facts.benchmark):
            yield "samples without prompts and responses, although they may be shown"
        return
    others = sum(1 for _ in other_prompts(task, manifest, facts, samples))
    if others:
        yield f"{others:,} of {len(samples):,} prompts differ from the template"
    if facts.protocol_hash != protocol_today(load_spec(task), facts):
        yield "scored by other rules than those installed here, so its scores cannot be checked"
        return
    try:
        again = rescored(task, manifest, samples, learned=False)
    except MedtasksError as error:  # a metric needs data that are not here
        notes.append(f"{task}: {UNSCORED} ({first_line(error).rstrip('.')})")
        return
    now, claimed = ({name for one in scored for name in one.statistics} for scored in (again, samples))
    learned = claimed & set(load_spec(task).metadata.learned)
    if learned:
        notes.append(f"{task}: {', '.join(sorted(learned))} are taken as submitted, because building loads no models")
    if absent := sorted(claimed - now - learned):
        notes.append(f"{task}: {UNSCORED} ({', '.join(absent)})")
    otherwise = [
        next((field for field, _, there in scored_otherwise(before, after) if there is not None), None)
        for before, after in zip(samples, again, strict=True)
    ]
    wrong = [field for field in otherwise if field is not None]
    if wrong:
        yield f"{len(wrong):,} of {len(samples):,} responses get different scores under today's rules ({wrong[0]})"


def other_prompts(
    task: str, manifest: RunManifest, facts: TaskFacts, samples: Sequence[Sample]
) -> Iterator[tuple[int, Sample]]:
    """The samples, with line numbers, whose prompt is not what the task's template makes of their documents.

    Empty if the run has another template than the one installed here, harness options changed the prompts, or they
    were stripped. Tasks with two stages log the first prompt.
    """
    spec = load_spec(task)
    if changed_options(manifest.settings) or facts.prompt_hash != spec.prompt_hash or is_stripped(samples):
        return
    what = f"prompt of {task} {facts.prompt_hash}"
    for line, sample in enumerate(samples, start=1):
        if sample.status == FAILED and not sample.prompt:  # never asked: the run was not finished
            continue
        expected = once(what, document_of(sample), lambda one: _prompt(spec, one))
        if _hash(sample.prompt) != expected:
            yield line, sample


def _prompt(spec: TaskSpec, document: Document) -> bytes:
    """The hash of the prompt; empty if the document does not give one."""
    try:
        return _hash(asked_prompt(spec, document))
    except (MedtasksError, KeyError):
        return b""


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
