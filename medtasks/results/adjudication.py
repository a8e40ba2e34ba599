"""Judging a whole run: every wanted rubric, then all scores again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtasks.errors import MedtasksError, UsageError
from medtasks.files import canonical_json
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.config import JudgeConfig, default_store
from medtasks.judge.families import read_families
from medtasks.judge.human import HumanLabels, read_labels
from medtasks.judge.judgement import REPAIR
from medtasks.judge.rubric import load_rubric
from medtasks.judge.scales import Rubric
from medtasks.judge.store import VerdictStore
from medtasks.results.folder import RunRecord
from medtasks.results.judged import judged_document, judged_threshold
from medtasks.results.judging import NothingJudged, judge_samples, judgeable_tasks
from medtasks.results.manifest import RubricFacts, RunManifest
from medtasks.results.run import pooled_scores
from medtasks.results.samples import Sample
from medtasks.spec import load_spec

Samples = Mapping[str, list[Sample]]
Progress = Callable[[str, str, int, int, Spent, "str | None"], None]
"""Called with rubric, judge, questions done, all, what was spent, and why the judge does not answer at present."""


def _unreported(*_: object) -> None:
    """No progress report."""


@dataclass
class Judged:
    """Samples with verdicts and scores, and facts for the manifest.

    ``spent`` (by rubric and judge), ``problems`` (lines for the user) and ``labels`` (human annotations) are about the
    rubrics judged now, ``failed`` has the error of each rubric that failed.
    """

    samples: dict[str, list[Sample]]
    facts: dict[str, RubricFacts]
    spent: dict[tuple[str, str], Spent] = field(default_factory=dict)
    problems: dict[str, tuple[str, ...]] = field(default_factory=dict)
    labels: dict[str, HumanLabels] = field(default_factory=dict)
    failed: dict[str, MedtasksError] = field(default_factory=dict)

    @property
    def error(self) -> MedtasksError | None:
        """All that failed as one error; None if nothing did."""
        distinct = {str(error): error for error in self.failed.values()}
        if len(distinct) < 2:
            return next(iter(distinct.values()), None)
        return MedtasksError(" ".join(distinct))


def wanted_rubrics(samples: Samples, named: Iterable[str] = ()) -> tuple[Rubric, ...]:
    """The rubrics called ``named``, or by default the first one of every task of the run.

    Raises:
        UsageError: a rubric is unknown or for no task of the run, or no task of it is judged at all.
    """
    names = tuple(dict.fromkeys(named))
    if not names:
        names = tuple(dict.fromkeys(rubric for task in samples for rubric in load_spec(task).metadata.rubrics[:1]))
    if not names:
        raise UsageError(f"no task of this run is judged ({', '.join(samples)}); its scores are complete without.")
    rubrics = tuple(load_rubric(name) for name in names)
    for rubric in rubrics:
        judgeable_tasks(samples, rubric)
    return rubrics


def judge_all(
    samples: Samples,
    rubrics: Iterable[Rubric],
    config: JudgeConfig,
    *,
    judged_names: Sequence[str],
    fingerprints: Mapping[str, str],
    known: Mapping[str, RubricFacts] | None = None,
    human: Path | None = None,
    progress: Progress = _unreported,
) -> Judged:
    """Judge ``samples`` under one rubric after the other; arguments as :func:`medtasks.results.judging.judge_samples`.

    ``human`` is a CSV file of human annotations (:mod:`medtasks.judge.human`). A rubric that fails is in
    `Judged.failed`, its samples stay as they were, and the next one is judged.

    Raises:
        MedtasksError: the verdict store, the table of families or the annotations cannot be read.
    """
    clients = {name: JudgeClient(one) for name, one in config.judges.items()}  # a budget is for all rubrics together
    families = None if config.families is None else read_families(config.families)
    judged = Judged(dict(samples), dict(known or {}))
    with VerdictStore(config.store or default_store()) as store:
        for rubric in rubrics:
            labels = None if human is None else _labels(human, rubric, samples)
            first = [task for task in samples if rubric.name in load_spec(task).metadata.rubrics[:1]]
            try:
                one = judge_samples(
                    judged.samples,
                    rubric,
                    config,
                    store,
                    clients,
                    tasks=None if config.rubrics else first,
                    judged_names=judged_names,
                    fingerprints=fingerprints,
                    known=judged.facts,
                    labels=None if labels is None else labels.ratings,
                    families=families,
                    progress=functools.partial(progress, rubric.name),
                )
            except MedtasksError as error:
                judged.failed[rubric.name] = error
                continue
            judged.samples, judged.facts[rubric.name] = one.samples, one.facts
            judged.spent |= {(rubric.name, judge): spent for judge, spent in one.spent.items()}
            judged.problems[rubric.name] = one.problems
            if labels is not None:
                judged.labels[rubric.name] = labels
    return judged


def _labels(path: Path, rubric: Rubric, samples: Samples) -> HumanLabels:
    documents = {
        (task, sample.sample_id): judged_document(sample)
        for task in judgeable_tasks(samples, rubric)
        for sample in samples[task]
    }
    return read_labels(path, rubric, documents)


def judge_run(
    manifest: RunManifest,
    samples: Samples,
    config: JudgeConfig,
    *,
    human: Path | None = None,
    progress: Progress = _unreported,
) -> tuple[RunRecord, Judged]:
    """A run's samples, judged and scored again; other metrics are unchanged.

    Rubrics that failed are in `Judged.failed`; if all did, the run is unchanged.

    Raises:
        MedtasksError: as :func:`wanted_rubrics` and :func:`judge_all`.
    """
    judged = judge_all(
        samples,
        wanted_rubrics(samples, config.rubrics),
        config,
        judged_names=model_names(manifest.model, manifest.settings),
        fingerprints={name: facts.fingerprint for name, facts in manifest.data.items()},
        known=manifest.judge,
        human=human,
        progress=progress,
    )
    tasks, groups = pooled_scores(judged.samples, manifest.groups, threshold=judged_threshold(judged.facts))
    renewed = manifest.model_copy(update={"judge": judged.facts})
    return RunRecord(manifest=renewed, samples=judged.samples, tasks=tasks, groups=groups), judged


def model_names(model: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """All names of the model that answered in a manifest, to recognise its family."""
    told = [model.get(key) for key in ("checkpoint", "pretrained", "model")]
    arguments = settings.get("model_args")
    told += (
        arguments.values()
        if isinstance(arguments, Mapping)
        else [entry.partition("=")[2] for entry in str(arguments or "").split(",")]
    )
    return tuple(dict.fromkeys(one for one in told if isinstance(one, str) and one))


def exported(judged: Judged, store: VerdictStore) -> Iterable[str]:
    """One JSON line per response, judge and rubric: sample, prompt, raw answers, parsed verdict, tokens.

    For a rubric under which nothing was judged, these are the lines of the failed attempt, whose answers show why.
    """
    sources = {name: (facts, judged.samples) for name, facts in judged.facts.items()}
    for name, error in judged.failed.items():
        if isinstance(error, NothingJudged):
            sources[name] = (error.attempt.facts, error.attempt.samples)
    for rubric, (facts, samples) in sorted(sources.items()):
        for task in facts.tasks:
            for sample in samples[task]:
                yield from _exported_lines(rubric, task, sample, store)


def _exported_lines(rubric: str, task: str, sample: Sample, store: VerdictStore) -> Iterator[str]:
    for number, response in enumerate(sample.verdicts.get(rubric, ())):
        for judge, entry in sorted(response.judges.items()):
            line = {
                "rubric": rubric,
                "task": task,
                "sample_id": sample.sample_id,
                "repeat": number,
                "judge": judge,
                **entry.model_dump(mode="json"),
                **_said(entry.key, store),
            }
            yield canonical_json(line)


def _said(key: str | None, store: VerdictStore) -> dict[str, Any]:
    """The prompt and all raw answers to one question in the store."""
    if key is None:
        return {"prompt": None, "answers": []}
    held = store.get([key, key + REPAIR])
    found = [held[one] for one in (key, key + REPAIR) if held.get(one) is not None]
    return {"prompt": found[0].prompt if found else None, "answers": [one.answer for one in found]}
