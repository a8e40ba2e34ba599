"""Judged scores of a run, corrected by people's labels of a probability sample of its answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from medtasks.catalog.rubric import Rubric
from medtasks.core.schema import Frozen
from medtasks.core.text import counted, first_names
from medtasks.judge.agreement_with_people import RatedResponses
from medtasks.judge.enough_labels import why_not_corrected
from medtasks.judge.human_labels import read_labels
from medtasks.judge.label_sources import labelled_rubrics, labels_hash
from medtasks.judge.labelled_answers import (
    AnswersUnderRubric,
    LabelledAnswer,
    answers_under_rubric,
    as_arrays,
    cluster_numbers,
    with_metric,
)
from medtasks.judge.labels import HumanLabels, LabelledRun
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.signature import changed_signature
from medtasks.scoring.run_record import RunRecord
from medtasks.stats.corrected_interval import PREDICTION_POWERED, corrected_interval
from medtasks.stats.labelled_answers import LabelledAnswers
from medtasks.stats.prediction_powered import corrected_mean


class CorrectedScore(Frozen):
    """The score that people would give to all answers, estimated from labels of a sample.

    Attributes:
        value: the estimate in the metric's unit; None if there is none.
        interval: its 95 % interval.
        interval_method: name of the method of the interval.
        judged: the judge's score in the same unit.
        answers: number of answers that the score is over.
        labels: number of labelled answers.
        clusters: number of clusters with a labelled answer.
        raters: number of people who labelled answers of these tasks.
        cannot_tell: number of ratings without a score.
        effective_labels: how many labels would give an estimate as precise without the judge.
        tuning: λ, the weight of the judge, from 0 to 1.
        signature: that of the judged score, with the method and the labels.
        reason: why there is no estimate; None if there is one.
    """

    value: float | None = None
    interval: tuple[float, float] | None = None
    interval_method: str | None = None
    judged: float | None
    answers: int
    labels: int
    clusters: int
    raters: int
    cannot_tell: int
    effective_labels: float | None = None
    tuning: float | None = None
    signature: str
    reason: str | None = None


@dataclass(frozen=True)
class CorrectedRun:
    """The corrected scores of a run by task or group and metric.

    ``notes`` state which labels were not used, which answers are in no estimate, and why labels
    that are no probability sample correct nothing. ``rated`` are the responses with the scores of
    judges and people by rubric. ``answers`` are those of each task by rubric, ``members`` the tasks
    by task or group, for the differences between runs.
    """

    scores: dict[str, dict[str, CorrectedScore]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    rated: dict[str, RatedResponses] = field(default_factory=dict, repr=False)
    answers: dict[str, AnswersUnderRubric] = field(default_factory=dict, repr=False)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    @cached_property
    def agreement(self) -> dict[str, AgreementReport]:
        """How far judges and people agree, by rubric."""
        return {rubric: rated.agreement() for rubric, rated in self.rated.items()}

    def rubric_of(self, metric: str) -> Rubric:
        """The labelled rubric with this metric, which must be one of the corrected."""
        for under_rubric in self.answers.values():
            if metric in under_rubric.rubric.metrics:
                return under_rubric.rubric
        raise KeyError(metric)

    def json(self) -> dict[str, object]:
        """The scores and notes as plain JSON."""
        scores = {}
        for name, by_metric in self.scores.items():
            scores[name] = {
                metric: score.model_dump(mode="json") for metric, score in by_metric.items()
            }
        agreement = {}
        for rubric, report in self.agreement.items():
            agreement[rubric] = report.model_dump(mode="json")
        return {"scores": scores, "agreement": agreement, "notes": list(self.notes)}


def corrected_run(run: RunRecord, human: Path) -> CorrectedRun:
    """The judged scores of a run, corrected by the labels in ``human``.

    Args:
        run: the scored run with its samples.
        human: a rating file, a folder of ratings, or a CSV file (`read_labels`).

    Raises:
        UsageError: the run was not judged under the labels' rubric, has several responses to a
            question, or the labels were drawn from other answers.
        DataError: the labels cannot be read.
    """
    collected = _CollectedCorrections(run, human)
    for facts in labelled_rubrics(run, human):
        collected.add(facts)
    return CorrectedRun(
        scores=collected.scores,
        notes=tuple(collected.notes),
        rated=collected.rated,
        answers=collected.answers,
        members=collected.members,
    )


@dataclass
class _CollectedCorrections:
    """What the labels of one rubric after the other give, as in `CorrectedRun`."""

    run: RunRecord
    human: Path
    scores: dict[str, dict[str, CorrectedScore]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    rated: dict[str, RatedResponses] = field(default_factory=dict)
    answers: dict[str, AnswersUnderRubric] = field(default_factory=dict)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, facts: RubricFacts) -> None:
        """Add the labels under a rubric and, if they are a probability sample, the scores that they
        correct.
        """
        run, rubric = self.run, facts.rubric
        tasks = [task for task in facts.tasks if task in run.tasks]
        labelled_run = LabelledRun.of(run.manifest.identity, run.samples, tasks)
        labels = read_labels(self.human, rubric, labelled_run)
        for note in _notes_on_labels(labels):
            self._note(rubric, note)
        if not labels.labels:
            self._note(rubric, "people scored no answer of this run; its scores stay as judged")
            return
        self.rated[rubric.name] = RatedResponses.of(run.samples, rubric, tasks, labels)
        if labels.why_unweighted:
            self._note(rubric, f"not corrected: {labels.why_unweighted}")
            return
        under_rubric = answers_under_rubric(run.manifest, run.samples, rubric, tasks, labels)
        self.answers[rubric.name] = under_rubric
        for reason, count in sorted(under_rubric.left_out.items()):
            self._note(rubric, f"{counted(count, 'answer')} left out: {reason}")
        self._correct(under_rubric, tasks)

    def _correct(self, under_rubric: AnswersUnderRubric, tasks: Sequence[str]) -> None:
        """Add the corrected scores of the rubric's metrics in these tasks and their groups."""
        rubric = under_rubric.rubric
        stated = f"{PREDICTION_POWERED},labels={labels_hash(self.human, rubric.name)}"
        for name, members in _names_with_members(self.run, tasks):
            self.members[name] = tuple(members)
            for metric in rubric.metrics:
                if metric in self.run.scores[name].metrics:
                    corrector = _Corrector(self.run, name, metric, under_rubric, stated)
                    self.scores.setdefault(name, {})[metric] = corrector.score(members)

    def _note(self, rubric: Rubric, note: str) -> None:
        """Add a note on the labels under a rubric."""
        self.notes.append(f"{rubric.name}: {note}")


