"""The answers of a run under one rubric, with what its judge and people gave them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from medtasks.catalog.rubric import Rubric
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import UsageError
from medtasks.judge.labels import HumanLabel, HumanLabels, LabelledStratum, Unit
from medtasks.judge.ratable import ratable_answers
from medtasks.judge.rating_sample import RatableAnswer
from medtasks.metrics.base import Array
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.verdict_limits import limits_of_scores
from medtasks.stats.bootstrap import Rows
from medtasks.stats.labelled_answers import LabelledAnswers

Statistics = tuple[float, ...]
"""A metric's sum and count for one answer."""


@dataclass(frozen=True)
class PeoplesStatistics:
    """What people gave an answer in one metric, averaged over raters, and its sampling weight."""

    statistics: Statistics
    weight: float


@dataclass(frozen=True)
class LabelledAnswer:
    """An answer with a response.

    Attributes:
        task, sample_id, cluster: those of its sample.
        stratum: name of the stratum that it could be drawn from.
        is_known: whether the benchmark's rules score it, so that nobody rates it.
        counts: what each metric counts of it, by metric.
        judged: the judge's statistics by metric, without those that are undecided.
        human: people's statistics by metric, without those that their labels leave open.
    """

    task: str
    sample_id: str
    cluster: str
    stratum: str
    is_known: bool
    counts: Mapping[str, float]
    judged: Mapping[str, Statistics]
    human: Mapping[str, PeoplesStatistics]

    @property
    def unit(self) -> Unit:
        return self.task, self.sample_id


@dataclass(frozen=True)
class AnswersUnderRubric:
    """All answers of a run that count under a rubric.

    Attributes:
        rubric: the rubric.
        answers: the answers by task.
        labels: what people said, and which labels were not used.
        left_out: number of answers that are in no estimate, by reason.
    """

    rubric: Rubric
    answers: Mapping[str, Sequence[LabelledAnswer]]
    labels: HumanLabels
    left_out: Mapping[str, int]


def answers_under_rubric(
    manifest: RunManifest,
    samples: Mapping[str, Sequence[Sample]],
    rubric: Rubric,
    tasks: Sequence[str],
    labels: HumanLabels,
) -> AnswersUnderRubric:
    """The answers of the ``tasks`` of a run.

    Args:
        manifest: that of the run.
        samples: the scored samples by task.
        rubric: the rubric that judges and people used.
        tasks: the tasks that were judged under it.
        labels: what people said of the run; all have a weight.

    Raises:
        UsageError: a question was asked several times, or the answers that can be rated are not
            those that the sample was drawn from.
    """
    by_unit: dict[Unit, list[HumanLabel]] = {}
    for label in labels.labels:
        by_unit.setdefault(label.unit, []).append(label)
    answers: dict[str, list[LabelledAnswer]] = {}
    left_out: Counter[str] = Counter()
    for task in tasks:
        ratable = ratable_answers(manifest, "", {task: samples[task]}, rubric).answers
        by_sample = {answer.sample_id: answer for answer in ratable}
        strata = _strata_of_task(task, ratable, labels.strata)
        answers[task] = []
        for sample in samples[task]:
            if sample.repeats:
                raise UsageError(
                    f"{task}: the run has several responses to each question, and people rated the "
                    "first, so its scores cannot be corrected; run it with one response each."
                )
            if sample.status == FAILED:
                left_out["no response"] += 1
                continue
            drawable = by_sample.get(sample.sample_id)
            answer = _answer(sample, rubric, drawable, strata, by_unit)
            if answer.is_known and not answer.judged:
                left_out["nobody can rate it, and it has no verdict"] += 1
            else:
                answers[task].append(answer)
    return AnswersUnderRubric(rubric, answers, labels, left_out)


@dataclass(frozen=True)
class _TaskStrata:
    """The names of a task's strata by the judge's class; one name for all if the classes are not
    those of the draw.
    """

    by_verdict: Mapping[str, str] = field(default_factory=dict)

    def name(self, verdict: str) -> str:
        return self.by_verdict.get(verdict, "")


def _strata_of_task(
    task: str, ratable: Sequence[RatableAnswer], drawn_from: Sequence[LabelledStratum]
) -> _TaskStrata:
    """The strata of a task, which are those that the labelled answers were drawn from if the judge
    still puts as many answers into each class.

    Raises:
        UsageError: there are more answers than were drawn from, or fewer.
    """
    if not drawn_from:
        return _TaskStrata()
    of_task = [stratum for stratum in drawn_from if stratum.task == task]
    population = sum(stratum.population for stratum in of_task)
    if population != len(ratable):
        raise UsageError(
            f"{task}: {len(ratable):,} answers can be rated, but the labelled ones were drawn from "
            f"{population:,}; rate this run, or score it by the same data and rules."
        )
    counts = Counter(answer.verdict for answer in ratable)
    if {stratum.verdict: stratum.population for stratum in of_task} != counts:
        return _TaskStrata()
    return _TaskStrata({stratum.verdict: _ordered_name(stratum.verdict) for stratum in of_task})


