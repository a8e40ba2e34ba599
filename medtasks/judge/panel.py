"""The judges of a configuration, and what they make of a run's samples under one rubric."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from medtasks.catalog.rubric import Rubric
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import MedtasksError
from medtasks.core.garbage_collection import without_garbage_collection
from medtasks.core.text import first_names
from medtasks.data.store import open_prepared
from medtasks.judge.agreement import agreement_report
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.families import warnings_on_run
from medtasks.judge.human_labels import read_labels
from medtasks.judge.judged import Judged, Samples
from medtasks.judge.judging_report import (
    KEPT,
    Progress,
    Verdicts,
    all_verdicts,
    has_unusable,
    problems,
    report,
)
from medtasks.judge.labels import HumanLabels, LabelledRun, Labels, Unit
from medtasks.judge.pipeline import Question, all_or_none, judge_questions
from medtasks.judge.questions import questions_of
from medtasks.judge.rubric_verdicts import RubricVerdicts, judged_under_rubric
from medtasks.judge.settings import JudgeConfig, judge_identity
from medtasks.judge.store import VerdictStore
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.verdict import Verdict

_Ratings: TypeAlias = dict[str, Mapping[str, float]]
"""A rater's scores by aspect, by name of the question."""


class Panel:
    """The judges of a configuration, whose budgets all rubrics share.

    Args:
        config: the judges, and how their verdicts are combined.
        manifest: that of the run to judge.
        store: where verdicts are kept.
        human: human annotations (`medtasks.judge.human_labels.read_labels`), if there are any.
        progress: called as questions are done.
        again: whether to repeat questions whose stored answer is not a verdict.
    """

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
        self._warnings = warnings_on_run(config, manifest)

    def judge(self, rubric: Rubric, tasks: tuple[str, ...], judged: Judged) -> None:
        """Judge the tasks under the rubric, and add the samples, facts and report to ``judged``.

        If an error stops the rubric, or no response gets a verdict, its scores stay as they are.
        """
        labels = self._labels(rubric, tasks, judged.samples)
        spent_before = {judge: replace(client.spent) for judge, client in self._clients.items()}
        try:
            questions = self._questions(rubric, tasks, judged.samples)
            verdicts = self._ask(questions, rubric)
            with without_garbage_collection():
                by_rater = labels.by_rater
                judging = self._rubric_verdicts(rubric, tasks, questions, verdicts, by_rater)
                result = judged_under_rubric(judging, judged.samples, judged.facts)
                problem_lines = problems(verdicts, self._config.judges, self._store)
        except MedtasksError as error:
            judged.failed[rubric.name] = error
            return
        if result.facts.asked and not _has_scores(verdicts):
            judged.unused[rubric.name] = result
            judged.failed[rubric.name] = _without_verdict(result.facts, problem_lines, verdicts)
            return
        judged.samples = result.samples
        judged.facts[rubric.name] = result.facts
        spent = self._spent_since(spent_before)
        kept = has_unusable(verdicts)
        judged.report += report(result.facts, problem_lines, spent, self._config.judges, kept=kept)
        judged.report += _lines_on_labels(labels)

    def _spent_since(self, before: Mapping[str, Spent]) -> dict[str, Spent]:
        """What each judge spent since the state ``before``."""
        spent = {}
        for judge, client in self._clients.items():
            spent[judge] = client.spent.since(before[judge])
        return spent

    def _labels(self, rubric: Rubric, tasks: Sequence[str], samples: Samples) -> HumanLabels:
        """The human annotations of the run's answers to these tasks."""
        if self._human is None:
            return HumanLabels(())
        run = LabelledRun.of(self._manifest.identity, samples, tasks)
        return read_labels(self._human, rubric, run)

    def _questions(self, rubric: Rubric, tasks: Sequence[str], samples: Samples) -> list[Question]:
        """The questions for the judges, with images if one of them sees any."""
        fingerprints = None
        if see_images(identities_under(rubric, self._config)):
            fingerprints = _fingerprints(tasks, self._manifest)
        return questions_of(samples, tasks, rubric, fingerprints)

    def _ask(self, questions: Sequence[Question], rubric: Rubric) -> Verdicts:
        """The verdicts of all judges, who are asked at the same time."""
        asking = []
        for judge, client in self._clients.items():
            progress = self._progress and partial(self._progress, rubric.name, judge)
            verdicts_of_judge = judge_questions(
                questions, rubric, client, self._store, progress, again=self._again
            )
            asking.append(verdicts_of_judge)
        verdicts = asyncio.run(all_or_none(asking))
        return dict(zip(self._clients, verdicts, strict=True))

    def _rubric_verdicts(
        self,
        rubric: Rubric,
        tasks: tuple[str, ...],
        questions: Sequence[Question],
        verdicts: Verdicts,
        labels: Labels,
    ) -> RubricVerdicts:
        """The verdicts with all that identifies and describes them."""
        return RubricVerdicts(
            rubric=rubric,
            tasks=tasks,
            questions=questions,
            judges=identities_under(rubric, self._config),
            verdicts=verdicts,
            threshold=self._config.threshold,
            rule=self._config.combine,
            warnings=self._warnings,
            agreement=_agreement(rubric, questions, verdicts, labels),
        )


def _lines_on_labels(labels: HumanLabels) -> list[str]:
    """The lines of the report on labels that are not compared with judges."""
    lines = []
    if labels.absent:
        names = first_names(labels.absent, 5)
        lines.append(f"  {len(labels.absent):,} labelled samples are not in this run: {names}")
    if labels.stale:
        lines.append(f"  {labels.stale:,} ratings are of responses that have changed since")
    if labels.cannot_tell:
        lines.append(f"  {labels.cannot_tell:,} ratings say `cannot tell`")
    for name in labels.torn:
        lines.append(
            f"  the last line of {name} is cut off and not used: its answer is asked again"
        )
    return lines


def _has_scores(verdicts: Verdicts) -> bool:
    """Whether any judge scored any response."""
    return any(verdict.scores for verdict in all_verdicts(verdicts))


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


def identities_under(rubric: Rubric, config: JudgeConfig) -> dict[str, dict[str, Any]]:
    """What identifies each judge of the panel under the rubric, by name."""
    identities = {}
    for name, settings in config.judges.items():
        identities[name] = judge_identity(settings, images=rubric.media and settings.images)
    return identities


def see_images(identities: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a judge with one of these identities sees images."""
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
    ratings: dict[str, _Ratings] = {}
    for judge, by_question in verdicts.items():
        ratings[judge] = _ratings_of_judge(by_question)
    for rater, labels_by_unit in labels.items():
        rater_name = f"{rater} (labels)" if rater in verdicts else rater
        ratings[rater_name] = _ratings_of_human(labels_by_unit, clusters)
    if len(ratings) < 2:
        return None
    return agreement_report(rubric, ratings, clusters)


def _ratings_of_judge(verdicts: Mapping[str, Verdict]) -> _Ratings:
    """The scores of the questions on which a judge gave a verdict."""
    ratings: _Ratings = {}
    for question, verdict in verdicts.items():
        if verdict.scores is not None:
            ratings[question] = verdict.scores
    return ratings


def _ratings_of_human(
    labels: Mapping[Unit, Mapping[str, float]], questions: Collection[str]
) -> _Ratings:
    """The scores of the ``questions`` whose samples were annotated."""
    ratings: _Ratings = {}
    for (task, sample_id), scores in labels.items():
        question = f"{task}/{sample_id}#0"
        if question in questions:
            ratings[question] = scores
    return ratings
