"""Judging a run under one or several rubrics, by one or several judges, and scoring it again."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.core.settings import using
from medtasks.core.text import first_names, printable
from medtasks.data.store import open_prepared
from medtasks.judge.agreement import agreement_report
from medtasks.judge.client import JudgeClient
from medtasks.judge.families import family_warnings
from medtasks.judge.judging_report import (
    KEPT,
    Progress,
    Verdicts,
    all_verdicts,
    has_unusable,
    problems,
    report,
)
from medtasks.judge.labels import Labels, read_labels
from medtasks.judge.pipeline import Question, all_or_none, judge_questions
from medtasks.judge.questions import judged_samples, questions_of
from medtasks.judge.settings import JudgeConfig, judge_identity
from medtasks.judge.store import VerdictStore
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.judged_scores import judge_hash
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore

Samples = Mapping[str, list[Sample]]
"""The samples of a run, by task."""


@dataclass(frozen=True)
class JudgedRubric:
    """A run's samples with their verdicts under one rubric, and the facts on judging them."""

    samples: dict[str, list[Sample]]
    facts: RubricFacts


@dataclass
class Judged:
    """A run's samples with verdicts and scores, and the facts on all rubrics for its manifest.

    ``report`` has a paragraph for each rubric that was just judged, and a line for each that failed
    beside them; ``failed`` the errors of these. What a rubric without a single verdict would have
    made of the run is in ``unused``; ``samples`` and ``facts`` are unchanged by it.
    """

    samples: dict[str, list[Sample]]
    facts: dict[str, RubricFacts]
    report: list[str] = field(default_factory=list)
    failed: dict[str, MedtasksError] = field(default_factory=dict)
    unused: dict[str, JudgedRubric] = field(default_factory=dict)

    @property
    def error(self) -> MedtasksError | None:
        """All failures as one error; None if there was none."""
        distinct = {str(error): error for error in self.failed.values()}
        if not distinct:
            return None
        if len(distinct) == 1:
            return next(iter(distinct.values()))
        return MedtasksError(" ".join(distinct))


def is_judged(run: RunRecord, config: JudgeConfig) -> bool:
    """Whether the scored run has this panel's verdicts on all responses.

    False, too, if judges see images, which are compared with the prepared data first.
    """
    warnings = _family_warnings(config, run.manifest)
    for rubric, tasks in _tasks_by_rubric(run.manifest.tasks, config.rubrics):
        facts = run.manifest.judge.get(rubric.name)
        identities = _identities(rubric, config)
        if facts is None or _see_images(identities):
            return False
        if (facts.threshold, facts.warnings) != (config.threshold, warnings):
            return False
        panel = judge_hash(rubric, template_hash(rubric.template), identities, config.combine)
        if facts.judge_hash != panel or set(facts.tasks) != set(tasks):
            return False
        if facts.judged != facts.asked:
            return False
        for task in tasks:
            for metric in rubric.metrics:
                if not _is_all_judged(run.tasks[task].metrics[metric]):
                    return False
    return True


def _is_all_judged(score: MetricScore) -> bool:
    return score.judged is not None and score.judged == (score.answered or score.samples)


def judge_all(
    samples: Samples,
    config: JudgeConfig,
    manifest: RunManifest,
    *,
    human: Path | None = None,
    again: bool = False,
    progress: Progress | None = None,
) -> Judged:
    """Judge ``samples`` under one rubric after another, asking all judges concurrently.

    The rubrics are those in ``config``, by default the first one of each task; tasks that none
    applies to are unchanged, and scores of rubrics judged before are kept. ``human`` is a CSV file
    of human annotations (`medtasks.judge.labels.read_labels`) to compare the judges with.
    ``again`` asks again where the stored answer is not a verdict.

    Raises:
        UsageError: a rubric is unknown or applies to no task of the run, or no task of the run is
            judged.
        MedtasksError: the verdict store or the annotations cannot be read.
    """
    tasks_by_rubric = _tasks_by_rubric(samples, config.rubrics)
    judged = Judged(dict(samples), dict(manifest.judge))
    with using(miniature=manifest.miniature), VerdictStore(config.store) as store:
        panel = _Panel(config, manifest, store, human, progress, again=again)
        for rubric, tasks in tasks_by_rubric:
            panel.judge(rubric, tasks, judged)
    if judged.failed and judged.report:
        judged.report.append("")
        for error in judged.failed.values():
            judged.report.append(printable(f"not judged: {error}"))
    return judged