def _ordered_name(verdict: str) -> str:
    """A name that sorts alike classes next to each other."""
    order = ("low", "middle", "high", "undecided", "unjudged")
    return f"{order.index(verdict)}" if verdict in order else verdict


def _answer(
    sample: Sample,
    rubric: Rubric,
    drawable: RatableAnswer | None,
    strata: _TaskStrata,
    labels: Mapping[Unit, Sequence[HumanLabel]],
) -> LabelledAnswer:
    """The answer in a sample."""
    unit = (sample.task, sample.sample_id)
    judged: dict[str, Statistics] = {}
    counts: dict[str, float] = {}
    for metric in rubric.metrics:
        score = sample.judged.get(metric)
        if score is None:
            continue
        lowest, highest = score.limits
        counts[metric] = lowest[1]
        if lowest == highest:
            judged[metric] = lowest
    human: dict[str, PeoplesStatistics] = {}
    if drawable is not None and unit in labels:
        human = _peoples_statistics(rubric, sample, labels[unit])
    return LabelledAnswer(
        task=sample.task,
        sample_id=sample.sample_id,
        cluster=sample.cluster,
        stratum="" if drawable is None else strata.name(drawable.verdict),
        is_known=drawable is None,
        counts=counts,
        judged=judged,
        human=human,
    )


def _peoples_statistics(
    rubric: Rubric, sample: Sample, labels: Sequence[HumanLabel]
) -> dict[str, PeoplesStatistics]:
    """The metrics that the labels of an answer decide, averaged over its raters.

    A total is decided if a rater labelled all aspects that it depends on.
    """
    document = sample.whole_document()
    sums: dict[str, list[Array]] = {}
    weights: dict[str, float] = {}
    for label in labels:
        for metric, limits in limits_of_scores(rubric, document, label.scores).items():
            lowest, highest = limits.whole
            if lowest == highest:
                sums.setdefault(metric, []).append(np.array(lowest))
                weights[metric] = weights.get(metric, 0.0) + (label.weight or 0.0)
    statistics = {}
    for metric, of_raters in sums.items():
        mean = tuple(float(number) for number in np.mean(of_raters, axis=0))
        statistics[metric] = PeoplesStatistics(mean, weights[metric])
    return statistics


def as_arrays(
    answers: Sequence[LabelledAnswer], metric: str, width: float, clusters: Mapping[str, int]
) -> LabelledAnswers:
    """One metric of these answers for `medtasks.stats.prediction_powered`.

    Args:
        answers: the answers of one task, or of several.
        metric: a metric of the rubric.
        width: its highest possible score.
        clusters: the number of each cluster.
    """
    tasks = _numbered([answer.task for answer in answers])
    strata = _numbered([answer.stratum for answer in answers])
    judged, human, weights = [], [], []
    for answer in answers:
        verdict = answer.judged.get(metric)
        label = answer.human.get(metric)
        judged.append(np.nan if verdict is None else verdict[0])
        human.append(np.nan if label is None else label.statistics[0])
        weights.append(0.0 if label is None else label.weight)
    return LabelledAnswers(
        judged=np.array(judged),
        human=np.array(human),
        sizes=np.array([answer.counts[metric] for answer in answers]),
        weights=np.array(weights),
        strata=strata,
        tasks=tasks,
        clusters=np.array([clusters[answer.cluster] for answer in answers], dtype=np.int64),
        known=np.array([answer.is_known for answer in answers], dtype=np.bool_),
        width=width,
    )


def cluster_numbers(*groups: Sequence[LabelledAnswer]) -> dict[str, int]:
    """A number for each cluster of the answers, from 0 in the order of names."""
    names = sorted({answer.cluster for answers in groups for answer in answers})
    return {name: number for number, name in enumerate(names)}


def _numbered(names: Sequence[str]) -> Rows:
    """The names as numbers in their order."""
    return np.asarray(np.unique(names, return_inverse=True)[1], dtype=np.int64)


def with_metric(answers: Sequence[LabelledAnswer], metric: str) -> Iterator[LabelledAnswer]:
    """The answers that a metric counts: known ones only with a verdict."""
    for answer in answers:
        if metric in answer.counts and (metric in answer.judged or not answer.is_known):
            yield answer
