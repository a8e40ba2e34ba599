"""The metrics of judged samples, from the stored verdicts: no judge is called.

The same verdicts always give the same scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import TaskSpec
from medtasks.catalog.statuses import FAILED
from medtasks.core.files import short_hash
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, JudgedScore, Sample
from medtasks.runs.verdict import Rule, Verdict
from medtasks.scoring.panels import combine
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


def undecided_aspects(
    verdicts: Mapping[str, Verdict], rubric: Rubric, document: Mapping[str, Any], rule: Rule
) -> dict[str, str]:
    """The reason why each undecided aspect is undecided by the verdicts of these judges."""
    scores = {judge: verdict.scores for judge, verdict in verdicts.items()}
    if any(scores.values()):
        _, undecided = combine(scores, aspects_of(rubric, document), rule)
        return undecided
    # the document itself may be invalid, so its aspects are not read
    reasons = [f"{judge}: {verdict.unjudged}" for judge, verdict in sorted(verdicts.items())]
    return {"(all)": "; ".join(reasons)}


def _restricted_to_panel(
    response: JudgedResponse, facts: RubricFacts, document: Mapping[str, Any]
) -> JudgedResponse:
    """The response with only the verdicts of the judges in ``facts``, and what is undecided by
    them: anybody can write other verdicts into a file.
    """
    verdicts = {}
    for judge, verdict in response.judges.items():
        if judge in facts.judges:
            verdicts[judge] = verdict
    undecided = {}
    if verdicts:
        missing = dict.fromkeys(facts.judges, Verdict(unjudged="it has no verdict"))
        panel = {**missing, **verdicts}
        undecided = undecided_aspects(panel, facts.rubric, document, facts.combine)
    return JudgedResponse(text=response.text, judges=verdicts, open=undecided)


def with_judged_scores(
    spec: TaskSpec, samples: Iterable[Sample], facts: Mapping[str, RubricFacts] | None = None
) -> list[Sample]:
    """``samples`` with the metrics of the task's first rubric, and of all that judged it.

    A judged rubric is used as it was then, even if its file has changed. Verdicts on a text other
    than the sample's current filtered response (the filter has changed) are dropped, as are those
    of judges that ``facts`` do not name. A sample without complete verdicts is pending, with limits
    on its score.
    """
    scorer = _JudgedScorer(spec, facts or {})
    return [scorer.scored(sample) for sample in samples]


def _rubrics_of(spec: TaskSpec, facts: Mapping[str, RubricFacts]) -> dict[str, Rubric]:
    """The task's first rubric, then all others under which it was judged, by name."""
    judged = {}
    for name, rubric_facts in facts.items():
        if spec.name in rubric_facts.tasks:
            judged[name] = rubric_facts.rubric
    rubrics: dict[str, Rubric] = {}
    for name in spec.metadata.rubrics[:1]:
        if name not in judged:
            rubrics[name] = load_rubric(name)
    return rubrics | judged


class _JudgedScorer:
    """Scores the samples of a task from the verdicts of the judges that ``facts`` name."""

    def __init__(self, spec: TaskSpec, facts: Mapping[str, RubricFacts]) -> None:
        self._facts = facts
        self._scorers: dict[str, _RubricScorer] = {}
        for name, rubric in _rubrics_of(spec, facts).items():
            to_judge = spec.benchmark.scoring.to_judge.get(rubric.name)
            self._scorers[name] = _RubricScorer(rubric, facts.get(name), to_judge)

    def scored(self, sample: Sample) -> Sample:
        """The sample with its judged metrics."""
        if not (self._scorers or sample.verdicts or sample.judged or sample.pending):
            return sample
        verdicts = self._current_verdicts(sample)
        judged: dict[str, JudgedScore] = {}
        for name, scorer in self._scorers.items():
            judged |= scorer.scores(sample, verdicts.get(name, ()))
        return _with_judged(sample, judged, verdicts)

    def _current_verdicts(self, sample: Sample) -> dict[str, tuple[JudgedResponse, ...]]:
        """The verdicts on the sample's current filtered responses, by rubric."""
        if not sample.verdicts:
            return {}
        hashes = [short_hash(text) for text in judged_responses(sample)]
        document = sample.whole_document()
        verdicts = {}
        for name in self._scorers:
            responses = sample.verdicts.get(name, ())
            if name in self._facts and [response.text for response in responses] == hashes:
                facts = self._facts[name]
                verdicts[name] = tuple(
                    _restricted_to_panel(response, facts, document) for response in responses
                )
        return verdicts


def _with_judged(
    sample: Sample,
    judged: dict[str, JudgedScore],
    verdicts: dict[str, tuple[JudgedResponse, ...]],
) -> Sample:
    """The sample with ``judged`` instead of its earlier judged metrics.

    A metric is pending, and has no score, while its worst and best statistics differ.
    """
    scores = dict(sample.scores)
    statistics = dict(sample.statistics)
    for metric in sample.judged:
        scores.pop(metric, None)
        statistics.pop(metric, None)
    undecided = []
    for metric, score in judged.items():
        lowest, highest = score.limits
        if lowest != highest:
            undecided.append(metric)
            scores[metric] = None
        else:
            statistics[metric] = lowest
            scores[metric] = lowest[0] / lowest[1] if lowest[1] else None
    update = {
        "scores": scores,
        "statistics": statistics,
        "verdicts": verdicts,
        "judged": judged,
        "pending": () if sample.status == FAILED else tuple(undecided),
    }
    return sample.model_copy(update=update)


class _ScoreKey(NamedTuple):
    """All that the metrics of a sample under one rubric depend on: equal keys, equal scores.

    ``asked`` is whether the judge is asked about each response, ``aspects`` identifies the
    document's aspects if they matter, ``votes`` are the scores of each judge for each response.
    """

    asked: tuple[bool, ...]
    has_failed: bool
    aspects: str
    votes: tuple[Any, ...]


class _RubricScorer:
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
        return _scores_within(limits, self._rubric, judge)


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


def _scores_within(
    limits: Sequence[Mapping[str, MetricLimits]], rubric: Rubric, judge: str | None
) -> dict[str, JudgedScore]:
    """The metrics of a sample, from the limits of each of its responses by metric."""
    scores = {}
    for metric in rubric.metrics:
        by_response = [response.get(metric, ADDS_NOTHING) for response in limits]
        wholes = tuple(response.whole for response in by_response)
        parts = {}
        for name in by_response[0].parts:
            parts[name] = sum_of_limits([response.parts[name] for response in by_response])
        scores[metric] = JudgedScore(
            rubric=rubric.name,
            judge=judge,
            limits=sum_of_limits(wholes),
            repeats=wholes if len(wholes) > 1 else (),
            parts=parts,
        )
    return scores
