"""The metrics of judged samples, from the stored verdicts: no judge is called.

The same verdicts always give the same scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

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
from medtasks.scoring.rubric_scorer import RubricScorer, judged_responses


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
        self._scorers: dict[str, RubricScorer] = {}
        for name, rubric in _rubrics_of(spec, facts).items():
            to_judge = spec.benchmark.scoring.to_judge.get(rubric.name)
            self._scorers[name] = RubricScorer(rubric, facts.get(name), to_judge)

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
