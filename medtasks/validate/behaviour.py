"""Rules for scores: do they separate correct answers from others?

Neither a model nor the harness is needed: answers (right, trivial, shuffled, malformed) are derived
from the documents and scored as a run's responses are.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import numpy as np

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.items import Item
from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import Finding
from medtasks.core.schema import shown
from medtasks.metrics.base import Metric, corpus_score
from medtasks.metrics.registry import facts_of
from medtasks.validate.policy_answers import MALFORMED, TRIVIAL, policy_answers
from medtasks.validate.report import Documents
from medtasks.validate.score_report import TOLERANCE, ScoreReport
from medtasks.validate.trials import Trial, Trials

MOST = 200
"""The number of documents per task that are checked."""
FEW = 5
"""With fewer items, a trivial answer may match a correct one by chance, and is not reported."""


def check_behaviour(spec: TaskSpec, benchmark: Benchmark, documents: Documents) -> list[Finding]:
    """Findings about the scores of answers to the first :data:`MOST` ``documents`` under the rules
    of ``spec``.

    Metrics that are learned, need a judge, or cannot be computed here are not checked; whether
    trivial and shuffled answers score lower is checked for metrics with at least :data:`FEW` items.
    """
    documents = documents[:MOST]
    report = ScoreReport(spec, len(documents))
    try:
        right, blind = policy_answers(documents)
    except (MedtasksError, LookupError, TypeError, AttributeError, ValueError) as error:
        report.on_metric("MT500", "", "no answers can be made of its documents", error)
        return report.findings()
    trials = Trials(spec, benchmark, documents, report)
    best = trials.score("oracle", right)
    if best is None:
        return report.findings()
    failing = _check_malformed(documents, trials, report)
    below_top = _check_top(best, documents, trials.metrics, report)
    scores = {}
    for name, answers in blind.items():
        trial = None if name in failing else trials.score(name, answers)
        if trial is not None:
            scores[name] = trial.scores
    compared = _compared_metrics(best, below_top, trials.metrics)
    _check_blind(best.scores, scores, compared, report)
    return report.findings()


def _check_malformed(documents: Documents, trials: Trials, report: ScoreReport) -> set[str]:
    """Report what malformed responses break; returns the kinds that cannot be scored."""
    failing: set[str] = set()
    for document in documents[:2]:
        for kind, response in MALFORMED.items():
            sample = trials.score_alone(document, response, "MT509", kind)
            if sample is None:
                failing.add(kind)
                continue
            for name, row in sample.statistics.items():
                if name in trials.metrics:
                    report.is_sound(f"a response that is {kind}", trials.metrics[name], [row])
            for name, score in sample.scores.items():
                if score is not None and name in trials.metrics:
                    what = f"of a response that is {kind} the score"
                    report.check_range(trials.metrics[name], score, what)
    return failing


def _check_top(
    best: Trial, documents: Documents, metrics: Mapping[str, Metric], report: ScoreReport
) -> set[str]:
    """Report, and return, metrics that the reference answers do not bring to their best score,
    where it is known.
    """
    targets = [str(document["target"]) for document in documents]
    below_top = set()
    for name, score in best.scores.items():
        if name not in metrics or facts_of(name).is_signed:
            continue
        metric, top = metrics[name], facts_of(name).reference_score
        if top is None:
            top = _score_of_equals(metric, targets)
        if not math.isfinite(top) or _reaches(metric, score, top):
            continue
        message = f"the reference answers score {score:.6g}, expected {top:.6g}"
        message += _first_below(best, metric, top)
        # times in the records may make an answer late or early, regardless of the scoring
        severity = "warning" if facts_of(name).is_timed else None
        report.on_metric("MT501", name, message, severity=severity)
        below_top.add(name)
    return below_top


def _score_of_equals(metric: Metric, targets: Sequence[str]) -> float:
    """The score of pairs of equal texts; NaN where texts do not determine the score.

    Some metrics do not reach their maximum even then, such as METEOR, or BLEU of a few words.
    """
    with suppress(Exception):  # scored elsewhere, or unavailable
        rows = [metric.statistics(target, target) for target in targets]
        return corpus_score(metric, np.array(rows, dtype=np.float64))
    return math.nan


def _first_below(best: Trial, metric: Metric, top: float) -> str:
    """The first sample whose reference answer does not reach ``top``, as the end of a sentence."""
    for sample in best.samples:
        score = sample.scores.get(metric.name)
        if score is not None and not _reaches(metric, score, top):
            change = f"{shown(sample.responses[0])} was filtered to {shown(sample.filtered)}"
            return f"; in sample {shown(sample.sample_id)} {change}"
    return ""


def _compared_metrics(
    best: Trial, below_top: Collection[str], metrics: Mapping[str, Metric]
) -> list[Metric]:
    """The metrics that must tell right answers from others: their best score is reached, on at
    least :data:`FEW` items.
    """
    compared = []
    for name in best.scores:
        is_left_out = facts_of(name).is_signed or name in below_top
        if name in metrics and not is_left_out and _count_scored(best.items, name) >= FEW:
            compared.append(metrics[name])
    return compared


def _count_scored(items: Sequence[Item], metric: str) -> int:
    """The number of items that count in the score of a metric: a mean of none is no score."""
    count = 0
    for item in items:
        row = item.values[metric].statistics if metric in item.values else None
        is_mean_of_none = row is not None and len(row) == 2 and row[1] == 0
        count += row is not None and not is_mean_of_none
    return count


def _check_blind(
    best: Mapping[str, float],
    blind: Mapping[str, Mapping[str, float]],
    compared: Sequence[Metric],
    report: ScoreReport,
) -> None:
    """Report answers that ignore the question but score as high as the ``best`` on all metrics, or
    else metrics on which all of them do.
    """
    are_alike = False
    for name, what in TRIVIAL.items():
        if name in blind and _score_as_high(compared, blind[name], best):
            scores = ", ".join(f"{metric.name} {best[metric.name]:.4g}" for metric in compared)
            message = f"answering {what} scores as high as the reference answers ({scores})"
            report.on_metric("MT502", "", message)
            are_alike = True
    if are_alike or not blind:
        return
    for metric in sorted(compared, key=lambda metric: metric.name):
        if facts_of(metric.name).is_timed:
            continue
        if all(_score_as_high([metric], scores, best) for scores in blind.values()):
            score = f"{best[metric.name]:g}"
            message = f"{', '.join(blind)} answers all score {score} as the reference answers do"
            fix = "leave the metric out, or fix it"
            report.on_metric("MT502", metric.name, message, fix=fix, severity="warning")


def _score_as_high(
    metrics: Sequence[Metric], scores: Mapping[str, float], best: Mapping[str, float]
) -> bool:
    """Whether ``scores`` are at least as good as the ``best`` on every metric that both have."""
    shared = [metric for metric in metrics if metric.name in scores]
    return bool(shared) and all(
        _reaches(metric, scores[metric.name], best[metric.name]) for metric in shared
    )


def _reaches(metric: Metric, score: float, goal: float) -> bool:
    """Whether ``score`` is at least as good as ``goal``, up to rounding."""
    slack = TOLERANCE * max(1.0, abs(goal))
    if metric.higher_is_better:
        return score >= goal - slack
    return score <= goal + slack
