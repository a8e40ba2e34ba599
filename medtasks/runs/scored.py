"""From a document and its replies to a scored sample: the task's filter, then its metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from medtasks.answers.base import Reading, ResponseFilter
from medtasks.benchmarks.aggregations import computed_together
from medtasks.catalog.benchmark import FAILED
from medtasks.catalog.registry import wrong_return
from medtasks.catalog.spec import TaskSpec
from medtasks.core.errors import first_line
from medtasks.metrics.learned import LEARNED
from medtasks.runs.replies import Reply
from medtasks.runs.samples import JudgedResponse, Limits, Repeat, Sample

Values = Mapping[str, Mapping[str, Any]]
"""What a task's ``process_results`` returns for a response: one entry per metric."""


@dataclass(frozen=True)
class Answered:
    """One document and the replies to it, one per repeat.

    ``document`` includes sample id, cluster, media and target. ``prompt`` is the text that was sent, ``prompt_hash``
    the hash of its template. ``verdicts`` are the judges' verdicts on an earlier sample of the same replies.
    """

    document: Mapping[str, Any]
    replies: tuple[Reply, ...]
    prompt: str = ""
    prompt_hash: str = ""
    verdicts: Mapping[str, tuple[JudgedResponse, ...]] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether a reply is missing."""
        return any(reply.failed is not None for reply in self.replies)

    def checked(self) -> Answered:
        """The document with its replies as `Reply.checked` has them."""
        replies = tuple(reply.checked() for reply in self.replies)
        return self if replies == self.replies else replace(self, replies=replies)


def scored_samples(spec: TaskSpec, answered: Sequence[Answered]) -> list[Sample]:
    """Samples scored under the task's rules; text metrics are computed for all of them together.

    If a reply failed, the sample has the status ``failed`` and only the limits of its statistics: those of a blank
    response and of :func:`ideal_response`.
    """
    checked = [one.checked() for one in answered]
    filtered = _filtered(spec, [(one.document, _texts(one)) for one in checked])
    pairs = [
        (reading.filtered, str(one.document["target"]))
        for one, several in zip(checked, filtered, strict=True)
        for reading in several
    ]
    with computed_together(spec.metrics, pairs):
        return [_sample(spec, one, readings) for one, readings in zip(checked, filtered, strict=True)]


def scored_again(spec: TaskSpec, samples: Sequence[Sample]) -> list[Sample]:
    """``samples``, scored again from their responses under the current rules; verdicts are kept."""
    return scored_samples(spec, [_as_answered(sample) for sample in samples])


def _as_answered(sample: Sample) -> Answered:
    failed = sample.failed or (None,) * len(sample.responses)
    probabilities = sample.probabilities or (None,) * len(sample.responses)
    replies = tuple(
        Reply(text, reason, probabilities=found)
        for text, reason, found in zip(sample.responses, failed, probabilities, strict=True)
    )
    return Answered(sample.whole_document(), replies, sample.prompt, sample.prompt_hash, sample.verdicts)


def _texts(answered: Answered) -> list[str]:
    return [reply.text for reply in answered.replies]


def _sample(spec: TaskSpec, answered: Answered, readings: list[Reading]) -> Sample:
    filtered = [reading.filtered for reading in readings]
    process, document = _process(spec), answered.document
    probabilities = tuple(reply.probabilities for reply in answered.replies)
    limits: dict[str, Limits] = {}
    failed = answered.failed
    if failed:
        count = len(answered.replies)
        ends = _filtered(spec, [(document, [text] * count) for text in ("", ideal_response(document))])
        values, best = (process(document, [reading.filtered for reading in several]) for several in ends)
        low, high = _statistics(values), _statistics(best)
        limits = {metric: (low[metric], high[metric]) for metric in low if metric in high}
        filtered = [f"[{FAILED}]"]
    else:
        values = process(document, filtered)
    fields = dict(document)
    return Sample(
        sample_id=fields.pop("sample_id"),
        task=spec.name,
        cluster=fields.pop("cluster"),
        media=tuple(fields.pop("media")),
        prompt_hash=answered.prompt_hash,
        prompt=answered.prompt,
        target=fields.pop("target"),
        responses=tuple(_texts(answered)),
        failed=tuple(reply.failed for reply in answered.replies) if failed else (),
        probabilities=() if all(one is None for one in probabilities) else probabilities,
        filtered=filtered[0],
        reading="" if failed else readings[0].how,
        status=FAILED if failed else spec.filter.status(filtered[0]),
        scores={metric: None if failed else value.get("score") for metric, value in values.items()},
        statistics={} if failed else _statistics(values),
        limits=limits,
        repeats=() if failed else _repeats(spec, filtered, values),
        pending=tuple(metric for metric, value in values.items() if value.get("pending")),
        verdicts=dict(answered.verdicts),
        document=fields,
    )


def ideal_response(document: Mapping[str, Any]) -> str:
    """The best-scoring response: the document's ``ideal_response``, else the gold answer."""
    return str(document.get("ideal_response") or document["target"])


