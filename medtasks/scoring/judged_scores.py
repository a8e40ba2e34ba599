"""From the verdicts of judges to scores: no judge is called, and the same verdicts give the same
scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import TaskSpec
from medtasks.catalog.statuses import FAILED
from medtasks.core.files import short_hash
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, JudgedScore, Limits, Sample
from medtasks.runs.verdict import Rule, Verdict
from medtasks.scoring.panels import bounds, combine
from medtasks.scoring.scored_samples import ideal_response

_BY_ASPECT = frozenset({"aspects", "occurrences"})
"""Values of a rubric's metrics that are sums over the aspects of a sample."""


def judged_responses(sample: Sample) -> tuple[str, ...]:
    """The texts to judge: the filtered response of each repeat."""
    return tuple(repeat.filtered for repeat in sample.repeats) or (sample.filtered,)


def undecided_aspects(
    verdicts: Mapping[str, Verdict], rubric: Rubric, document: Mapping[str, Any], rule: Rule
) -> dict[str, str]:
    """Why aspects are undecided by the verdicts of these judges, by aspect."""
    scores = {judge: verdict.scores for judge, verdict in verdicts.items()}
    if any(scores.values()):
        _, undecided = combine(scores, aspects_of(rubric, document), rule)
        return undecided
    # the document itself may be invalid, so its aspects are not read
    reasons = [f"{judge}: {verdict.unjudged}" for judge, verdict in sorted(verdicts.items())]
    return {"(all)": "; ".join(reasons)}


def _of_panel(
    response: JudgedResponse, facts: RubricFacts, document: Mapping[str, Any]
) -> JudgedResponse:
    """The verdicts of the judges that the run's ``facts`` name, and what is undecided by them:
    anybody can write other verdicts into a file.
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


class _MetricLimits(NamedTuple):
    """The worst and best statistics of a metric, and those of its parts."""

    whole: Limits
    parts: dict[str, Limits]


_NOTHING = _MetricLimits(((0.0, 0.0), (0.0, 0.0)), {})


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
        self._spec = spec
        self._facts = facts
        self._rubrics = _rubrics_of(spec, facts)
        self._by_votes: dict[tuple[Any, ...], dict[str, JudgedScore]] = {}
        """The metrics of one rubric by all that decides them, because thousands of samples have
        equal verdicts or none.
        """

    def scored(self, sample: Sample) -> Sample:
        """The sample with its judged metrics."""
        if not (self._rubrics or sample.verdicts or sample.judged or sample.pending):
            return sample
        scores = dict(sample.scores)
        statistics = dict(sample.statistics)
        for metric in sample.judged:
            scores.pop(metric, None)
            statistics.pop(metric, None)
        verdicts = self._counted_verdicts(sample)
        judged: dict[str, JudgedScore] = {}
        for name in self._rubrics:
            judged |= self._scores(name, sample, verdicts.get(name, ()))
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

    def _counted_verdicts(self, sample: Sample) -> dict[str, tuple[JudgedResponse, ...]]:
        """The verdicts on the sample's current filtered responses, by rubric."""
        if not sample.verdicts:
            return {}
        hashes = [short_hash(text) for text in judged_responses(sample)]
        document = sample.whole_document()
        verdicts = {}
        for name in self._rubrics:
            responses = sample.verdicts.get(name, ())
            if name in self._facts and [response.text for response in responses] == hashes:
                facts = self._facts[name]
                verdicts[name] = tuple(
                    _of_panel(response, facts, document) for response in responses
                )
        return verdicts

    def _scores(
        self, name: str, sample: Sample, responses: tuple[JudgedResponse, ...]
    ) -> dict[str, JudgedScore]:
        """The metrics of one rubric, as they were computed if equal verdicts were scored before."""
        rubric, facts = self._rubrics[name], self._facts.get(name)
        document = sample.whole_document()
        has_failed = sample.status == FAILED
        asked = self._asked(rubric, sample, document)
        is_combined = bool(responses) and not has_failed
        by_aspect = is_combined or not _BY_ASPECT.isdisjoint(rubric.metrics.values())
        aspects = ""
        if by_aspect and any(asked):
            aspects = _aspects_key(rubric, document)
        votes = tuple(_votes(response) for response in responses)
        key = rubric.name, asked, has_failed, aspects, votes
        if key not in self._by_votes:
            limits = []
            for number, is_asked in enumerate(asked):
                response = responses[number] if is_combined else None
                limits.append(_limits(rubric, document, facts, response) if is_asked else {})
            has_judge = any(response.judges for response in responses)
            judge = facts.judge_hash if facts is not None and has_judge else None
            self._by_votes[key] = _scores_within(limits, rubric, judge)
        return self._by_votes[key]

    def _asked(
        self, rubric: Rubric, sample: Sample, document: Mapping[str, Any]
    ) -> tuple[bool, ...]:
        """Whether the judge is asked about each response; of a failed one, about the ideal
        response.
        """
        texts: Sequence[str] = judged_responses(sample)
        if sample.status == FAILED:
            texts = [ideal_response(document)] * len(texts)
        to_judge = self._spec.benchmark.scoring.to_judge.get(rubric.name)
        if to_judge is None:
            return (True,) * len(texts)
        return tuple(to_judge(document, text) for text in texts)