def _notes_on_labels(labels: HumanLabels) -> Iterator[str]:
    """Which labels were not used, and why."""
    if labels.absent:
        samples = counted(len(labels.absent), "labelled sample")
        verb = "is" if len(labels.absent) == 1 else "are"
        yield f"{samples} {verb} not in the run: {first_names(labels.absent, 5)}"
    if labels.stale:
        yield f"{counted(labels.stale, 'rating')} of a response that has changed since"
    if labels.cannot_tell:
        yield f"{counted(labels.cannot_tell, 'rating')} cannot tell"
    for name in labels.torn:
        yield f"the last line of {name} is cut off and not used: its answer is asked again"


def _names_with_members(run: RunRecord, tasks: Sequence[str]) -> list[tuple[str, Sequence[str]]]:
    """The tasks, and the groups of which all tasks were judged under the rubric."""
    names: list[tuple[str, Sequence[str]]] = [(task, (task,)) for task in tasks]
    for group, members in run.manifest.groups.items():
        if group in run.groups and set(members) <= set(tasks):
            names.append((group, members))
    return names


@dataclass(frozen=True)
class _Corrector:
    """Corrects one metric of one task or group; ``stated`` is the correction in the signature."""

    run: RunRecord
    name: str
    metric: str
    under_rubric: AnswersUnderRubric
    stated: str

    def score(self, members: Sequence[str]) -> CorrectedScore:
        """The corrected score over the answers to the tasks ``members``."""
        rubric = self.under_rubric.rubric
        answers: list[LabelledAnswer] = []
        for task in members:
            answers += with_metric(self.under_rubric.answers[task], self.metric)
        arrays = as_arrays(answers, self.metric, rubric.best, cluster_numbers(answers))
        judged = self.run.scores[self.name].metrics[self.metric].value
        without_value = self._without_value(answers, arrays, judged)
        reason = why_not_corrected(arrays, judged)
        if reason is not None:
            return without_value.model_copy(update={"reason": reason})
        mean = corrected_mean(arrays)
        return without_value.model_copy(
            update={
                "value": min(rubric.best, max(0.0, mean.value)),
                "interval": corrected_interval(mean),
                "interval_method": PREDICTION_POWERED,
                "effective_labels": mean.worth,
                "tuning": mean.tuning,
            }
        )

    def _without_value(
        self, answers: Sequence[LabelledAnswer], arrays: LabelledAnswers, judged: float | None
    ) -> CorrectedScore:
        """The score with its counts and signature only."""
        tasks = {answer.task for answer in answers}
        raters = set()
        for label in self.under_rubric.labels.labels:
            if label.unit[0] in tasks:
                raters.add(label.rater)
        stated = f"{self.stated},n={arrays.labels}"
        return CorrectedScore(
            judged=judged,
            answers=len(answers),
            labels=arrays.labels,
            clusters=arrays.labelled_clusters,
            raters=len(raters),
            cannot_tell=self._cannot_tell(tasks),
            signature=changed_signature(
                self.run.signatures[self.name][self.metric], corrected=stated
            ),
        )

    def _cannot_tell(self, tasks: set[str]) -> int:
        """Ratings of these tasks without a score; those of CSV files do not state it."""
        strata = self.under_rubric.labels.strata
        return sum(stratum.cannot_tell for stratum in strata if stratum.task in tasks)
