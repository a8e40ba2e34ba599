"""The behaviour half of ``medtasks validate``: do a task's scores separate correct answers from others, in any order?

Neither a model nor the harness is needed: answers are derived from the documents (:mod:`medtasks.validation.trials`)
and scored by the task's own filter, ``process_results`` and metrics.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.base import Benchmark
from medtasks.benchmarks.documents import task_documents
from medtasks.data.preparation import Progress
from medtasks.errors import MedtasksError, NoRowsError, NotPreparedError
from medtasks.filters import filter_class
from medtasks.metrics.base import Metric
from medtasks.metrics.item_metrics import SIGNED
from medtasks.schema import shown
from medtasks.spec import TaskSpec, leaf_tasks, load_spec
from medtasks.validation.findings import Finding, Severity, found
from medtasks.validation.trials import (
    MESSY,
    BehaviourReport,
    Trial,
    Trials,
    error_place,
    policy_answers,
    sentence,
    shuffled,
)
from medtasks.validation.values import TIMED, ValueCheck, best_score, fault_of, reaches, unreadable

MOST = 200
"""The number of documents per task that are checked."""

FEW = 5
"""With fewer items, a trivial answer may match a correct one by chance, and is not reported."""

_MESSY_DOCUMENTS = 2


def validate_behaviour(names: Sequence[str], *, progress: Progress | None = None) -> list[Finding]:
    """Findings about the scores of the tasks and groups ``names``, on the first :data:`MOST` documents of each task.

    Tasks without prepared data are left out, because the static half reports them. Metrics that are learned, need a
    judge, or cannot be computed here are not checked; whether trivial and shuffled answers score lower is checked for
    metrics with at least :data:`FEW` items.

    Raises:
        UsageError: a name is unknown.
    """
    tasks = named_tasks(names)
    findings: list[Finding] = []
    for number, name in enumerate(tasks, start=1):
        findings += _of_task(name)
        if progress is not None:
            progress(number, len(tasks))
    return findings


def named_tasks(names: Sequence[str]) -> list[str]:
    """The tasks in ``names``, without duplicates; raises :class:`UsageError`."""
    return list(dict.fromkeys(leaf for name in names for leaf in leaf_tasks(name)))


def _of_task(name: str) -> list[Finding]:
    try:
        spec = load_spec(name)
        documents = task_documents(name)[:MOST]
        benchmark = spec.benchmark
    except (NotPreparedError, NoRowsError):  # reported by the static checks
        return []
    except (Exception, SystemExit) as error:  # loaders may be another package's
        message = f"its documents cannot be made ({sentence(error)}); fix the other findings first."
        return [found("MT500", name, message)]
    return behaviour_findings(spec, benchmark, documents)


def behaviour_findings(spec: TaskSpec, benchmark: Benchmark, documents: Sequence[Mapping[str, Any]]) -> list[Finding]:
    """Findings about the scores of answers to ``documents`` under the rules of ``spec``."""
    report = BehaviourReport(spec, len(documents))
    try:
        perfect, trivial = policy_answers(documents)
    except (MedtasksError, LookupError, TypeError, AttributeError, ValueError) as error:
        message = f"no answers can be made of its documents ({sentence(error)}); fix the other findings first."
        report.about("MT500", "", message)
        return report.findings()
    _Behaviour(Trials(spec, benchmark, documents, report), report).check(perfect, trivial)
    return report.findings()


class _Behaviour:
    """All checks of one task."""

    def __init__(self, trials: Trials, report: BehaviourReport) -> None:
        self._trials = trials
        self._report = report
        self._values = ValueCheck(trials, report)
        self._metrics: dict[str, Metric] = {}
        self._unbearable: set[str] = set()

    def check(self, perfect: Sequence[str], trivial: Mapping[str, Sequence[str]]) -> None:
        oracle = self._trials.trial("oracle", perfect)
        if oracle is None:
            return
        self._metrics = oracle.metrics
        best = self._scored(oracle)
        self._order(oracle, perfect)
        self._messy()
        if best is None:
            return
        self._readable(best)
        self._top(oracle, best)
        others: dict[str, dict[str, float]] = {}
        mixed = shuffled(perfect)
        answers = {**trivial, **({} if mixed is None else {"shuffled": mixed})}
        for name, responses in answers.items():
            trial = None if name in self._unbearable else self._trials.trial(name, responses)
            scores = None if trial is None else self._scored(trial)
            if scores is not None:
                others[name] = scores
        self._compare(oracle, best, others)

    def _scored(self, trial: Trial) -> dict[str, float] | None:
        if not self._values.sound(trial):
            return None
        scores = self._trials.scores(trial)
        if scores is None:
            return None
        self._values.corpus(trial, scores)
        if trial.name in ("oracle", "shuffled"):
            self._values.recomputed(trial, scores)
        return {name: one.value for name, one in scores.metrics.items() if one.value is not None}

    def _readable(self, best: Mapping[str, float]) -> None:
        """Report metrics that find nothing to compare in the answers."""
        for name in best:
            metric = self._metrics.get(name)
            blind = [] if metric is None else unreadable(metric, self._trials.documents)
            for document in blind:
                target = str(document["target"])
                latin = name.startswith("rouge") and _OTHER_SCRIPT.fullmatch(target)
                why = "it reads only the letters a to z and digits" if latin else "it finds nothing to compare"
                message = f"{name} scores a reference answer 0 against itself ({shown(target)}): {why}"
                fix = "use one that reads these answers, such as chrf, or register your own"
                self._report.add("MT511", document, message, fix, name, self._report.metric_place(name))

    def _top(self, oracle: Trial, best: Mapping[str, float]) -> None:
        targets = [str(document["target"]) for document in self._trials.documents]
        for name, value in best.items():
            metric = oracle.metrics.get(name)
            top = None if metric is None or name in SIGNED else best_score(metric, targets)
            if metric is None or top is None or reaches(metric, value, top) or self._report.has("MT511", name):
                continue
            message = f"the reference answers score {value:.6g}, expected {top:.6g}{_first_below(oracle, metric, top)}"
            # times in the records may make an answer late or early, regardless of the scoring
            severity: Severity | None = "warning" if name in TIMED else None
            self._report.about("MT501", name, f"{message}; check filter, targets and `ideal_response`.", severity)

    def _compare(self, oracle: Trial, best: Mapping[str, float], others: Mapping[str, Mapping[str, float]]) -> None:
        known = [name for name in best if name in oracle.metrics and name not in SIGNED]
        faulty = {name for name in known if self._report.has("MT501", name) or self._report.has("MT511", name)}
        telling = [name for name in known if name not in faulty and _items(oracle, name) >= FEW]
        for policy, (code, what, fix) in _TRIVIAL.items():
            if policy in others and self._as_good(telling, best, others[policy]):
                message = f"answering {what} scores as high as the reference answers ({_scores_text(telling, best)})"
                self._report.about(code, "", f"{message}; {fix}.")
        if self._report.has("MT502") or self._report.has("MT503"):
            return
        for name in sorted(set(telling) - TIMED):
            if others and all(self._as_good([name], best, one) for one in others.values()):
                message = f"{', '.join(others)} answers all score {best[name]:g} as the reference answers do"
                self._report.about("MT502", name, f"{message}; leave the metric out, or fix it.", "warning")

    def _as_good(self, names: Sequence[str], best: Mapping[str, float], other: Mapping[str, float]) -> bool:
        compared = [name for name in names if name in other]
        return bool(compared) and all(reaches(self._metrics[name], other[name], best[name]) for name in compared)

    def _order(self, oracle: Trial, perfect: Sequence[str]) -> None:
        """Create and score the same samples in reverse order."""
        report, again = self._report, self._trials.trial("oracle, in reverse order", perfect, backwards=True)
        if again is None:
            return
        for one, other in zip(oracle.samples, again.samples, strict=True):
            if one.model_dump_json() != other.model_dump_json():
                message = "its score changes when the documents come in the opposite order"
                report.add("MT506", {"sample_id": one.sample_id}, message, "filters and metrics must keep no state")
        for one, text in zip(oracle.samples, self._filtered_together(perfect), strict=False):
            if text != one.filtered:
                message = f"it is filtered to {shown(text)} in a batch and to {shown(one.filtered)} on its own"
                fix, place = "make the filter read each response on its own", self._trials.filter_place()
                report.add("MT506", {"sample_id": one.sample_id}, message, fix, place=place)
        backwards = Trial(oracle.name, oracle.samples[::-1], oracle.items, oracle.metrics)
        scores = [self._trials.scores(one, breakdowns=True) for one in (oracle, backwards)]
        dumped = [None if one is None else one.model_dump_json() for one in scores]
        if None not in dumped and dumped[0] != dumped[1]:
            message = "the scores differ when the samples come in the opposite order; let `join` and metrics sort them."
            report.about("MT506", "", message)

    def _filtered_together(self, answers: Sequence[str]) -> list[str]:
        with self._report.failures("the filter fails on all responses together"):
            step = filter_class(self._trials.spec.filters[-1])()
            responses = [[self._trials.response(answer)] for answer in answers]
            made = list(step.apply(responses, [dict(one) for one in self._trials.documents]))
            if len(made) == len(answers):
                return [one if isinstance(one, str) else next(iter(one), "") for one in made]
            message = f"the filter returns {len(made)} of {len(answers)} responses; return one for each document."
            self._report.about("MT507", "", message)
        return []

    def _messy(self) -> None:
        for document in self._trials.documents[:_MESSY_DOCUMENTS]:
            for kind, response in MESSY.items():
                try:
                    sample = self._trials.sample(document, response)
                except (Exception, SystemExit) as error:
                    message = self._trials.raised(document, response, error)
                    fix = "return a status instead"
                    self._report.add("MT509", document, message, fix, kind, error_place(error))
                    self._unbearable.add(kind)
                    continue
                for name, row in sample.statistics.items():
                    fault = fault_of(self._metrics[name], row) if name in self._metrics else None
                    if fault is not None:
                        message = f"with the response {shown(response)} {fault} ({name})"
                        self._report.add("MT509", document, message, "fix the metric", kind)
                for name, score in sample.scores.items():
                    if score is not None and name in self._metrics:
                        self._values.is_in_range(self._metrics[name], score, f"of a response that is {kind} the score")


_OTHER_SCRIPT = re.compile(r"[^a-zA-Z0-9]*")

_TRIVIAL = {
    "constant": ("MT502", "the same to every question", "check metric and answers"),
    "commonest": ("MT502", "every question with the commonest answer", "check metric and answers"),
    "abstain": ("MT502", "that the question cannot be answered", "check metric and answers"),
    "empty": ("MT502", "nothing", "check metric and answers"),
    "shuffled": ("MT503", "with the reference answers of other documents", "check `process_results`"),
}
"""Answers that must score lower than correct ones: code of the finding, what they are, and the fix."""


def _items(trial: Trial, name: str) -> int:
    """How many items have a value of the metric."""
    rows = [item.values[name].statistics for item in trial.items if name in item.values]
    return sum(row is not None and not (len(row) == 2 and row[1] == 0) for row in rows)


def _scores_text(names: Sequence[str], scores: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {scores[name]:.4g}" for name in names)


def _first_below(trial: Trial, metric: Metric, top: float) -> str:
    """The first sample with a lower score, if samples have scores."""
    for sample in trial.samples:
        score = sample.scores.get(metric.name)
        if score is not None and not reaches(metric, score, top):
            change = f"{shown(sample.responses[0])} was filtered to {shown(sample.filtered)}"
            return f"; in sample {shown(sample.sample_id)} {change}"
    return ""