def _aspects_key(rubric: Rubric, document: Mapping[str, Any]) -> str:
    """What tells the aspects of documents under the same rubric apart; refuses an invalid
    document.
    """
    if rubric.aspects_from is not None:
        return str(document.get(rubric.aspects_from))
    aspects_of(rubric, document)
    return ""


def _votes(response: JudgedResponse) -> tuple[Any, ...]:
    """The scores that each judge gave, as a key."""
    votes = []
    for judge, verdict in response.judges.items():
        votes.append((judge, verdict.scores and tuple(verdict.scores.items())))
    return tuple(votes)


def _scores_within(
    limits: Sequence[Mapping[str, _MetricLimits]], rubric: Rubric, judge: str | None
) -> dict[str, JudgedScore]:
    """The metrics of a sample, from the limits of each of its responses by metric."""
    scores = {}
    for metric in rubric.metrics:
        of_responses = [of_response.get(metric, _NOTHING) for of_response in limits]
        wholes = tuple(whole for whole, _ in of_responses)
        parts = {}
        for name in of_responses[0].parts:
            parts[name] = _sum([of_response.parts[name] for of_response in of_responses])
        scores[metric] = JudgedScore(
            rubric=rubric.name,
            judge=judge,
            limits=_sum(wholes),
            repeats=wholes if len(wholes) > 1 else (),
            parts=parts,
        )
    return scores


def _limits(
    rubric: Rubric,
    document: Mapping[str, Any],
    facts: RubricFacts | None,
    response: JudgedResponse | None,
) -> dict[str, _MetricLimits]:
    """The worst and best statistics that the verdicts on one response allow, by metric."""
    low: Mapping[str, float] = defaultdict(float)
    high: Mapping[str, float] = defaultdict(lambda: rubric.best)
    if response is not None and facts is not None:
        panel = {}
        for judge in facts.judges:
            verdict = response.judges.get(judge)
            panel[judge] = None if verdict is None else verdict.scores
        decided, _ = combine(panel, aspects_of(rubric, document), facts.combine)
        low, high = bounds(rubric, document, decided)
    limits: dict[str, _MetricLimits] = {}
    for metric, key in rubric.metrics.items():
        if key not in _BY_ASPECT:
            limits[metric] = _MetricLimits(((low[key], 1.0), (high[key], 1.0)), {})
            continue
        names = [aspect.name for aspect in aspects_of(rubric, document)]
        times = Counter(names)
        if key == "occurrences" and rubric.aspects_from is not None:
            times = Counter(document[rubric.aspects_from])
        parts: dict[str, Limits] = {}
        for name in names:
            count = times[name]
            lowest = (count * low[name], float(count))
            highest = (count * high[name], float(count))
            parts[name] = (lowest, highest)
        limits[metric] = _MetricLimits(_sum([*parts.values()]), parts)
    return limits


def _sum(limits: Sequence[Limits]) -> Limits:
    if len(limits) == 1:
        return limits[0]
    lowest, highest = zip(*limits, strict=True)
    return _column_sums(lowest), _column_sums(highest)


def _column_sums(rows: Iterable[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(fsum(column) for column in zip(*rows, strict=True))
