"""Checks of a metric's values: finite, in range, of the right width, and consistent with their sums."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from medtasks.benchmarks.base import Value
from medtasks.catalog import resolve
from medtasks.metrics.aggregate import corpus_score
from medtasks.metrics.base import Metric
from medtasks.metrics.item_metrics import JudgedMean
from medtasks.results.scores import MetricScore, Scores
from medtasks.validation.findings import Severity
from medtasks.validation.trials import BehaviourReport, Trial, Trials

_TOLERANCE = 1e-9
_PARTS = 3


class ValueCheck:
    """Checks the values of trials of one task; problems go to ``report``."""

    def __init__(self, trials: Trials, report: BehaviourReport) -> None:
        self._trials = trials
        self._report = report
        self._unavailable: dict[str, str | None] = {}

    def sound(self, trial: Trial) -> bool:
        """Whether the statistics of every sample and item can be scored."""
        checks = [
            self.is_in_range(trial.metrics[name], score, f"{trial.name}, sample {sample.sample_id}: the score")
            for sample in trial.samples
            for name, score in sample.scores.items()
            if score is not None
        ]
        checks += [
            self._is_value_valid(f"{trial.name}, sample {item.item_id}", trial.metrics[name], value)
            for item in trial.items
            for name, value in item.values.items()
            if name in trial.metrics
        ]
        return all(checks)

    def _is_value_valid(self, where: str, metric: Metric, value: Value) -> bool:
        rows = [row for row in (value.statistics, value.low, value.high, *value.repeats) if row is not None]
        if not rows and self._reason(metric) is None:
            message = f"{where}: there are no statistics, expected {metric.width}; return them from `process_results`."
            self._report.about("MT508", metric.name, message)
            return False
        return all(self._is_row_valid(where, metric, row) for row in rows)

    def _reason(self, metric: Metric) -> str | None:
        if metric.name not in self._unavailable:
            self._unavailable[metric.name] = metric.unavailable()
        return self._unavailable[metric.name]

    def _is_row_valid(self, where: str, metric: Metric, row: Sequence[float]) -> bool:
        fault = fault_of(metric, row)
        if fault is not None:
            fix = "fix `statistics`" if len(row) == metric.width else "correct `width` or `statistics`"
            code = "MT504" if len(row) == metric.width else "MT508"
            self._report.about(code, metric.name, f"{where}: {fault}; {fix}.")
            return False
        if metric.width == 2 and row[1] == 0:  # the metric does not apply to this item
            return True
        with self._report.failures(f"{where}: `score` fails on {list(row)[:6]}", metric.name):
            score = float(_score(metric, row))
            # metrics other than means may have no value for a single sample
            return (metric.width != 2 and math.isnan(score)) or self.is_in_range(metric, score, f"{where}: the score")
        return False

    def is_in_range(self, metric: Metric, value: float, what: str) -> bool:
        """Whether the value is finite; a value that is only out of range is reported but accepted."""
        known = range_of(metric)
        if not math.isfinite(value):
            message = f"{what} is {value}, expected a finite number; fix the metric."
            self._report.about("MT504", metric.name, message)
            return False
        if not known.contains(value):
            expected = f"expected {known.low:g} to {known.high:g}"
            rest = "fix the metric" if known.stated else "add `bounds` (minimum and maximum), or fix it"
            severity: Severity | None = None if known.stated else "warning"
            self._report.about("MT504", metric.name, f"{what} is {value:g}, {expected}; {rest}.", severity)
        return True

    def corpus(self, trial: Trial, scores: Scores) -> None:
        """Check the scores of all samples together."""
        for name, score in scores.metrics.items():
            metric = trial.metrics.get(name)
            if metric is None or score.value is None:
                continue
            ends = (("score", score.value), *(("interval", end) for end in score.interval or ()))
            for what, value in ends:
                self.is_in_range(metric, value, f"{trial.name}: the {what} of all samples")

    def recomputed(self, trial: Trial, scores: Scores) -> None:
        """Compare the scores with those from differently grouped sums, and from the functions in ``metric_list``."""
        for name, metric in trial.metrics.items():
            score = scores.metrics[name]
            if score.value is None:
                continue
            values = [item.values[name].statistics for item in trial.items if name in item.values]
            rows = [row for row in values if row is not None and not (metric.width == 2 and row[1] == 0)]
            with self._report.failures(f"{trial.name}: `score` fails on sums of statistics", name):
                self._by_parts(trial.name, metric, score.value, rows)
            self._by_mean(trial, metric, score.value, rows)
        self._by_harness(trial, scores)

    def _by_parts(self, where: str, metric: Metric, value: float, rows: Sequence[Sequence[float]]) -> None:
        parts = [rows[start::_PARTS][::-1] for start in range(min(_PARTS, len(rows)))]
        sums = [[sum(column) for column in zip(*part, strict=True)] for part in parts]
        totals = [math.fsum(column) for column in zip(*sums, strict=True)]
        self._same(
            metric, value, float(_score(metric, totals)), f"{where}: the statistics summed in {len(parts)} parts"
        )
        together = np.asarray(_score(metric, [totals, totals]))
        if together.shape != (2,):
            message = f"`score` gives {together.shape} of sums of shape (2, {metric.width}), expected (2,)"
            self._report.about("MT505", metric.name, f"{message}; make it work on the last axis.")
            return
        for one in together.tolist():
            self._same(metric, value, one, f"{where}: several sums scored at once, as for intervals,")

    def _by_mean(self, trial: Trial, metric: Metric, value: float, rows: Sequence[Sequence[float]]) -> None:
        scores = [one for sample in trial.samples if (one := sample.scores[metric.name]) is not None]
        counts = {row[1] for row in rows} if metric.width == 2 else set()
        if len(counts) == 1 and len(scores) == len(trial.samples) == len(rows):
            mean = math.fsum(scores) / len(scores)
            self._same(metric, value, mean, f"{trial.name}: the mean of the samples' own scores")

    def _by_harness(self, trial: Trial, scores: Scores) -> None:
        """Compare with the numbers that the harness computes by itself."""
        listed = self._trials.spec.resolved.get("metric_list") or ()
        aggregations = {one["metric"]: one["aggregation"] for one in listed if "." in str(one.get("aggregation"))}
        if not aggregations or self._trials.spec.metadata.varied is not None:  # the harness counts each variant
            return
        values: list[Mapping[str, Any]] = []
        with self._report.failures("`process_results` fails when it is called again", fix="it must keep no state"):
            values = self._returned(trial)
        for name, aggregation in aggregations.items():
            score = scores.metrics.get(name, MetricScore(value=None, interval=None, samples=0, signature=""))
            if score.value is None or not values:
                continue
            with self._report.failures(f"the aggregation {aggregation} fails", name):
                aggregated = resolve(aggregation)([value[name] for value in values])
                other = float(aggregated) if isinstance(aggregated, (int, float)) else math.nan
                self._same(trial.metrics[name], score.value, other, f"{trial.name}: the aggregation {aggregation}")

    def _returned(self, trial: Trial) -> list[Mapping[str, Any]]:
        function = resolve(self._trials.spec.resolved["process_results"])
        responses = [[one.filtered for one in sample.repeats] or [sample.filtered] for sample in trial.samples]
        pairs = zip(self._trials.documents, responses, strict=True)
        return [function(dict(document), [text.strip() for text in texts]) for document, texts in pairs]

    def _same(self, metric: Metric, value: float, other: float, what: str) -> None:
        if not abs(value - other) <= _TOLERANCE * max(1.0, abs(value)):
            message = f"{what} gives {other:.12g}, expected {value:.12g}, the reported score"
            fix = "scores must follow from the summed statistics"
            self._report.about("MT505", metric.name, f"{message}; {fix}.")


def fault_of(metric: Metric, row: Sequence[float]) -> str | None:
    """Why statistics cannot be scored; None if they can."""
    if len(row) != metric.width:
        return f"there are {len(row)} statistics, expected {metric.width}, the metric's width"
    finite = all(map(math.isfinite, row))
    return None if finite else f"the statistics are {list(row)[:6]}, expected finite numbers"


def _score(metric: Metric, totals: Any) -> Any:
    with np.errstate(all="ignore"):
        return metric.score(np.array(totals, dtype=np.float64))


_SHARE = (0.0, 1.0)

_REACHED = {
    **dict.fromkeys(("accuracy", "exact_match", "rouge1", "rougeL", "content", "content_closed", "overall"), 1.0),
    **dict.fromkeys(("responsiveness", "stability"), 1.0),
    **dict.fromkeys(("chrf", "chrf++"), 100.0),
    **dict.fromkeys(("false_alarm_rate", "miss_rate", "invalid_rate"), 0.0),
}
"""Scores of a model that always gives the reference answer."""

_WHOLE = frozenset({"rouge1", "rougeL", "chrf", "chrf++", "exact_match"})
"""Metrics that score any text they can read above 0 against itself."""

_RANGES: Mapping[str, tuple[float, float]] = {
    **dict.fromkeys((*_REACHED, "rouge2", "meteor", "bleu", "content_open", "content_closed_fallback"), _SHARE),
    **dict.fromkeys(("accuracy_dimension_mean", "overall_table4"), _SHARE),
    **dict.fromkeys(("chrf", "chrf++"), (0.0, 100.0)),
    "cider": (0.0, 10.0),
    "signed_delay": (-math.inf, math.inf),
}

TIMED = frozenset({"responsiveness", "stability", "overall", "false_alarm_rate", "miss_rate"})
"""Metrics of answer times in streams: the times in the records limit what can be reached."""


class Range(NamedTuple):
    """Minimum and maximum score; ``stated`` is False if 0 to 1 is only assumed."""

    low: float
    high: float
    stated: bool

    def contains(self, value: float) -> bool:
        """Whether ``value`` is within the range, up to rounding."""
        slack = _TOLERANCE * max(1.0, abs(value))
        return self.low - slack <= value <= self.high + slack


def range_of(metric: Metric) -> Range:
    """The range of ``metric``: ours by name, another package's by its attribute ``bounds``."""
    if metric.name in _RANGES:
        return Range(*_RANGES[metric.name], True)
    if isinstance(metric, JudgedMean):
        return Range(0.0, metric.limits[1][0], True)
    bounds: Any = getattr(metric, "bounds", None)
    if isinstance(bounds, (tuple, list)) and len(bounds) == 2:
        return Range(float(bounds[0]), float(bounds[1]), True)
    return Range(*_SHARE, False)


