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
from medtasks.validate.trials import MESSY, TIMED, best_score, policy_answers, range_of, reaches

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
    """The samples of one response to every document, in document order, and the items they were joined into."""

    name: str
    samples: list[Sample]
    items: tuple[Item, ...]
    metrics: dict[str, Metric]

    def rows(self, name: str) -> list[Sequence[float]]:
        """The statistics of a metric, of the items that it applies to."""
        rows = [item.values[name].statistics for item in self.items if name in item.values]
        return [row for row in rows if row is not None and not (len(row) == 2 and row[1] == 0)]


class _Behaviour:
    """All checks of one task."""

    def __init__(self, spec: TaskSpec, benchmark: Benchmark, documents: Documents) -> None:
        self._spec, self._benchmark, self._documents = spec, benchmark, documents
        self._source = read_installed(spec.path).source
        self.report = TaskReport(self._source, len(documents))
        self.report.place = self._source.place("process_results")
        self._metrics: dict[str, Metric] = {}
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
        self._metrics = oracle.metrics
        best = self._scored(oracle)
        unbearable = self._check_messy()
        if best is None:
            return
        self._check_top(oracle, best)
        scores: dict[str, dict[str, float]] = {}
        for name, responses in others.items():
            trial = None if name in unbearable else self._trial(name, responses)
            scored = None if trial is None else self._scored(trial)
            if scored is not None:
                scores[name] = scored
        self._compare(oracle, best, scores)

    # reports

    def _about(self, code: str, metric: str, message: str, error: BaseException | None = None, **changed: Any) -> None:
        """Report something about a metric, or about the whole task if ``metric`` is empty.

        Its place is where ``error`` was raised, the class of a faulty metric, or the task file.
        """
        own = place_of(get_metric(metric)) if code in _OF_METRICS else None
        raised = raised_at(error) if error is not None else None
        listed = [
            number
            for number, entry in enumerate(self._source.entries("metric_list"))
            if isinstance(entry, Mapping) and entry.get("metric") == metric
        ]
        in_file = ("metric_list", listed[0]) if listed else ("process_results",)
        self.report.say(code, message, metric, raised or own or self._source.place(*in_file), **changed)

    @contextmanager
    def _failures(self, what: str, metric: str = "", fix: str | None = None) -> Iterator[None]:
        """Report any exception in the block as a failure: a package's code may raise anything."""
        try:
            yield
        except (Exception, SystemExit) as error:
            self._about("MT507", metric, f"{what} ({_sentence(error)})", error, fix=fix)

    # trials

    def _trial(self, name: str, answers: Sequence[str]) -> _Trial | None:
        """The samples of one answer to each document; None if they cannot be created."""
        answered = [self._answered(*pair) for pair in zip(self._documents, answers, strict=True)]
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
            return None if lacking else _Trial(name, judged, items, metrics)
        return None

    def _answered(self, document: Mapping[str, Any], answer: str) -> Answered:
        """The document with what a back-end returns for ``answer``, repeated as the task asks."""
        response = join_stages([answer, answer]) if self._spec.stage1_template else answer
        return Answered(dict(document), (Reply(response),) * self._spec.repeats)

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

    def _scored(self, trial: _Trial) -> dict[str, float] | None:
        """The scores of a trial by metric; None if they cannot be computed, or its statistics are not sound."""
        if not self._are_sound(trial):
            return None
        metadata = self._spec.metadata
        with self._failures(f"the samples of {trial.name} cannot be scored", fix=_CODE):
            by, pooled = metadata.breakdowns, metadata.pooled
            scored = score_samples(trial.samples, self._benchmark, by, pooled, resamples=_RESAMPLES).metrics
            scores = {name: score.value for name, score in scored.items() if score.value is not None}
            for name in filter(trial.metrics.__contains__, scores):
                ends = [("interval", end) for end in scored[name].interval or ()]
                for what, value in (("score", scores[name]), *ends):
                    self._is_in_range(trial.metrics[name], value, f"{trial.name}: the {what} of all samples")
            return scores
        return None

    # rules

    def _check_cases(self, name: str, items: Sequence[Item]) -> None:
        errors = self._benchmark.errors
        for item in items:
            values = errors.values(self._benchmark, item) if errors is not None else {}
            counts = {rate: (one.statistics or one.high or ())[1:] for rate, one in values.items()}
            before = self._cases.setdefault(item.item_id, counts)
            for rate in sorted(rate for rate in counts if counts[rate] != before[rate]):
                cases = f"{rate} has {counts[rate][0]:g} cases, expected {before[rate][0]:g}"
                self._about("MT512", rate, f"{name}, item {item.item_id}: {cases} as for other responses")
                return

    def _are_sound(self, trial: _Trial) -> bool:
        """Whether the statistics of every item can be scored; all that cannot are reported."""
        sound = True
        for item in trial.items:
            for name in filter(trial.metrics.__contains__, item.values):
                where = f"{trial.name}, sample {item.item_id}"
                sound = self._is_value_sound(where, trial.metrics[name], item.values[name]) and sound
        return sound

    def _is_value_sound(self, where: str, metric: Metric, value: Value) -> bool:
        rows = [row for row in (value.statistics, value.low, value.high, *value.repeats) if row is not None]
        if not rows and metric.unavailable() is None:
            message = f"{where}: there are no statistics, expected {metric.width}"
            self._about("MT508", metric.name, message, fix="return them from `process_results`")
            return False
        return all(self._is_row_sound(where, metric, row) for row in rows)

    def _is_row_sound(self, where: str, metric: Metric, row: Sequence[float]) -> bool:
        fault = _fault_of(metric, row)
        if fault is not None:
            self._about("MT504" if len(row) == metric.width else "MT508", metric.name, f"{where}: {fault}")
            return False
        if metric.width == 2 and row[1] == 0:  # the metric does not apply to this item
            return True
        with self._failures(f"{where}: `score` fails on {list(row)[:6]}", metric.name), np.errstate(all="ignore"):
            score = float(metric.score(np.array(row, dtype=np.float64)))
            # metrics other than means may have no value for a single sample
            return (metric.width != 2 and math.isnan(score)) or self._is_in_range(metric, score, f"{where}: the score")
        return False

    def _is_in_range(self, metric: Metric, value: float, what: str) -> bool:
        """Whether the value is finite; a value that is only out of range is reported but accepted."""
        if not math.isfinite(value):
            self._about("MT504", metric.name, f"{what} is {value}, expected a finite number")
            return False
        known = range_of(metric)
        if not known.contains(value):
            message = f"{what} is {value:g}, expected {known.low:g} to {known.high:g}"
            assumed = ("add `bounds` to the metric, or fix it", "warning")
            fix, severity = (None, None) if known.stated else assumed
            self._about("MT504", metric.name, message, fix=fix, severity=severity)
        return True

    def _check_top(self, oracle: _Trial, best: Mapping[str, float]) -> None:
        targets = [str(document["target"]) for document in self._documents]
        for name, value in best.items():
            metric = oracle.metrics.get(name)
            top = None if metric is None or name in SIGNED else best_score(metric, targets)
            if metric is None or top is None or reaches(metric, value, top):
                continue
            message = f"the reference answers score {value:.6g}, expected {top:.6g}{_first_below(oracle, metric, top)}"
            # times in the records may make an answer late or early, regardless of the scoring
            self._about("MT501", name, message, severity="warning" if name in TIMED else None)

    def _compare(self, oracle: _Trial, best: Mapping[str, float], others: Mapping[str, Mapping[str, float]]) -> None:
        """Report metrics that score trivial answers as high as right ones."""
        known = [name for name in best if name in oracle.metrics and name not in SIGNED]
        telling = [name for name in known if not self.report.has("MT501", name) and len(oracle.rows(name)) >= FEW]
        for policy, (code, what) in _TRIVIAL.items():
            if policy in others and self._as_good(telling, best, others[policy]):
                scores = ", ".join(f"{name} {best[name]:.4g}" for name in telling)
                self._about(code, "", f"answering {what} scores as high as the reference answers ({scores})")
        if self.report.has("MT502") or self.report.has("MT503"):
            return
        for name in sorted(set(telling) - TIMED):
            if others and all(self._as_good([name], best, one) for one in others.values()):
                message = f"{', '.join(others)} answers all score {best[name]:g} as the reference answers do"
                self._about("MT502", name, message, fix="leave the metric out, or fix it", severity="warning")

    def _as_good(self, names: Sequence[str], best: Mapping[str, float], other: Mapping[str, float]) -> bool:
        compared = [name for name in names if name in other]
        return bool(compared) and all(reaches(self._metrics[name], other[name], best[name]) for name in compared)

    def _check_messy(self) -> set[str]:
        """Report what malformed responses break; returns the kinds that do."""
        unbearable: set[str] = set()
        for document in self._documents[:_MESSY_DOCUMENTS]:
            for kind, response in MESSY.items():
                replies = (Reply(response),) * self._spec.repeats
                sample = self._alone(Answered(dict(document), replies), "MT509", field=kind)
                if sample is None:
                    unbearable.add(kind)
                    continue
                for name in filter(self._metrics.__contains__, sample.statistics):
                    fault = _fault_of(self._metrics[name], sample.statistics[name])
                    if fault is not None:
                        message = f"with the response {shown(response)} {fault} ({name})"
                        self.report.count("MT509", document, message, kind, fix="fix the metric")
                for name, score in sample.scores.items():
                    if score is not None and name in self._metrics:
                        self._is_in_range(self._metrics[name], score, f"of a response that is {kind} the score")
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