def _filtered(spec: TaskSpec, responses: Sequence[tuple[Mapping[str, Any], list[str]]]) -> list[list[Reading]]:
    """The readings of the responses to each document, stripped."""
    if not responses:
        return []
    documents, texts = zip(*responses, strict=True)
    step = spec.filter.kind()
    if isinstance(step, ResponseFilter):
        readings = step.readings(texts, documents)
    else:  # another package's
        readings = _guest_readings(spec, step, list(texts), list(documents))
    return [[Reading(text.strip(), how) for text, how in several] for several in readings]


def _guest_readings(
    spec: TaskSpec, step: Any, texts: list[list[str]], documents: list[Mapping[str, Any]]
) -> list[list[Reading]]:
    """The readings by another package's filter."""
    what, apply = f"filter {spec.filters[-1]}", type(step).apply
    made: Any = step.apply(texts, documents)
    if not isinstance(made, Sequence) or isinstance(made, str) or len(made) != len(documents):
        count = len(documents)
        expected = f"a list with an entry for each of {count} documents" if count > 1 else "a list with one entry"
        raise wrong_return(what, apply, made, expected)
    readings = []
    for several, given in zip(made, texts, strict=True):
        filtered = [several] if isinstance(several, str) else several
        if not isinstance(filtered, Sequence) or not all(isinstance(text, str) for text in filtered):
            raise wrong_return(what, apply, several, "a filtered response, or a list of them")
        if len(filtered) != len(given):
            raise wrong_return(what, apply, several, f"a filtered response for each of {len(given)}")
        readings.append([Reading(text) for text in filtered])
    return readings


def _process(spec: TaskSpec) -> Callable[[Mapping[str, Any], Sequence[str]], Values]:
    function = spec.function("process_results")

    def process(document: Mapping[str, Any], texts: Sequence[str]) -> Values:
        values: object = function(document, texts)
        if isinstance(values, Mapping) and all(isinstance(value, Mapping) for value in values.values()):
            return values
        raise wrong_return("`process_results`", function, values, "a mapping of metrics to what `sample_value` gives")

    return process


def _statistics(values: Values) -> dict[str, tuple[float, ...]]:
    return {metric: tuple(value["statistics"]) for metric, value in values.items() if "statistics" in value}


def _repeats(spec: TaskSpec, texts: Sequence[str], values: Values) -> tuple[Repeat, ...]:
    """Each response's part in the sample; empty if there is only one."""
    if len(texts) < 2:
        return ()
    return tuple(
        Repeat(
            filtered=filtered,
            status=spec.filter.status(filtered),
            statistics={name: tuple(value["repeats"][number]) for name, value in values.items() if "repeats" in value},
        )
        for number, filtered in enumerate(texts)
    )


def with_learned_metrics(spec: TaskSpec, samples: Sequence[Sample], problems: list[str]) -> list[Sample]:
    """``samples`` with the task's learned metrics.

    A metric whose weights are missing has no statistics. If a model fails, a message is added to ``problems`` and the
    other scores are kept.
    """
    values = {name: _values(spec.name, name, samples, problems) for name in spec.metadata.learned}
    if not values:
        return list(samples)
    renewed = []
    for number, sample in enumerate(samples):
        scores = {name: found.get(number) for name, found in values.items()}
        statistics = {name: (value, 1.0) for name, value in scores.items() if value is not None}
        update = {"scores": {**sample.scores, **scores}, "statistics": {**sample.statistics, **statistics}}
        renewed.append(sample.model_copy(update=update))
    return renewed


def has_models(spec: TaskSpec) -> bool:
    """Whether a model scores the task's samples; a score depends a little on the others in its batch."""
    return any(LEARNED[name].unavailable() is None for name in spec.metadata.learned)


def _values(task: str, name: str, samples: Sequence[Sample], problems: list[str]) -> dict[int, float]:
    """The scores of the samples that have a response, by position; empty if they cannot be computed."""
    metric = LEARNED[name]
    if metric.unavailable() is not None:
        return {}
    answered = [number for number, sample in enumerate(samples) if sample.status != FAILED]
    try:
        scores = metric.scores([(samples[number].filtered, samples[number].target) for number in answered])
    except Exception as error:  # any model on any device: memory, drivers, weights
        problems.append(f"{task}: {name} could not be computed ({first_line(error)}); `medtasks score` tries again.")
        return {}
    return dict(zip(answered, scores.tolist(), strict=True))
