"""The complete sample line, from which everything can be scored again without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, NamedTuple, TypeAlias

from pydantic import Field

from medtasks.catalog.items import SampleView, Value
from medtasks.catalog.statuses import FAILED
from medtasks.core.schema import Compact
from medtasks.metrics.confidence import REASONS
from medtasks.runs.replies import Probabilities, Reply, Share
from medtasks.runs.verdict import Verdict

UNKNOWN_PROMPT = "unknown"
"""In place of a prompt's hash: the response was made elsewhere."""

_OWN_FIELDS = frozenset({"sample_id", "cluster", "media", "target"})
"""Fields of a document that are fields of its sample, too."""

Limits: TypeAlias = "tuple[tuple[float, ...], tuple[float, ...]]"
"""Worst and best sufficient statistics that are still possible; equal if nothing is open."""

Reason: TypeAlias = Annotated[str, Field(pattern=f"^({'|'.join(REASONS)})$")]
"""Why an answer has no confidence."""


class Outcome(NamedTuple):
    """The outcome of a sample: its status, why its response is missing, how the response was read,
    and whether it is too long to be scored whole.
    """

    status: str
    failure: str | None = None
    reading: str = ""
    scored_in_part: bool = False


class Repeat(Compact):
    """One of several responses to the same question: the filtered response, and the statistics of
    each metric.
    """

    filtered: str
    status: str
    statistics: dict[str, tuple[float, ...]]


class JudgedResponse(Compact):
    """A panel's verdicts on one response under one rubric, none if judges are not asked about it;
    ``text`` is the hash of the judged text, ``open`` gives the reason for each undecided aspect.
    """

    text: str
    judges: dict[str, Verdict] = Field(default_factory=dict)
    open: dict[str, str] = Field(default_factory=dict)


class JudgedScore(Compact):
    """One metric of one sample, computed from verdicts: its limits, with those of each repeat and
    of each part; ``judge`` is the hash of the panel that was asked.
    """

    rubric: str
    judge: str | None
    limits: Limits
    repeats: tuple[Limits, ...] = ()
    parts: dict[str, Limits] = Field(default_factory=dict)

    @cached_property
    def value(self) -> Value:
        """The metric's value for an item; only its limits while an aspect is undecided."""
        low, high = self.limits
        parts: dict[str, Value] = {}
        if low != high:
            # parts are undecided, too: they would not add up to the whole otherwise
            for name, (part_low, part_high) in self.parts.items():
                parts[name] = Value(None, part_low, part_high, judge=self.judge)
            return Value(None, low, high, judge=self.judge, parts=parts)
        for name, (statistics, _) in self.parts.items():
            parts[name] = Value(statistics, judge=self.judge)
        repeats = tuple(statistics for statistics, _ in self.repeats)
        return Value(low, repeats=repeats, judge=self.judge, parts=parts)