def best_score(metric: Metric, targets: Sequence[str]) -> float | None:
    """The score of answers equal to their targets; None if pairs of texts do not determine it.

    Some metrics do not reach their maximum even then, such as METEOR, or BLEU of a few words.
    """
    if metric.name in _REACHED:
        return _REACHED[metric.name]
    try:
        rows = np.array([metric.statistics(target, target) for target in targets], dtype=np.float64)
        found = corpus_score(metric, rows)
    except Exception:  # scored elsewhere, or unavailable; process_results is checked separately
        return None
    return found if math.isfinite(found) else None


def unreadable(metric: Metric, documents: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Documents whose answer, compared with itself, scores 0.

    Metrics of whole texts must read every answer; others need several words, and are reported if they read none.
    """
    if not metric.higher_is_better:
        return []
    blind = []
    for document in documents:
        try:
            row = metric.statistics(str(document["target"]), str(document["target"]))
            score = float(metric.score(np.asarray(row, dtype=np.float64)))
        except Exception:  # scored elsewhere, or unavailable
            return []
        if score == 0 or math.isnan(score):
            blind.append(document)
    return blind if metric.name in _WHOLE or len(blind) == len(documents) else []


def reaches(metric: Metric, value: float, other: float) -> bool:
    """Whether ``value`` is at least as good as ``other``, up to rounding."""
    slack = _TOLERANCE * max(1.0, abs(other))
    return value >= other - slack if metric.higher_is_better else value <= other + slack
