"""Trials: one response to every document of a task, scored by the task's own filter,
``process_results`` and metrics. Exceptions become findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from medtasks.answers.stages import join_stages
from medtasks.benchmarks.variants import joined_items
from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.items import Item, Value
from medtasks.catalog.spec import TaskSpec
from medtasks.core.schema import shown
from medtasks.metrics.base import Metric
from medtasks.metrics.registry import get_metric
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.judged_scores import with_judged_scores
from medtasks.scoring.scored_samples import scored_samples
from medtasks.validate.report import Document, Documents
from medtasks.validate.score_report import ScoreReport, one_sentence


@dataclass(frozen=True)
class Trial:
    """The samples of one response to every document, the items they were joined into, and the
    scores of all, by metric.
    """

    samples: list[Sample]
    items: tuple[Item, ...]
    scores: dict[str, float]


class Trials:
    """Scores responses to the documents of a task, and reports what breaks the scoring.

    ``metrics`` are those that samples have had scores of so far, by name.
    """

    def __init__(
        self, spec: TaskSpec, benchmark: Benchmark, documents: Documents, report: ScoreReport
    ) -> None:
        self._spec, self._benchmark, self._documents = spec, benchmark, documents
        self._report = report
        self.metrics: dict[str, Metric] = {}
        self._cases: dict[str, dict[str, tuple[float, ...]]] = {}

    def score(self, name: str, answers: Sequence[str]) -> Trial | None:
        """The trial ``name`` with one answer to each document; None if it cannot be scored, or not
        from sound statistics.
        """
        samples = self._samples(name, answers)
        if samples is None:
            return None
        try:
            samples = with_judged_scores(self._spec, samples)
            items = joined_items(self._benchmark, [sample.view() for sample in samples]).items
            for sample in samples:
                self.metrics |= {metric: get_metric(metric) for metric in sample.scores}
            self._check_cases(name, items)
            if not self._has_sound_statistics(name, samples, items):
                return None
            scores = self._scores(samples)
            self._check_ranges(name, items, scores)
        except (Exception, SystemExit) as error:  # a package's code may raise anything
            message = f"the samples of {name} cannot be scored"
            self._report.on_metric("MT507", "", message, error)
            return None
        return Trial(samples, items, scores)

    def score_alone(
        self, document: Document, response: str, code: str, field: str = ""
    ) -> Sample | None:
        """The sample of one response; None if scoring fails on it, which is reported."""
        try:
            (sample,) = scored_samples(self._spec, [self._answered(document, response)])
            return sample
        except (Exception, SystemExit) as error:
            step = self._failing_step(document, response)
            message = f"{step} fails on the response {shown(response)} ({one_sentence(error)})"
            self._report.on_response(code, document, message, error, field)
            return None

    def _failing_step(self, document: Document, response: str) -> str:
        """The step that fails on a response: the filter, or else `process_results`."""
        responses = [response] * self._spec.repeats
        try:
            (_,) = self._spec.filter.kind().apply([responses], [dict(document)])
        except (Exception, SystemExit):
            return f"the filter {self._spec.filters[-1]}"
        return "`process_results`"

    def _answered(self, document: Document, response: str) -> Sample:
        replies = (Reply(response),) * self._spec.repeats
        return Sample.answered(self._spec.name, document, replies)

    def _samples(self, name: str, answers: Sequence[str]) -> list[Sample] | None:
        """The scored samples of one answer to each document; None if scoring fails, which is
        reported with the first response that it fails on.
        """
        if self._spec.stage1_template:
            answers = [join_stages([answer, answer]) for answer in answers]
        try:
            answered = map(self._answered, self._documents, answers)
            return scored_samples(self._spec, list(answered))
        except (Exception, SystemExit) as error:
            alone = [
                self.score_alone(document, answer, "MT507")
                for document, answer in zip(self._documents, answers, strict=True)
            ]
            if all(alone):
                message = f"{name}: scoring fails on all responses together"
                self._report.on_metric("MT507", "", message, error)
            return None

    def _check_cases(self, name: str, items: Sequence[Item]) -> None:
        """Report the first item whose cases of an error depend on the response to it."""
        errors = self._benchmark.scoring.errors
        if errors is None:
            return
        for item in items:
            cases: dict[str, tuple[float, ...]] = {
                rate: (value.statistics or value.high or ())[1:]
                for rate, value in errors.values(self._benchmark, item).items()
            }
            expected = self._cases.setdefault(item.item_id, cases)
            for rate in sorted(cases):
                if cases[rate] != expected[rate]:
                    counts = f"{rate} has {cases[rate][0]:g} cases, expected {expected[rate][0]:g}"
                    message = f"{name}, item {item.item_id}: {counts} as for other responses"
                    self._report.on_metric("MT512", rate, message)
                    return

    def _has_sound_statistics(
        self, name: str, samples: Sequence[Sample], items: Sequence[Item]
    ) -> bool:
        """Whether every sample has the task's metrics, and all statistics can be scored; what is
        not so is reported.
        """
        is_sound = True
        for metric_name in self._spec.metrics:
            if any(metric_name not in sample.scores for sample in samples):
                lacks = f"`process_results` gives no {shown(metric_name)}"
                message = f"{lacks}, expected its statistics as in `metric_list`"
                fix = "add it, or remove it from the list"
                self._report.on_metric("MT507", metric_name, message, fix=fix)
                is_sound = False
        for item, metric, value in self._item_values(items):
            rows = (value.statistics, value.low, value.high, *value.repeats)
            present = [row for row in rows if row is not None]
            is_sound &= self._report.is_sound(f"{name}, sample {item.item_id}", metric, present)
        return is_sound

    def _scores(self, samples: list[Sample]) -> dict[str, float]:
        """The scores of all samples that have a value, by metric."""
        metadata = self._spec.metadata
        scored = score_samples(samples, self._benchmark, metadata.breakdowns, metadata.pooled)
        scores = {}
        for metric_name, score in scored.metrics.items():
            if score.value is not None:
                scores[metric_name] = score.value
        return scores

    def _check_ranges(self, name: str, items: Sequence[Item], scores: dict[str, float]) -> None:
        """Report scores out of their ranges: of all samples, and of items, which a mean may
        hide.
        """
        for metric_name, score in scores.items():
            if metric_name in self.metrics:
                what = f"{name}: the score of all samples"
                self._report.check_range(self.metrics[metric_name], score, what)
        for item, metric, value in self._item_values(items):
            row = value.statistics
            if row is not None and metric.width == 2 and row[1] != 0:
                score = float(metric.score(np.array(row, dtype=np.float64)))
                what = f"{name}, sample {item.item_id}: the score"
                self._report.check_range(metric, score, what)

    def _item_values(self, items: Sequence[Item]) -> Iterator[tuple[Item, Metric, Value]]:
        """Each item's values of metrics that samples have scores of."""
        for item in items:
            for metric_name, value in item.values.items():
                if metric_name in self.metrics:
                    yield item, self.metrics[metric_name], value
