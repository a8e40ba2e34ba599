"""What a run's model was trained on, as the record beside its weights states."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from medtasks.core.redaction import shown
from medtasks.runs.manifest import RunManifest
from medtasks.runs.training_record import RewardUse

SampleIds: TypeAlias = Mapping[str, frozenset[str]]
"""The ids of a run's samples by task."""


def training_notes(manifest: RunManifest, samples: SampleIds) -> dict[str, str]:
    """By benchmark that the model was trained on, a sentence on the rewards and the overlap.

    Ids are compared within a benchmark: variants of a task ask the same questions.
    """
    if manifest.training is None:
        return {}
    sentences: dict[str, list[str]] = {}
    for use in manifest.training.rewards:
        own_samples: dict[str, frozenset[str]] = {}
        for task, ids in samples.items():
            if manifest.tasks[task].benchmark == use.benchmark:
                own_samples[task] = ids
        sentences.setdefault(shown(use.benchmark), []).append(_sentence(use, own_samples))
    return {benchmark: "; ".join(parts) for benchmark, parts in sorted(sentences.items())}


def _sentence(use: RewardUse, samples: SampleIds) -> str:
    """One reward in words, with how many of the run's samples were in the training data."""
    parts = [f"trained with the reward {shown(use.metric)} of {shown(use.task)}"]
    if use.questions:
        overlaps = list(_overlaps(use.questions, samples))
        parts.append(f"on {', '.join(overlaps) or 'questions that this run does not have'}")
    if use.other_rows:
        parts.append("on rows from elsewhere, which were not compared with the questions")
    head, *places = parts
    return f"{head} {' and '.join(places)}"


def _overlaps(questions: Iterable[str], samples: SampleIds) -> Iterator[str]:
    """For each task with samples among the questions, how many."""
    trained = frozenset(questions)
    for task, ids in sorted(samples.items()):
        common = len(trained & ids)
        if common:
            yield f"{common:,} of the {len(ids):,} scored samples of {task}"