class _Panel:
    """The judges of a configuration, whose budgets all rubrics share."""

    def __init__(
        self,
        config: JudgeConfig,
        manifest: RunManifest,
        store: VerdictStore,
        human: Path | None,
        progress: Progress | None,
        *,
        again: bool,
    ) -> None:
        self._config = config
        self._manifest = manifest
        self._store = store
        self._human = human
        self._progress = progress
        self._again = again
        self._clients: dict[str, JudgeClient] = {}
        for name, settings in config.judges.items():
            self._clients[name] = JudgeClient(settings)
        self._warnings = _family_warnings(config, manifest)

    def judge(self, rubric: Rubric, tasks: tuple[str, ...], judged: Judged) -> None:
        """Judge the tasks under the rubric, and add what came of it to ``judged``."""
        labels, unmatched = self._labels(rubric, tasks, judged.samples)
        before = {judge: replace(client.spent) for judge, client in self._clients.items()}
        try:
            questions = self._questions(rubric, tasks, judged.samples)
            verdicts = self._ask(questions, rubric)
            with without_garbage_collection():
                result = self._result(rubric, tasks, judged, questions, verdicts, labels)
                lines = problems(verdicts, self._config.judges, self._store)
        except MedtasksError as error:
            judged.failed[rubric.name] = error
            return
        facts = result.facts
        if facts.asked and not any(verdict.scores for verdict in all_verdicts(verdicts)):
            judged.unused[rubric.name] = result
            judged.failed[rubric.name] = _without_verdict(facts, lines, verdicts)
            return
        judged.samples = result.samples
        judged.facts[rubric.name] = facts
        spent = {}
        for judge, client in self._clients.items():
            spent[judge] = client.spent.since(before[judge])
        kept = has_unusable(verdicts)
        judged.report += report(facts, lines, spent, self._config.judges, kept=kept)
        if unmatched:
            names = first_names(unmatched, 5)
            judged.report.append(
                f"  {len(unmatched):,} labelled samples are not in this run: {names}"
            )

    def _labels(
        self, rubric: Rubric, tasks: Sequence[str], samples: Samples
    ) -> tuple[Labels, list[str]]:
        """The human annotations, and the annotated samples that the run lacks."""
        if self._human is None:
            return {}, []
        documents = {}
        for task in tasks:
            for sample in samples[task]:
                documents[task, sample.sample_id] = sample.whole_document()
        return read_labels(self._human, rubric, documents)

    def _questions(self, rubric: Rubric, tasks: Sequence[str], samples: Samples) -> list[Question]:
        fingerprints = None
        if _see_images(_identities(rubric, self._config)):
            fingerprints = _fingerprints(tasks, self._manifest)
        return questions_of(samples, tasks, rubric, fingerprints)

    def _ask(self, questions: Sequence[Question], rubric: Rubric) -> Verdicts:
        """The verdicts of all judges, who are asked at the same time."""
        asking = []
        for judge, client in self._clients.items():
            progress = self._progress and partial(self._progress, rubric.name, judge)
            asking.append(
                judge_questions(questions, rubric, client, self._store, progress, again=self._again)
            )
        verdicts = asyncio.run(all_or_none(asking))
        return dict(zip(self._clients, verdicts, strict=True))

    def _result(
        self,
        rubric: Rubric,
        tasks: tuple[str, ...],
        judged: Judged,
        questions: Sequence[Question],
        verdicts: Verdicts,
        labels: Labels,
    ) -> JudgedRubric:
        samples, facts = judged_samples(
            judged.samples,
            judged.facts,
            rubric,
            tasks,
            _identities(rubric, self._config),
            questions,
            verdicts,
            rule=self._config.combine,
            threshold=self._config.threshold,
            warnings=self._warnings,
            agreement=_agreement(rubric, questions, verdicts, labels),
        )
        return JudgedRubric(samples, facts)


def _without_verdict(
    facts: RubricFacts, problem_lines: Sequence[str], verdicts: Verdicts
) -> MedtasksError:
    """The error that no response has a verdict under a rubric."""
    most_common = Counter(facts.unjudged).most_common(3)
    reasons = "; ".join(f"{count:,} × {reason}" for reason, count in most_common)
    name = facts.rubric.name
    sentences = [
        f"rubric {name}: not one of {facts.asked:,} responses was judged ({reasons})",
        *problem_lines,
        "Its scores were not changed",
    ]
    if has_unusable(verdicts):
        sentences.append(KEPT[0].upper() + KEPT[1:])
    text = ". ".join(sentence.rstrip(".") for sentence in sentences)
    return MedtasksError(f"{text}.")


