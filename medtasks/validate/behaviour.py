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
    """Findings about the scores of right, trivial and malformed answers to a task's questions.

    Answers to the first :data:`MOST` documents are scored. Metrics that are learned, need a judge,
    or cannot be computed here are not checked, and with fewer than :data:`FEW` items, trivial
    answers are not compared with right ones.
    """
    documents = documents[:MOST]
    report = ScoreReport(spec, len(documents))
    try:
        right_answers, blind_answers = policy_answers(documents)
    except (MedtasksError, LookupError, TypeError, AttributeError, ValueError) as error:
        report.on_metric("MT500", "", "no answers can be made of its documents", error)
        return report.findings()
    trials = Trials(spec, benchmark, documents, report)
    best = trials.score("oracle", right_answers)
    if best is None:
        return report.findings()
    unscorable = _check_malformed(documents, trials, report)
    below_top = _check_top(best, documents, trials.metrics, report)
    blind_scores: dict[str, Mapping[str, float]] = {}
    for name, answers in blind_answers.items():
        if name in unscorable:
            continue
        trial = trials.score(name, answers)
        if trial is not None:
            blind_scores[name] = trial.scores
    compared = _compared_metrics(best, below_top, trials.metrics)
    _check_blind(best.scores, blind_scores, compared, report)
    return report.findings()


def _check_malformed(documents: Documents, trials: Trials, report: ScoreReport) -> set[str]:
    """Report what malformed responses break; returns the kinds that cannot be scored."""
    unscorable: set[str] = set()
    for document in documents[:2]:
        for kind, response in MALFORMED.items():
            sample = trials.score_alone(document, response, "MT509", kind)
            if sample is None:
                unscorable.add(kind)
                continue
            for name, metric in trials.metrics.items():
                if name in sample.statistics:
                    row = sample.statistics[name]
                    report.is_sound(f"a response that is {kind}", metric, [row])
                score = sample.scores.get(name)
                if score is not None:
                    report.check_range(metric, score, f"of a response that is {kind} the score")
    return unscorable


def _check_top(
    best: Trial, documents: Documents, metrics: Mapping[str, Metric], report: ScoreReport
) -> set[str]:
    """Report the metrics whose best possible score the reference answers miss; returns their names.

    A metric whose best score is not known is not reported.
    """
    targets = [str(document["target"]) for document in documents]
    below_top = set()
    for name, score in best.scores.items():
        if name not in metrics or facts_of(name).is_signed:
            continue
        metric = metrics[name]
        top = facts_of(name).reference_score
        if top is None:
            top = _score_of_equals(metric, targets)
        is_known = math.isfinite(top)
        if not is_known or _reaches(metric, score, top):
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
    """The metrics that must tell right answers from others.

    Right answers reach the best score of these metrics, on at least :data:`FEW` items.
    """
    compared = []
    for name in best.scores:
        if name not in metrics or name in below_top or facts_of(name).is_signed:
            continue
        if _count_scored(best.items, name) >= FEW:
            compared.append(metrics[name])
    return compared


def _count_scored(items: Sequence[Item], metric: str) -> int:
    """The number of items that count in the score of a metric: a mean of none is no score."""
    count = 0
    for item in items:
        if metric not in item.values:
            continue
        row = item.values[metric].statistics
        if row is None:
            continue
        is_mean_of_none = len(row) == 2 and row[1] == 0
        if not is_mean_of_none:
            count += 1
    return count


def _check_blind(
    best: Mapping[str, float],
    blind: Mapping[str, Mapping[str, float]],
    compared: Sequence[Metric],
    report: ScoreReport,
) -> None:
    """Report answers that score as high as right ones without regard to the question.

    These are answers that do so on all metrics; if there are none, metrics on which all of these
    answers do. ``blind`` are the scores of such answers by name, ``best`` those of right answers.
    """
    if not blind:
        return
    reported = False
    for name, what in TRIVIAL.items():
        if name in blind and _score_as_high(compared, blind[name], best):
            scores = ", ".join(f"{metric.name} {best[metric.name]:.4g}" for metric in compared)
            message = f"answering {what} scores as high as the reference answers ({scores})"
            report.on_metric("MT502", "", message)
            reported = True
    if reported:
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
