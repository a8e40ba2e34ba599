"""Rules for scores: do they separate correct answers from others?

Neither a model nor the harness is needed: answers (right, trivial, shuffled, malformed) are derived
from the documents and scored by the task's own filter, ``process_results`` and metrics; exceptions
become findings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from medtasks.adapters.policies import PolicyQuestion, abstain, constant, early, oracle
from medtasks.answers.option_letter import join_stages
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.contents import raised_at
from medtasks.catalog.items import Item
from medtasks.catalog.registry import place_of
from medtasks.catalog.spec import TaskSpec, read_installed
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.findings import Finding
from medtasks.core.schema import shown
from medtasks.metrics.base import Metric, corpus_score
from medtasks.metrics.registry import facts_of, get_metric, item_bounds_of
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.scored_samples import scored_samples
from medtasks.validate.documents import Documents, TaskReport

MOST = 200
"""The number of documents per task that are checked."""
FEW = 5
"""With fewer items, a trivial answer may match a correct one by chance, and is not reported."""

_TOLERANCE = 1e-9

_TRIVIAL = {
    "constant": ("MT502", "the same to every question"),
    "commonest": ("MT502", "every question with the commonest answer"),
    "abstain": ("MT502", "that the question cannot be answered"),
    "empty": ("MT502", "nothing"),
    "shuffled": ("MT503", "with the reference answers of other documents"),
}
"""Answers that must score lower than correct ones: code of the finding, and what they are."""

_MESSY: Mapping[str, str] = {
    "empty": "",
    "blank": " \n\t ",
    "long": "The first finding is seen again (B), or it may not be. " * 120,
    "non-ASCII": "Ответ: ответа нет 🩺 — 所见正常。 Ελ\u0301κος, قرحة \u202eA\u202c e\u0301",
    "markup": '<think>A or B?</think>\n# Answer\n**<b>C</b>** | `{"answer": ["D"]}` | $\\boxed{E}$ <answer>A</answer>',
    "unclosed": '<think>I wonder whether {{ target }} {% if %} ${ \\boxed{ ```json {"answer": ',
    "control": "\x00\x1b[31mA\x07\r\n\u2028B\ufeff",
}
"""Malformed responses as models sometimes give them, by kind."""


def check_behaviour(spec: TaskSpec, benchmark: Benchmark, documents: Documents) -> list[Finding]:
    """Findings about the scores of answers to the first :data:`MOST` ``documents`` under the rules
    of ``spec``.

    Metrics that are learned, need a judge, or cannot be computed here are not checked; whether
    trivial and shuffled answers score lower is checked for metrics with at least :data:`FEW` items.
    """
    return _Behaviour(spec, benchmark, documents[:MOST]).findings()


def policy_answers(documents: Documents) -> tuple[list[str], dict[str, list[str]]]:
    """The reference answers in the form that the task asks for, and answers that ignore the
    question, by name.

    ``constant`` and ``commonest`` are the same for every question, ``abstain`` is the abstention
    that the task defines (left out if a document lacks one), ``early`` answers streams before there
    is anything to see. ``shuffled`` are the reference answers of other documents, for as many as
    possible (left out if all are equal).
    """
    references = sorted(str(document["target"]) for document in documents)
    questions = [
        PolicyQuestion.of(document, str(document["sample_id"]), references)
        for document in documents
    ]
    perfect = [*map(oracle, questions)]
    counts = Counter(perfect)
    commonest = min(counts, key=lambda answer: (-counts[answer], answer))
    others = {
        "constant": [*map(constant, questions)],
        "commonest": [commonest] * len(questions),
        "empty": [""] * len(questions),
    }
    if all(question.abstention is not None for question in questions):
        others["abstain"] = [*map(abstain, questions)]
    if any(question.positive is not None for question in questions):
        others["early"] = [*map(early, questions)]
    if len(counts) > 1:
        ordered = sorted(range(len(perfect)), key=perfect.__getitem__)
        shift = counts[
            commonest
        ]  # no group of equal answers is longer, so none is moved within itself
        moved = dict(
            zip(ordered, (perfect[at] for at in (*ordered[shift:], *ordered[:shift])), strict=True)
        )
        others["shuffled"] = [moved[at] for at in range(len(perfect))]
    return perfect, others


class _Trial(NamedTuple):
    """The samples of one response to every document, the items they were joined into, and the
    scores of all.
    """

    samples: list[Sample]
    items: tuple[Item, ...]
    scores: dict[str, float]


class _Behaviour:
    def __init__(self, spec: TaskSpec, benchmark: Benchmark, documents: Documents) -> None:
        self._spec, self._benchmark, self._documents = spec, benchmark, documents
        self._source = read_installed(spec.path)
        self._report = TaskReport(self._source, len(documents))
        self._report.place = self._source.place("process_results")
        self._metrics: dict[str, Metric] = {}  # those with scores of single samples
        self._cases: dict[str, dict[str, tuple[float, ...]]] = {}

    def findings(self) -> list[Finding]:
        try:
            perfect, others = policy_answers(self._documents)
        except (MedtasksError, LookupError, TypeError, AttributeError, ValueError) as error:
            self._about("MT500", "", "no answers can be made of its documents", error)
            return self._report.findings()
        best = self._trial("oracle", perfect)
        if best is not None:
            unbearable = self._check_messy()
            short = self._check_top(best)
            trials = {
                name: self._trial(name, others[name]) for name in others if name not in unbearable
            }
            self._compare(
                best,
                short,
                {name: trial.scores for name, trial in trials.items() if trial is not None},
            )
        return self._report.findings()

    def _about(
        self,
        code: str,
        metric: str,
        message: str,
        error: BaseException | None = None,
        **changed: Any,
    ) -> None:
        """Report something about a metric, or about the whole task if ``metric`` is empty.

        Its place is where ``error`` was raised, the class of a faulty metric, or the task file.
        """
        place = None
        if error is not None:
            message, place = f"{message} ({_sentence(error)})", raised_at(error)
        elif code in ("MT504", "MT508"):  # the metric's own fault, not that of the task
            place = place_of(get_metric(metric))
        if place is None and metric in self._spec.metrics:
            place = self._source.place("metric_list", self._spec.metrics.index(metric))
        self._report.say(code, message, metric, place, **changed)

    def _trial(self, name: str, answers: Sequence[str]) -> _Trial | None:
        """What one answer to each document scores; None if that cannot be computed, or not from
        sound statistics.
        """
        spec = self._spec
        responses = [
            join_stages([answer, answer]) if spec.stage1_template else answer for answer in answers
        ]
        answered = [*zip(self._documents, responses, strict=True)]
        try:
            samples = scored_samples(spec, [self._answered(*one) for one in answered])
        except (Exception, SystemExit) as error:  # a package's code may raise anything
            alone = [self._alone(*one, "MT507") for one in answered]
            if all(alone):
                self._about("MT507", "", f"{name}: scoring fails on all responses together", error)
            return None
        try:
            samples = with_judged_scores(spec, samples)
            items = joined_items(self._benchmark, [sample.view() for sample in samples]).items
            self._metrics |= {
                metric: get_metric(metric) for sample in samples for metric in sample.scores
            }
            self._check_cases(name, items)
            scores = self._scores(name, samples, items)
        except (Exception, SystemExit) as error:
            self._about("MT507", "", f"the samples of {name} cannot be scored", error)
            return None
        return None if scores is None else _Trial(samples, items, scores)

    def _answered(self, document: Mapping[str, Any], response: str) -> Sample:
        return Sample.answered(self._spec.name, document, (Reply(response),) * self._spec.repeats)

    def _alone(
        self, document: Mapping[str, Any], response: str, code: str, field: str = ""
    ) -> Sample | None:
        """The sample of one response; None if scoring fails on it, which is reported."""
        try:
            (sample,) = scored_samples(self._spec, [self._answered(document, response)])
            return sample
        except (Exception, SystemExit) as error:
            step = "`process_results`"
            try:
                (_,) = self._spec.filter.kind().apply(
                    [[response] * self._spec.repeats], [dict(document)]
                )
            except (Exception, SystemExit):
                step = f"the filter {self._spec.filters[-1]}"
            message = f"{step} fails on the response {shown(response)} ({_sentence(error)})"
            self._report.count(code, document, message, field, raised_at(error))
            return None

    def _scores(
        self, name: str, samples: list[Sample], items: Sequence[Item]
    ) -> dict[str, float] | None:
        lacking = [
            name
            for name in self._spec.metrics
            if any(name not in sample.scores for sample in samples)
        ]
        for metric in lacking:
            message = f"`process_results` gives no {shown(metric)}, expected its statistics as in `metric_list`"
            self._about("MT507", metric, message, fix="add it, or remove it from the list")
        sound = not lacking
        for item in items:
            for metric in filter(self._metrics.__contains__, item.values):
                value = item.values[metric]
                rows = [
                    row
                    for row in (value.statistics, value.low, value.high, *value.repeats)
                    if row is not None
                ]
                sound &= self._is_sound(
                    f"{name}, sample {item.item_id}", self._metrics[metric], rows
                )
        if not sound:
            return None
        by, pooled = self._spec.metadata.breakdowns, self._spec.metadata.pooled
        scored = score_samples(samples, self._benchmark, by, pooled).metrics
        scores = {
            metric: score.value for metric, score in scored.items() if score.value is not None
        }
        for metric in filter(self._metrics.__contains__, scores):
            self._check_range(
                self._metrics[metric], scores[metric], f"{name}: the score of all samples"
            )
        for item in items:  # a mean may hide them
            for metric in filter(self._metrics.__contains__, item.values):
                row, known = item.values[metric].statistics, self._metrics[metric]
                if row is not None and known.width == 2 and row[1] != 0:
                    score = float(known.score(np.array(row, dtype=np.float64)))
                    self._check_range(known, score, f"{name}, sample {item.item_id}: the score")
        return scores

    def _check_cases(self, name: str, items: Sequence[Item]) -> None:
        errors = self._benchmark.scoring.errors
        for item in items if errors is not None else ():
            counts: dict[str, tuple[float, ...]] = {
                rate: (one.statistics or one.high or ())[1:]
                for rate, one in errors.values(self._benchmark, item).items()
            }
            before = self._cases.setdefault(item.item_id, counts)
            for rate in sorted(rate for rate in counts if counts[rate] != before[rate]):
                cases = f"{rate} has {counts[rate][0]:g} cases, expected {before[rate][0]:g}"
                self._about(
                    "MT512", rate, f"{name}, item {item.item_id}: {cases} as for other responses"
                )
                return

    def _is_sound(self, where: str, metric: Metric, rows: Sequence[Sequence[float]]) -> bool:
        """Whether statistics of an item can be scored; those that cannot are reported."""
        code, fault = "MT508", ""
        if not rows and metric.unavailable() is None:
            fault = f"there are no statistics, expected {metric.width}"
        for row in rows:
            if len(row) != metric.width:
                fault = (
                    f"there are {len(row)} statistics, expected {metric.width}, the metric's width"
                )
            elif not all(map(math.isfinite, row)):
                code, fault = (
                    "MT504",
                    f"the statistics are {list(row)[:6]}, expected finite numbers",
                )
        if fault:
            self._about(code, metric.name, f"{where}: {fault}")
        return not fault

    def _check_range(self, metric: Metric, value: float, what: str) -> None:
        """Report a score that is not finite, or out of the metric's bounds.

        They are assumed to be 0 and 1 for another package's metric that states none.
        """
        bounds = item_bounds_of(metric.name)
        low, high = bounds or (0.0, 1.0)
        slack = _TOLERANCE * max(1.0, abs(value))
        if not (math.isfinite(value) and low - slack <= value <= high + slack):
            changed: dict[str, Any] = {}
            if bounds is None:
                changed = {"fix": "add `bounds` to the metric, or fix it", "severity": "warning"}
            self._about(
                "MT504",
                metric.name,
                f"{what} is {value:g}, expected {low:g} to {high:g}",
                **changed,
            )

    def _check_top(self, oracle: _Trial) -> set[str]:
        """Report, and return, metrics that the reference answers do not bring to their best score,
        where it is known.

        Some metrics do not reach their maximum even then, such as METEOR, or BLEU of a few words:
        their best is the score of pairs of equal texts, if these determine it.
        """
        targets, short = [str(document["target"]) for document in self._documents], set()
        for name, best in oracle.scores.items():
            if name not in self._metrics or facts_of(name).is_signed:
                continue
            metric, top = self._metrics[name], facts_of(name).reference_score
            if top is None:
                top = math.nan
                with suppress(
                    Exception
                ):  # scored elsewhere, or unavailable; process_results is checked separately
                    rows = [metric.statistics(target, target) for target in targets]
                    top = corpus_score(metric, np.array(rows, dtype=np.float64))
            if not math.isfinite(top) or _reaches(metric, best, top):
                continue
            message = f"the reference answers score {best:.6g}, expected {top:.6g}"
            for sample in oracle.samples:
                score = sample.scores.get(name)
                if score is not None and not _reaches(metric, score, top):
                    change = (
                        f"{shown(sample.responses[0])} was filtered to {shown(sample.filtered)}"
                    )
                    message += f"; in sample {shown(sample.sample_id)} {change}"
                    break
            # times in the records may make an answer late or early, regardless of the scoring
            self._about(
                "MT501", name, message, severity="warning" if facts_of(name).is_timed else None
            )
            short.add(name)
        return short

    def _compare(
        self, oracle: _Trial, short: set[str], others: Mapping[str, Mapping[str, float]]
    ) -> None:
        """Report metrics that score trivial answers as high as right ones."""
        best, telling = oracle.scores, []

        def as_good(names: Sequence[str], other: Mapping[str, float]) -> bool:
            compared = [name for name in names if name in other]
            return bool(compared) and all(
                _reaches(self._metrics[name], other[name], best[name]) for name in compared
            )

        for name in best:
            rows = [item.values[name].statistics for item in oracle.items if name in item.values]
            applying = sum(row is not None and not (len(row) == 2 and row[1] == 0) for row in rows)
            is_left_out = facts_of(name).is_signed or name in short
            if name in self._metrics and not is_left_out and applying >= FEW:
                telling.append(name)
        alike = False
        for policy, (code, what) in _TRIVIAL.items():
            if policy in others and as_good(telling, others[policy]):
                scores = ", ".join(f"{name} {best[name]:.4g}" for name in telling)
                self._about(
                    code, "", f"answering {what} scores as high as the reference answers ({scores})"
                )
                alike = True
        checked = sorted(name for name in telling if not facts_of(name).is_timed)
        for name in checked if others and not alike else ():
            if all(as_good([name], one) for one in others.values()):
                message = f"{', '.join(others)} answers all score {best[name]:g} as the reference answers do"
                self._about(
                    "MT502",
                    name,
                    message,
                    fix="leave the metric out, or fix it",
                    severity="warning",
                )

    def _check_messy(self) -> set[str]:
        """Report what malformed responses break; returns the kinds that do."""
        unbearable: set[str] = set()
        for document in self._documents[:2]:
            for kind, response in _MESSY.items():
                sample = self._alone(document, response, "MT509", kind)
                if sample is None:
                    unbearable.add(kind)
                    continue
                for name in filter(self._metrics.__contains__, sample.statistics):
                    self._is_sound(
                        f"a response that is {kind}", self._metrics[name], [sample.statistics[name]]
                    )
                for name, score in sample.scores.items():
                    if score is not None and name in self._metrics:
                        self._check_range(
                            self._metrics[name], score, f"of a response that is {kind} the score"
                        )
        return unbearable


def _reaches(metric: Metric, value: float, other: float) -> bool:
    """Whether ``value`` is at least as good as ``other``, up to rounding."""
    slack = _TOLERANCE * max(1.0, abs(other))
    return value >= other - slack if metric.higher_is_better else value <= other + slack


def _sentence(error: BaseException) -> str:
    return first_line(error)[:500].rstrip(".")
