"""Rules for scores: do they separate correct answers from others?

Neither a model nor the harness is needed: answers are derived from the documents (:mod:`medtasks.validate.trials`)
and scored by the task's own filter, ``process_results`` and metrics; exceptions become findings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from medtasks.answers.option_letter import join_stages
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import Benchmark, Item, Value
from medtasks.catalog.contents import raised_at
from medtasks.catalog.registry import place_of
from medtasks.catalog.spec import TaskSpec, read_installed
from medtasks.core.errors import MedtasksError
from medtasks.core.findings import Finding
from medtasks.core.schema import shown
from medtasks.core.text import shortened
from medtasks.metrics.base import Metric
from medtasks.metrics.item_metrics import SIGNED
from medtasks.metrics.registry import get_metric
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.runs.scored import Answered, scored_samples
from medtasks.runs.scoring import score_samples
from medtasks.runs.verdicts import with_judged_scores
from medtasks.validate.documents import Documents
from medtasks.validate.report import TaskReport
from medtasks.validate.trials import MESSY, TIMED, TOLERANCE, best_score, policy_answers, range_of, reaches

MOST = 200
"""The number of documents per task that are checked."""

FEW = 5
"""With fewer items, a trivial answer may match a correct one by chance, and is not reported."""

_MESSY_DOCUMENTS = 2
_RESAMPLES = 20
_CODE = "fix the code that scores it"
_OF_METRICS = frozenset({"MT504", "MT508"})
"""Codes of defects of a metric itself, rather than of the task that uses it."""

_TRIVIAL = {
    "constant": ("MT502", "the same to every question"),
    "commonest": ("MT502", "every question with the commonest answer"),
    "abstain": ("MT502", "that the question cannot be answered"),
    "empty": ("MT502", "nothing"),
    "shuffled": ("MT503", "with the reference answers of other documents"),
}
"""Answers that must score lower than correct ones: code of the finding, and what they are."""


def check_behaviour(spec: TaskSpec, benchmark: Benchmark, documents: Documents) -> list[Finding]:
    """Findings about the scores of answers to the first :data:`MOST` ``documents`` under the rules of ``spec``.

    Metrics that are learned, need a judge, or cannot be computed here are not checked; whether trivial and shuffled
    answers score lower is checked for metrics with at least :data:`FEW` items.
    """
    checks = _Behaviour(spec, benchmark, documents[:MOST])
    checks.check()
    return checks.report.findings()


@dataclass(frozen=True)
class _Trial:
    """The samples of one response to every document, in document order, the items they were joined into, and the scores
    of all; None if they cannot be computed, or the statistics are not sound."""

    samples: list[Sample]
    items: tuple[Item, ...]
    metrics: dict[str, Metric]
    scores: dict[str, float] | None

    def has_enough(self, name: str) -> bool:
        """Whether the metric applies to at least :data:`FEW` items."""
        rows = [item.values[name].statistics for item in self.items if name in item.values]
        return sum(row is not None and not (len(row) == 2 and row[1] == 0) for row in rows) >= FEW


class _Behaviour:
    """All checks of one task."""

    def __init__(self, spec: TaskSpec, benchmark: Benchmark, documents: Documents) -> None:
        self._spec, self._benchmark, self._documents = spec, benchmark, documents
        self._source = read_installed(spec.path).source
        self.report = TaskReport(self._source, len(documents))
        self.report.place = self._source.place("process_results")
        self._cases: dict[str, dict[str, tuple[float, ...]]] = {}

    def check(self) -> None:
        """Report everything that is wrong."""
        try:
            perfect, others = policy_answers(self._documents)
        except (MedtasksError, LookupError, TypeError, AttributeError, ValueError) as error:
            self._about("MT500", "", f"no answers can be made of its documents ({_sentence(error)})")
            return
        oracle = self._trial("oracle", perfect)
        if oracle is None:
            return
        unbearable = self._check_messy(oracle.metrics)
        if oracle.scores is None:
            return
        self._check_top(oracle, oracle.scores)
        trials = {name: self._trial(name, answers) for name, answers in others.items() if name not in unbearable}
        scores = {
            name: trial.scores for name, trial in trials.items() if trial is not None and trial.scores is not None
        }
        self._compare(oracle, oracle.scores, scores)

    # reports

    def _about(self, code: str, metric: str, message: str, error: BaseException | None = None, **changed: Any) -> None:
        """Report something about a metric, or about the whole task if ``metric`` is empty.

        Its place is where ``error`` was raised, the class of a faulty metric, or the task file.
        """
        place = raised_at(error) if error is not None else None
        if place is None and code in _OF_METRICS:
            place = place_of(get_metric(metric))
        if place is None and metric in self._spec.metrics:
            place = self._source.place("metric_list", self._spec.metrics.index(metric))
        self.report.say(code, message, metric, place, **changed)

    @contextmanager
    def _failures(self, what: str, metric: str = "", fix: str | None = None) -> Iterator[None]:
        """Report any exception in the block as a failure: a package's code may raise anything."""
        try:
            yield
        except (Exception, SystemExit) as error:
            self._about("MT507", metric, f"{what} ({_sentence(error)})", error, fix=fix)

    # trials

    def _trial(self, name: str, answers: Sequence[str]) -> _Trial | None:
        """What one answer to each document scores; None if the samples cannot be created."""
        answered = []
        for document, answer in zip(self._documents, answers, strict=True):
            response = join_stages([answer, answer]) if self._spec.stage1_template else answer
            answered.append(Answered(dict(document), (Reply(response),) * self._spec.repeats))
        try:
            samples = scored_samples(self._spec, answered)
        except (Exception, SystemExit) as error:
            alone = [self._alone(one, "MT507", f"{name}: ", fix=_CODE) for one in answered]
            if all(alone):
                what = f"{name}: scoring fails on all responses together ({_sentence(error)})"
                self._about("MT507", "", what, error, fix=_CODE)
            return None
        with self._failures(f"the samples of {name} cannot be joined", fix=_CODE):
            judged = with_judged_scores(self._spec, samples)
            items = joined_items(self._benchmark, [sample.view() for sample in judged]).items
            self._check_cases(name, items)
            metrics = {metric: get_metric(metric) for sample in judged for metric in sample.scores}
            lacking = [metric for metric in self._spec.metrics if metric not in metrics]
            for metric in lacking:
                message = f"`process_results` gives no {shown(metric)}, expected its statistics as in `metric_list`"
                self._about("MT507", metric, message, fix="add it, or remove it from the list")
            if not lacking:
                return _Trial(judged, items, metrics, self._scores(name, judged, items, metrics))
        return None

    def _alone(
        self, answered: Answered, code: str, what: str = "", field: str = "", fix: str | None = None
    ) -> Sample | None:
        """The sample of one response; None if scoring fails on it, which is reported."""
        try:
            (sample,) = scored_samples(self._spec, [answered])
            return sample
        except (Exception, SystemExit) as error:
            step, response = "`process_results`", answered.replies[0].text
            try:
                (_,) = self._spec.filter.kind().apply([[response] * self._spec.repeats], [dict(answered.document)])
            except (Exception, SystemExit):
                step = f"the filter {self._spec.filters[-1]}"
            message = f"{what}{step} fails on the response {shown(response)} ({_sentence(error)})"
            self.report.count(code, answered.document, message, field, raised_at(error), fix)
            return None

    def _scores(
        self, name: str, samples: list[Sample], items: Sequence[Item], metrics: Mapping[str, Metric]
    ) -> dict[str, float] | None:
        """The scores of a trial by metric; None if they cannot be computed, or its statistics are not sound."""
        sound = True
        for item in items:
            where = f"{name}, sample {item.item_id}"
            for metric in filter(metrics.__contains__, item.values):
                sound = self._is_sound(where, metrics[metric], item.values[metric]) and sound
        if not sound:
            return None
        metadata = self._spec.metadata
        with self._failures(f"the samples of {name} cannot be scored", fix=_CODE):
            by, pooled = metadata.breakdowns, metadata.pooled
            scored = score_samples(samples, self._benchmark, by, pooled, resamples=_RESAMPLES).metrics
            scores = {metric: score.value for metric, score in scored.items() if score.value is not None}
            for metric in filter(metrics.__contains__, scores):
                ends = [("interval", end) for end in scored[metric].interval or ()]
                for what, value in (("score", scores[metric]), *ends):
                    self._is_in_range(metrics[metric], value, f"{name}: the {what} of all samples")
            return scores
        return None

    # rules

    def _check_cases(self, name: str, items: Sequence[Item]) -> None:
        errors = self._benchmark.errors
        if errors is None:
            return
        for item in items:
            values = errors.values(self._benchmark, item)
            counts = {rate: (one.statistics or one.high or ())[1:] for rate, one in values.items()}
            before = self._cases.setdefault(item.item_id, counts)
            for rate in sorted(rate for rate in counts if counts[rate] != before[rate]):
                cases = f"{rate} has {counts[rate][0]:g} cases, expected {before[rate][0]:g}"
                self._about("MT512", rate, f"{name}, item {item.item_id}: {cases} as for other responses")
                return

    def _is_sound(self, where: str, metric: Metric, value: Value) -> bool:
        """Whether the statistics of an item can be scored; all that cannot are reported."""
        rows = [row for row in (value.statistics, value.low, value.high, *value.repeats) if row is not None]
        if not rows and metric.unavailable() is None:
            message = f"{where}: there are no statistics, expected {metric.width}"
            self._about("MT508", metric.name, message, fix="return them from `process_results`")
            return False
        for row in rows:
            fault = _fault_of(metric, row)
            if fault is not None:
                self._about("MT504" if len(row) == metric.width else "MT508", metric.name, f"{where}: {fault}")
                return False
            if metric.width == 2 and row[1] == 0:  # the metric does not apply to this item
                continue
            score = None
            with self._failures(f"{where}: `score` fails on {list(row)[:6]}", metric.name), np.errstate(all="ignore"):
                score = float(metric.score(np.array(row, dtype=np.float64)))
            # metrics other than means may have no value for a single sample
            if score is None or not (
                (metric.width != 2 and math.isnan(score)) or self._is_in_range(metric, score, f"{where}: the score")
            ):
                return False
        return True

    def _is_in_range(self, metric: Metric, value: float, what: str) -> bool:
        """Whether the value is finite; a value that is only out of range is reported but accepted."""
        if not math.isfinite(value):
            self._about("MT504", metric.name, f"{what} is {value}, expected a finite number")
            return False
        known, slack = range_of(metric), TOLERANCE * max(1.0, abs(value))
        if not known.low - slack <= value <= known.high + slack:
            message = f"{what} is {value:g}, expected {known.low:g} to {known.high:g}"
            fix = None if known.stated else "add `bounds` to the metric, or fix it"
            self._about("MT504", metric.name, message, fix=fix, severity=None if known.stated else "warning")
        return True

    def _check_top(self, oracle: _Trial, best: Mapping[str, float]) -> None:
        targets = [str(document["target"]) for document in self._documents]
        for name in filter(oracle.metrics.__contains__, best):
            metric, value = oracle.metrics[name], best[name]
            top = None if name in SIGNED else best_score(metric, targets)
            if top is not None and not reaches(metric, value, top):
                first = _first_below(oracle, metric, top)
                message = f"the reference answers score {value:.6g}, expected {top:.6g}{first}"
                # times in the records may make an answer late or early, regardless of the scoring
                self._about("MT501", name, message, severity="warning" if name in TIMED else None)

    def _compare(self, oracle: _Trial, best: Mapping[str, float], others: Mapping[str, Mapping[str, float]]) -> None:
        """Report metrics that score trivial answers as high as right ones."""

        def as_good(names: Sequence[str], other: Mapping[str, float]) -> bool:
            compared = [name for name in names if name in other]
            return bool(compared) and all(reaches(oracle.metrics[name], other[name], best[name]) for name in compared)

        known = [name for name in best if name in oracle.metrics and name not in SIGNED]
        telling = [name for name in known if not self.report.has("MT501", name) and oracle.has_enough(name)]
        for policy, (code, what) in _TRIVIAL.items():
            if policy in others and as_good(telling, others[policy]):
                scores = ", ".join(f"{name} {best[name]:.4g}" for name in telling)
                self._about(code, "", f"answering {what} scores as high as the reference answers ({scores})")
        if self.report.has("MT502") or self.report.has("MT503"):
            return
        for name in sorted(set(telling) - TIMED):
            if others and all(as_good([name], one) for one in others.values()):
                message = f"{', '.join(others)} answers all score {best[name]:g} as the reference answers do"
                self._about("MT502", name, message, fix="leave the metric out, or fix it", severity="warning")

    def _check_messy(self, metrics: Mapping[str, Metric]) -> set[str]:
        """Report what malformed responses break; returns the kinds that do."""
        unbearable: set[str] = set()
        for document in self._documents[:_MESSY_DOCUMENTS]:
            for kind, response in MESSY.items():
                replies = (Reply(response),) * self._spec.repeats
                sample = self._alone(Answered(dict(document), replies), "MT509", field=kind)
                if sample is None:
                    unbearable.add(kind)
                    continue
                for name in filter(metrics.__contains__, sample.statistics):
                    fault = _fault_of(metrics[name], sample.statistics[name])
                    if fault is not None:
                        message = f"with the response {shown(response)} {fault} ({name})"
                        self.report.count("MT509", document, message, kind, fix="fix the metric")
                for name, score in sample.scores.items():
                    if score is not None and name in metrics:
                        self._is_in_range(metrics[name], score, f"of a response that is {kind} the score")
        return unbearable


def _fault_of(metric: Metric, row: Sequence[float]) -> str | None:
    """Why statistics cannot be scored; None if they can."""
    if len(row) != metric.width:
        return f"there are {len(row)} statistics, expected {metric.width}, the metric's width"
    finite = all(map(math.isfinite, row))
    return None if finite else f"the statistics are {list(row)[:6]}, expected finite numbers"


def _first_below(trial: _Trial, metric: Metric, top: float) -> str:
    """The first sample with a lower score, if samples have scores."""
    for sample in trial.samples:
        score = sample.scores.get(metric.name)
        if score is not None and not reaches(metric, score, top):
            change = f"{shown(sample.responses[0])} was filtered to {shown(sample.filtered)}"
            return f"; in sample {shown(sample.sample_id)} {change}"
    return ""


def _sentence(error: BaseException) -> str:
    """The message of an exception, on one line."""
    text = shortened(str(error), 500).rstrip(".")
    return text if isinstance(error, MedtasksError) else f"{type(error).__name__}: {text}"
