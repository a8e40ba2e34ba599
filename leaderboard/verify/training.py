"""What a run's model was trained on, as the record beside its weights states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from medtasks.core.redaction import shown
from medtasks.runs.manifest import RunManifest
from medtasks.runs.training_record import RewardUse

SampleIds: TypeAlias = Mapping[str, frozenset[str]]
"""The ids of a run's samples by task."""
_VARIANT = re.compile(r"~p?\d+$")
"""What `rotated_options` and `paraphrased_prompts` add to the id of a question."""


def training_notes(manifest: RunManifest, samples: SampleIds) -> dict[str, str]:
    """By benchmark that the model was trained on, a sentence on the rewards and the overlap.

    Questions are compared within a benchmark: variants of a task ask the same ones.
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
    """For each task with samples that ask one of the questions, how many."""
    trained = frozenset(map(_question_id, questions))
    for task, ids in sorted(samples.items()):
        common = sum(_question_id(sample_id) in trained for sample_id in ids)
        if common:
            yield f"{common:,} of the {len(ids):,} scored samples of {task}"


def _question_id(sample_id: str) -> str:
    """The id of the question that a sample with rotated options or another prompt asks.

    >>> _question_id("icr-33"), _question_id("icr-33~2"), _question_id("icr-33~p1")
    ('icr-33', 'icr-33', 'icr-33')
    """
    return _VARIANT.sub("", sample_id)
