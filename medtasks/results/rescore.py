"""Scoring without a model: responses that are there, through today's filters and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.errors import MedtasksError
from medtasks.filters import version_of
from medtasks.results.judged import judged_threshold, with_judged_scores
from medtasks.results.learned import with_learned_metrics
from medtasks.results.manifest import RunManifest, TaskFacts, outcome_counts, protocol_hash, versions
from medtasks.results.run import pooled_scores
from medtasks.results.samples import Sample
from medtasks.results.scored import scored_again
from medtasks.results.scoring import Scores
from medtasks.spec import TaskSpec, load_spec

__all__ = ["Change", "Rescored", "rescore"]


@dataclass(frozen=True)
class Change:
    """One thing that is scored otherwise than before: ``what`` is ``filtered``, ``status`` or a metric's name."""

    task: str
    sample_id: str
    what: str
    before: Any
    after: Any


@dataclass(frozen=True)
class Rescored:
    """A run's samples and scores by today's rules, and in what they differ from what the folder said."""

    samples: dict[str, list[Sample]]
    tasks: dict[str, Scores]
    groups: dict[str, Scores]
    manifest: RunManifest
    changes: tuple[Change, ...]


def rescore(manifest: RunManifest, samples: Mapping[str, Sequence[Sample]]) -> Rescored:
    """A run's samples, scored again.

    What a folder was made from stays in its manifest; the versions that score it now stand under ``scored``.

    Raises:
        UsageError: a task of the run is no task of ours any more.
        NotPreparedError: a metric needs the prepared data (CIDEr's references), and they are not there.
        MedtasksError: the folder lacks the samples of a task that its manifest names.
    """
    lacking = sorted(manifest.tasks.keys() - samples.keys())
    if lacking:
        raise MedtasksError(f"samples/{lacking[0]}.jsonl: missing, although the manifest names the task; restore it.")
    again: dict[str, list[Sample]] = {}
    changes: list[Change] = []
    problems: list[str] = []
    facts: dict[str, TaskFacts] = {}
    for name in manifest.tasks:
        spec = load_spec(name)
        scored = with_learned_metrics(spec, scored_again(spec, samples[name]), problems)
        again[name] = with_judged_scores(spec, scored, manifest.judge)
        for before, after in zip(samples[name], again[name], strict=True):
            changes += _changes(name, before, after)
        facts[name] = _facts(spec, manifest.tasks[name], again[name])
    tasks, groups = pooled_scores(again, manifest.groups, threshold=judged_threshold(manifest.judge))
    by = {key: value for key, value in versions().items() if key in _SCORING}
    renewed = manifest.model_copy(update={"tasks": facts, "scored": by, "problems": tuple(problems)})
    return Rescored(again, tasks, groups, renewed, tuple(changes))


_SCORING = frozenset({"medtasks", "rouge-score", "sacrebleu", "nltk", "numpy", "bert-score", "transformers", "torch"})
"""Packages that can move a score once the responses are there."""


def _changes(task: str, before: Sample, after: Sample) -> list[Change]:
    pairs: list[tuple[str, Any, Any]] = [
        ("filtered", before.filtered, after.filtered),
        ("status", before.status, after.status),
    ]
    names = dict.fromkeys((*before.scores, *after.scores))
    pairs += [(name, before.scores.get(name), after.scores.get(name)) for name in names]
    return [Change(task, before.sample_id, what, old, new) for what, old, new in pairs if old != new]


def _facts(spec: TaskSpec, facts: TaskFacts, samples: Sequence[Sample]) -> TaskFacts:
    """The task's facts by today's rules; the prompt stays the one that was asked."""
    return facts.model_copy(
        update={
            "filters": {name: version_of(name) for name in spec.filters},
            "protocol_hash": protocol_hash(
                spec,
                facts.generation,
                prompt_hash=facts.prompt_hash,
                frames=facts.frames,
                blind=facts.blind,
                presentation=facts.presentation,
            ),
            "yaml_hash": spec.yaml_hash,
            **outcome_counts(samples),
        }
    )
