"""The metrics of one rubric, computed once for all samples with equal verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.statuses import FAILED
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, JudgedScore, Sample
from medtasks.scoring.scored_samples import ideal_response
from medtasks.scoring.verdict_limits import (
    ADDS_NOTHING,
    MetricLimits,
    has_sums_over_aspects,
    response_limits,
    sum_of_limits,
)


def judged_responses(sample: Sample) -> tuple[str, ...]:
    """The texts to judge: the filtered response of each repeat."""
    return tuple(repeat.filtered for repeat in sample.repeats) or (sample.filtered,)


class _ScoreKey(NamedTuple):
    """All that the metrics of a sample under one rubric depend on: equal keys, equal scores.

    ``asked`` is whether the judge is asked about each response, ``aspects`` identifies the
    document's aspects if they matter, ``votes`` are the scores of each judge for each response.
    """

    asked: tuple[bool, ...]
    has_failed: bool
    aspects: str
    votes: tuple[Any, ...]


class RubricScorer:
    """Scores samples under one rubric.

    Scores are computed once for each key, because thousands of samples have equal verdicts or none.

    Args:
        rubric: its metrics, and the aspects that judges score.
        facts: the panel and its rule; None if the run was not judged under the rubric.
        to_judge: whether judges are asked about a document and a filtered response; None if they
            are asked about all.
    """

    def __init__(
        self,
        rubric: Rubric,
        facts: RubricFacts | None,
        to_judge: Callable[[Mapping[str, Any], str], bool] | None,
    ) -> None:
        self._rubric = rubric
        self._facts = facts
        self._to_judge = to_judge
        self._scores_by_key: dict[_ScoreKey, dict[str, JudgedScore]] = {}

    def scores(
        self, sample: Sample, responses: tuple[JudgedResponse, ...]
    ) -> dict[str, JudgedScore]:
        """The rubric's metrics of a sample, from the verdicts on its ``responses``, if any."""
        document = sample.whole_document()
        key = self._key(sample, document, responses)
        scores = self._scores_by_key.get(key)
        if scores is None:
            scores = self._computed_scores(key, document, responses)
            self._scores_by_key[key] = scores
        return scores

    def _key(
        self, sample: Sample, document: Mapping[str, Any], responses: Sequence[JudgedResponse]
    ) -> _ScoreKey:
        """The key of a sample's scores.

        Raises:
            DataError: the document's aspects matter and are malformed.
        """
        asked = self._asked(sample, document)
        has_failed = sample.status == FAILED
        combines_verdicts = bool(responses) and not has_failed
        aspects = ""
        if any(asked) and (combines_verdicts or has_sums_over_aspects(self._rubric)):
            aspects = _aspects_key(self._rubric, document)
        votes = tuple(_votes_key(response) for response in responses)
        return _ScoreKey(asked, has_failed, aspects, votes)

    def _asked(self, sample: Sample, document: Mapping[str, Any]) -> tuple[bool, ...]:
        """Whether the judge is asked about each response; if the sample failed, about the ideal
        response.
        """
        texts: Sequence[str] = judged_responses(sample)
        if self._to_judge is None:
            return (True,) * len(texts)
        if sample.status == FAILED:
            texts = [ideal_response(document)] * len(texts)
        return tuple(self._to_judge(document, text) for text in texts)

    def _computed_scores(
        self, key: _ScoreKey, document: Mapping[str, Any], responses: Sequence[JudgedResponse]
    ) -> dict[str, JudgedScore]:
        """The metrics of all samples with this key."""
        combined: Sequence[JudgedResponse | None] = responses
        if key.has_failed or not responses:
            combined = [None] * len(key.asked)
        limits: list[dict[str, MetricLimits]] = []
        for is_asked, response in zip(key.asked, combined, strict=True):
            if is_asked:
                limits.append(response_limits(self._rubric, document, self._facts, response))
            else:
                limits.append({})
        judge = None
        if self._facts is not None and any(response.judges for response in responses):
            judge = self._facts.judge_hash
        return scores_within(limits, self._rubric, judge)


def _aspects_key(rubric: Rubric, document: Mapping[str, Any]) -> str:
    """What distinguishes the aspects of two documents under the same rubric.

    Raises:
        DataError: the document's aspects are malformed.
    """
    if rubric.aspects_from is not None:
        return str(document.get(rubric.aspects_from))
    aspects_of(rubric, document)  # refuses a malformed document, even if its scores are known
    return ""


def _votes_key(response: JudgedResponse) -> tuple[Any, ...]:
    """The scores that each judge gave, as a key."""
    votes = []
    for judge, verdict in response.judges.items():
        votes.append((judge, verdict.scores and tuple(verdict.scores.items())))
    return tuple(votes)


def scores_within(
    limits: Sequence[Mapping[str, MetricLimits]], rubric: Rubric, judge: str | None
) -> dict[str, JudgedScore]:
    """The metrics of a sample, from the limits of each of its responses by metric."""
    scores = {}
    for metric in rubric.metrics:
        by_response = [response.get(metric, ADDS_NOTHING) for response in limits]
        wholes = tuple(response.whole for response in by_response)
        names = dict.fromkeys(name for response in by_response for name in response.parts)
        parts = {}
        for name in names:
            # a response about which no judge is asked adds nothing to any part
            part = [response.parts.get(name, ADDS_NOTHING.whole) for response in by_response]
            parts[name] = sum_of_limits(part)
        scores[metric] = JudgedScore(
            rubric=rubric.name,
            judge=judge,
            limits=sum_of_limits(wholes),
            repeats=wholes if len(wholes) > 1 else (),
            parts=parts,
        )
    return scores