class Sample(Compact):
    """One answered question.

    ``scores`` has the sample's own value per metric (None if the metric has none per sample, or was
    not computed), ``statistics`` the sufficient statistics for corpus scores, ``pending`` the
    metrics that await a judge. If the question was repeated, ``repeats`` has each response's part;
    ``filtered`` and ``status`` are those of the first. ``reading`` is how an option was named, by
    ``letter`` or by ``text``, or ``named`` where no option was read but the response contains the
    text of just one. ``scored_in_part`` is whether a response is so long that only its beginning
    and its end were scored. ``verdicts`` has the judges' verdicts on each response, by rubric;
    ``judged`` the metrics computed from them. ``probabilities`` are those of each response, empty
    if the back-end reports none. ``confidence`` is only in stripped samples, whose response was
    removed: the confidence of the answer, or the reason why it has none.

    If a response is missing, the status is ``failed``: ``failed`` has the reason for each of
    ``responses`` (None for those that are there), ``limits`` the range in which each metric's
    statistics would be. ``missed`` is whether the sample is a round of a paced stream that was not
    sent, because the model was still busy: the status is ``missed``, and it is scored as an empty
    response.
    """

    sample_id: str
    task: str
    cluster: str
    media: tuple[str, ...]
    prompt_hash: str
    prompt: str
    target: str
    responses: tuple[str, ...]
    failed: tuple[str | None, ...] = ()
    missed: bool = Field(default=False, exclude_if=lambda value: not value)
    probabilities: tuple[Probabilities | None, ...] = Field(
        default=(), exclude_if=lambda value: not value
    )
    confidence: Share | Reason | None = Field(default=None, exclude_if=lambda value: value is None)
    filtered: str
    reading: str = Field(default="", exclude_if=lambda value: not value)
    scored_in_part: bool = Field(default=False, exclude_if=lambda value: not value)
    status: str
    scores: dict[str, float | None]
    statistics: dict[str, tuple[float, ...]]
    limits: dict[str, Limits] = Field(default_factory=dict)  # faster than {}, which pydantic copies
    pending: tuple[str, ...] = ()
    repeats: tuple[Repeat, ...] = ()
    verdicts: dict[str, tuple[JudgedResponse, ...]] = Field(default_factory=dict)
    judged: dict[str, JudgedScore] = Field(default_factory=dict)
    document: dict[str, Any]

    @classmethod
    def answered(
        cls,
        task: str,
        document: Mapping[str, Any],
        replies: Sequence[Reply],
        prompt: str = "",
        prompt_hash: str = "",
    ) -> Sample:
        """A sample without scores, from a document and the replies to it.

        `medtasks.scoring.scored_samples.scored_samples` scores it.

        Args:
            task: the task's name.
            document: the asked document, with sample id, cluster, media and target.
            replies: one reply for each repeat of the question.
            prompt: the task's prompt for the document. It is not stored if the hash is
                `UNKNOWN_PROMPT`, because the replies may be answers to another prompt.
            prompt_hash: the hash of the prompt's template, or `UNKNOWN_PROMPT`.
        """
        fields = {name: value for name, value in document.items() if name not in _OWN_FIELDS}
        return cls(
            sample_id=document["sample_id"],
            task=task,
            cluster=document["cluster"],
            media=document["media"],
            prompt_hash=prompt_hash,
            prompt="" if prompt_hash == UNKNOWN_PROMPT else prompt,
            target=document["target"],
            **reply_fields(replies),
            filtered="",
            status="",
            scores={},
            statistics={},
            document=fields,
        )

    @property
    def replies(self) -> list[Reply]:
        """The reply of each repeat, marked as failed if a back-end returns its text for a failed
        request.
        """
        none_each = (None,) * len(self.responses)
        failed = self.failed or none_each
        probabilities = self.probabilities or none_each
        replies = []
        for text, reason, own_probabilities in zip(
            self.responses, failed, probabilities, strict=True
        ):
            reply = Reply(text, reason, probabilities=own_probabilities)
            replies.append(reply.checked())
        return replies

    def view(self) -> SampleView:
        """The sample as scoring and breakdowns see it."""
        return SampleView(
            sample_id=self.sample_id,
            cluster=self.cluster,
            document={**self.document, "target": self.target},
            filtered=self.filtered,
            status=self.status,
            values={metric: self._value(metric) for metric in self.scores},
            further=tuple(repeat.status for repeat in self.repeats[1:]),
            task=self.task,
        )

    def _value(self, metric: str) -> Value:
        """The value of one metric; only its limits if a response is missing."""
        if self.status == FAILED:
            return self._missing_value(metric)
        if metric in self.judged:
            return self.judged[metric].value
        if metric in self.statistics:
            repeats = tuple(repeat.statistics[metric] for repeat in self.repeats)
            return Value(self.statistics[metric], repeats=repeats)
        return Value()

    def _missing_value(self, metric: str) -> Value:
        """The value of one metric of a sample without a response: the range in which the metric
        would be with one, marked as failed where no statistics are known.
        """
        value = self.judged[metric].value if metric in self.judged else Value()
        low, high = self.limits.get(metric, (value.low, value.high))
        parts = {}
        for name, part in value.parts.items():
            parts[name] = part._replace(failed=part.statistics is None)
        failed = value.statistics is None
        return value._replace(low=low, high=high, parts=parts, failed=failed)

    def whole_document(self) -> dict[str, Any]:
        """The document as it was passed to the harness."""
        own = {
            "sample_id": self.sample_id,
            "cluster": self.cluster,
            "media": list(self.media),
            "target": self.target,
        }
        return {**self.document, **own}

    @property
    def failure(self) -> str | None:
        """Why the first failed response is missing; None if none failed."""
        for reason in self.failed:
            if reason is not None:
                return reason
        return None

    @property
    def outcome(self) -> Outcome:
        """What became of the sample, as the manifest counts it."""
        return Outcome(self.status, self.failure, self.reading, self.scored_in_part)


def reply_fields(replies: Sequence[Reply]) -> dict[str, Any]:
    """The fields of a sample that come from the replies; what no reply has is empty."""
    failed = tuple(reply.failed for reply in replies)
    probabilities = tuple(reply.probabilities for reply in replies)
    return {
        "responses": tuple(reply.text for reply in replies),
        "failed": _empty_without_any(failed),
        "missed": any(reply.missed for reply in replies),
        "probabilities": _empty_without_any(probabilities),
    }


def _empty_without_any(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """The values; an empty tuple if all are None."""
    if all(value is None for value in values):
        return ()
    return values


def lacks_texts(samples: Sequence[Sample]) -> bool:
    """Whether these samples have neither prompts nor responses."""
    if not samples:
        return False
    return not any(sample.prompt or sample.responses for sample in samples)