def _tasks_by_rubric(
    tasks: Collection[str], named: Sequence[str]
) -> list[tuple[Rubric, tuple[str, ...]]]:
    """The rubrics in ``named`` with their tasks; if it is empty, the first rubric of each task.

    The tasks of a rubric in ``named`` are those that name it or whose benchmark it names.
    """
    metadata = {task: load_spec(task).metadata for task in tasks}
    names = list(named)
    if not names:
        for facts in metadata.values():
            names += facts.rubrics[:1]
    if not names:
        raise UsageError(
            f"no task of this run is judged ({', '.join(tasks)}); its scores are complete without."
        )
    tasks_by_rubric = []
    for name in dict.fromkeys(names):
        rubric = load_rubric(name)
        members = []
        for task, facts in metadata.items():
            if named:
                applies = rubric.name in facts.rubrics or facts.benchmark in rubric.benchmarks
            else:
                applies = rubric.name in facts.rubrics[:1]
            if applies:
                members.append(task)
        if not members:
            raise UsageError(
                f"rubric {rubric.name} is for no task of this run ({', '.join(tasks)}); a task names its "
                "rubrics in its metadata."
            )
        tasks_by_rubric.append((rubric, tuple(members)))
    return tasks_by_rubric


def _family_warnings(config: JudgeConfig, manifest: RunManifest) -> tuple[str, ...]:
    model_args = manifest.settings.get("model_args") or {}
    if not isinstance(model_args, Mapping):
        entries = str(model_args).split(",")
        model_args = dict(entry.partition("=")[::2] for entry in entries)
    values = [manifest.model.get(key) for key in ("checkpoint", "pretrained", "model")]
    values += model_args.values()
    names = [value for value in values if isinstance(value, str) and value]
    judges = [settings.model for settings in config.judges.values()]
    return family_warnings(judges, names)


def _identities(rubric: Rubric, config: JudgeConfig) -> dict[str, dict[str, Any]]:
    """What identifies each judge of the panel under the rubric, by name."""
    identities = {}
    for name, settings in config.judges.items():
        identities[name] = judge_identity(settings, images=rubric.media and settings.images)
    return identities


def _see_images(identities: Mapping[str, Mapping[str, Any]]) -> bool:
    return any("images" in identity for identity in identities.values())


def _fingerprints(tasks: Sequence[str], manifest: RunManifest) -> dict[str, str]:
    """The fingerprints of the tasks' prepared data, which are the run's, by benchmark."""
    fingerprints = {}
    for benchmark in sorted({load_spec(task).metadata.benchmark for task in tasks}):
        fingerprint = open_prepared(benchmark).manifest.fingerprint
        expected = manifest.data[benchmark].fingerprint
        if fingerprint != expected:
            raise MedtasksError(
                f"{benchmark}: the data prepared here have fingerprint {fingerprint}, those of the "
                f"run {expected}, so its images cannot be shown to a judge; prepare the same data, "
                "or judge without images."
            )
        fingerprints[benchmark] = fingerprint
    return fingerprints


def _agreement(
    rubric: Rubric, questions: Sequence[Question], verdicts: Verdicts, labels: Labels
) -> AgreementReport | None:
    """Agreement of the judges with each other and with human annotations.

    Annotations are about a sample's first response. None for a single rater.
    """
    clusters = {question.name: str(question.document["cluster"]) for question in questions}
    ratings: dict[str, dict[str, Mapping[str, float]]] = {}
    for judge, by_question in verdicts.items():
        ratings[judge] = {}
        for name, verdict in by_question.items():
            if verdict.scores is not None:
                ratings[judge][name] = verdict.scores
    for rater, labels_by_unit in labels.items():
        label_name = f"{rater} (labels)" if rater in verdicts else rater
        ratings[label_name] = {}
        for (task, sample_id), scores in labels_by_unit.items():
            name = f"{task}/{sample_id}#0"
            if name in clusters:
                ratings[label_name][name] = scores
    if len(ratings) < 2:
        return None
    return agreement_report(rubric, ratings, clusters)
