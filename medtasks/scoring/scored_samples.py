"""From a document and its replies to a scored sample, by the task's filter and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.answers.base import Reading, is_scored_whole, scored_part
from medtasks.benchmarks.pair_entries import BatchResponses, PairEntries
from medtasks.catalog.guest_code import wrong_return
from medtasks.catalog.spec import TaskSpec
from medtasks.catalog.statuses import FAILED, MISSED
from medtasks.runs.replies import failure_in
from medtasks.runs.samples import Limits, Repeat, Sample, reply_fields
from medtasks.scoring.filtered_responses import filtered_responses

Values = Mapping[str, Mapping[str, Any]]
"""What a task's ``process_results`` returns for a response: one entry per metric."""


def scored_samples(spec: TaskSpec, samples: Sequence[Sample]) -> list[Sample]:
    """``samples`` scored from their responses under the task's rules; text metrics are computed for
    all of them together. If a reply failed, the sample has the status ``failed`` and only the
    limits of its statistics: those of a blank response and of :func:`ideal_response`. A missed
    round of a paced stream is scored as an empty response, and has the status ``missed``.
    """
    checked = [_with_failures(sample) for sample in samples]
    documents = [sample.whole_document() for sample in checked]
    responses = []
    for sample in checked:
        responses.append([scored_part(response) for response in sample.responses])
    readings = filtered_responses(spec, documents, responses)
    pairs = []
    for sample, readings_of_sample in zip(checked, readings, strict=True):
        for reading in readings_of_sample:
            pairs.append((reading.filtered, sample.target))
    scorer = _SampleScorer(spec, PairEntries(spec.metrics, pairs))
    scored = []
    for sample, document, readings_of_sample in zip(checked, documents, readings, strict=True):
        scored.append(scorer.scored(sample, document, readings_of_sample))
    return scored


def _with_failures(sample: Sample) -> Sample:
    """The sample, whose responses that report a failure are marked as failed."""
    if not any(failure_in(response) for response in sample.responses):
        return sample
    return sample.model_copy(update=reply_fields(sample.replies))


def ideal_response(document: Mapping[str, Any]) -> str:
    """The best-scoring response: the document's ``ideal_response``, else the gold answer."""
    return str(document.get("ideal_response") or document["target"])


@dataclass(frozen=True)
class _SampleScorer:
    """Scores samples of a task; ``entries`` are the text metrics of all their responses."""

    spec: TaskSpec
    entries: PairEntries

    def scored(
        self, sample: Sample, document: Mapping[str, Any], readings: Sequence[Reading]
    ) -> Sample:
        """The sample with the scores of its filtered responses."""
        if sample.failed:
            fields = self._failed_fields(document, repeats=len(sample.responses))
        else:
            fields = self._answered_fields(document, readings)
        if sample.missed:
            fields |= {"reading": "", "status": MISSED}
        is_whole = all(is_scored_whole(response) for response in sample.responses)
        fields |= {"scored_in_part": not is_whole, "judged": {}, "confidence": None}
        # validated, because the values come from functions of task packages
        return Sample.model_validate(dict(sample) | fields)

    def _answered_fields(
        self, document: Mapping[str, Any], readings: Sequence[Reading]
    ) -> dict[str, Any]:
        """The fields of an answered sample: the first response, and the scores of all."""
        values = self._values(document, readings)
        first = readings[0]
        return {
            "filtered": first.filtered,
            "reading": first.how,
            "status": self.spec.filter.status(first.filtered),
            "scores": {metric: value.get("score") for metric, value in values.items()},
            "statistics": _statistics(values),
            "limits": {},
            "repeats": self._repeats(readings, values),
            "pending": _pending(values),
        }

    def _failed_fields(self, document: Mapping[str, Any], *, repeats: int) -> dict[str, Any]:
        """The fields of a sample with a failed reply: no scores, and the limits of its
        statistics.
        """
        worst = self._values_of_text("", document, repeats)
        best = self._values_of_text(ideal_response(document), document, repeats)
        return {
            "filtered": f"[{FAILED}]",
            "reading": "",
            "status": FAILED,
            "scores": dict.fromkeys(worst),
            "statistics": {},
            "limits": _limits_between(worst, best),
            "repeats": (),
            "pending": _pending(worst),
        }

    def _values_of_text(self, text: str, document: Mapping[str, Any], repeats: int) -> Values:
        """The values if every response were this text."""
        (readings,) = filtered_responses(self.spec, [document], [[text] * repeats])
        return self._values(document, readings)

    def _values(self, document: Mapping[str, Any], readings: Sequence[Reading]) -> Values:
        """What the task's ``process_results`` returns.

        Raises:
            MedtasksError: it is not a mapping of metrics to mappings.
        """
        function = self.spec.function("process_results")
        texts = [reading.filtered for reading in readings]
        responses = BatchResponses(texts, self.entries, self.spec.metrics)
        values: object = function(document, responses)
        if isinstance(values, Mapping) and _are_mappings(values.values()):
            return values
        expected = "a mapping of metrics to what `sample_value` gives"
        raise wrong_return("`process_results`", function, values, expected)

    def _repeats(self, readings: Sequence[Reading], values: Values) -> tuple[Repeat, ...]:
        """The responses to a question that was asked several times."""
        if len(readings) == 1:
            return ()
        repeats = []
        for number, reading in enumerate(readings):
            statistics = {}
            for metric, value in values.items():
                if "repeats" in value:
                    statistics[metric] = tuple(value["repeats"][number])
            status = self.spec.filter.status(reading.filtered)
            repeats.append(Repeat(filtered=reading.filtered, status=status, statistics=statistics))
        return tuple(repeats)


def _are_mappings(values: Iterable[object]) -> bool:
    return all(isinstance(value, Mapping) for value in values)


def _limits_between(worst: Values, best: Values) -> dict[str, Limits]:
    """The statistics of a blank and of the ideal response, by metric that has both."""
    lowest, highest = _statistics(worst), _statistics(best)
    limits: dict[str, Limits] = {}
    for metric in lowest:
        if metric in highest:
            limits[metric] = (lowest[metric], highest[metric])
    return limits


def _statistics(values: Values) -> dict[str, tuple[float, ...]]:
    """The sufficient statistics by metric; a metric that awaits a judge has none."""
    statistics = {}
    for metric, value in values.items():
        if "statistics" in value:
            statistics[metric] = tuple(value["statistics"])
    return statistics


def _pending(values: Values) -> tuple[str, ...]:
    """The metrics that await a judge."""
    return tuple(metric for metric, value in values.items() if value.get("pending"))
