"""From the verdicts of judges to scores: no judge is called, and the same verdicts give the same
scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple, TypeAlias

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import TaskSpec
from medtasks.catalog.statuses import FAILED
from medtasks.core.files import canonical_json, short_hash
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.samples import JudgedResponse, JudgedScore, Limits, Sample
from medtasks.runs.verdict import STUB, Rule, Verdict
from medtasks.scoring.panels import bounds, combine
from medtasks.scoring.scored_samples import ideal_response

IMPORTED = "imported"
"""Used in place of the hashes of rubric and template for imported verdicts: their judge's prompt is
not known.
"""

_BY_ASPECT = frozenset({"aspects", "occurrences"})
"""Values of a rubric's metrics that are sums over the aspects of a sample."""


def judged_responses(sample: Sample) -> tuple[str, ...]:
    """The texts to judge: the filtered response of each repeat."""
    return tuple(repeat.filtered for repeat in sample.repeats) or (sample.filtered,)


def undecided_aspects(
    given: Mapping[str, Verdict], rubric: Rubric, document: Mapping[str, Any], rule: Rule
) -> dict[str, str]:
    """Why aspects are undecided by the verdicts of these judges, by aspect."""
    scores = {judge: verdict.scores for judge, verdict in given.items()}
    if any(scores.values()):
        _, undecided = combine(scores, aspects_of(rubric, document), rule)
        return undecided
    # the document itself may be invalid, so its aspects are not read
    return {"(all)": "; ".join(f"{judge}: {one.unjudged}" for judge, one in sorted(given.items()))}


def _of_panel(
    responses: Sequence[JudgedResponse], facts: RubricFacts, document: Mapping[str, Any]
) -> tuple[JudgedResponse, ...]:
    """The verdicts of the judges that the run's ``facts`` name, and what is undecided by them:
    anybody can write other verdicts into a file.
    """
    panel = []
    for response in responses:
        given = {
            judge: verdict for judge, verdict in response.judges.items() if judge in facts.judges
        }
        whole = {**dict.fromkeys(facts.judges, Verdict(unjudged="it has no verdict")), **given}
        undecided = undecided_aspects(whole, facts.rubric, document, facts.combine) if given else {}
        panel.append(JudgedResponse(text=response.text, judges=given, open=undecided))
    return tuple(panel)


_ByVotes: TypeAlias = dict[tuple[Any, ...], dict[str, JudgedScore]]
"""The metrics of one rubric by all that decides them, because thousands of samples have equal
verdicts or none.
"""


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
    facts = facts or {}
    rubrics = _rubrics_of(spec, facts)
    computed: _ByVotes = {}
    scored = []
    for sample in samples:
        if rubrics or sample.verdicts or sample.judged or sample.pending:
            scored.append(_with_judged_scores(spec, sample, rubrics, facts, computed))
        else:
            scored.append(sample)
    return scored


def _rubrics_of(spec: TaskSpec, facts: Mapping[str, RubricFacts]) -> dict[str, Rubric]:
    """The task's first rubric, then all others under which it was judged, by name."""
    judged = {name: one.rubric for name, one in facts.items() if spec.name in one.tasks}
    rubrics: dict[str, Rubric] = {}
    for name in spec.metadata.rubrics[:1]:
        if name not in judged:
            rubrics[name] = load_rubric(name)
    return rubrics | judged


def _with_judged_scores(
    spec: TaskSpec,
    sample: Sample,
    rubrics: Mapping[str, Rubric],
    facts: Mapping[str, RubricFacts],
    computed: _ByVotes,
) -> Sample:
    scores = dict(sample.scores)
    statistics = dict(sample.statistics)
    for metric in sample.judged:
        scores.pop(metric, None)
        statistics.pop(metric, None)
    hashes = []
    if sample.verdicts:
        hashes = [short_hash(text) for text in judged_responses(sample)]
    verdicts: dict[str, tuple[JudgedResponse, ...]] = {}
    judged: dict[str, JudgedScore] = {}
    for name, rubric in rubrics.items():
        responses = sample.verdicts.get(name, ())
        if name in facts and [response.text for response in responses] == hashes:
            verdicts[name] = _of_panel(responses, facts[name], sample.whole_document())
        judged |= _scores(spec, sample, rubric, facts.get(name), verdicts.get(name, ()), computed)
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


def _scores(
    spec: TaskSpec,
    sample: Sample,
    rubric: Rubric,
    facts: RubricFacts | None,
    responses: tuple[JudgedResponse, ...],
    computed: _ByVotes,
) -> dict[str, JudgedScore]:
    """The metrics of one rubric, from ``computed`` if equal verdicts were scored before."""
    document = sample.whole_document()
    asks = spec.benchmark.scoring.to_judge.get(rubric.name)
    failed = sample.status == FAILED
    texts: Sequence[str] = judged_responses(sample)
    if failed:  # open if the ideal response would be judged
        texts = [ideal_response(document)] * len(texts)
    asked = tuple(asks is None or asks(document, text) for text in texts)
    combined = bool(responses) and facts is not None and not failed
    by_aspect = any(asked) and (combined or not _BY_ASPECT.isdisjoint(rubric.metrics.values()))
    aspect_names = ""
    if by_aspect and rubric.aspects_from is not None:
        aspect_names = str(document.get(rubric.aspects_from))
    elif by_aspect:
        aspects_of(rubric, document)  # refuses an invalid document
    votes = tuple(_votes(response) for response in responses)
    key = rubric.name, asked, failed, aspect_names, votes
    if key not in computed:
        limits = []
        for number, is_asked in enumerate(asked):
            response = responses[number] if responses and not failed else None
            limits.append(_limits(rubric, document, facts, response) if is_asked else {})
        has_judge = any(response.judges for response in responses)
        judge = facts.judge_hash if facts is not None and has_judge else None
        computed[key] = _scores_within(limits, rubric, judge)
    return computed[key]


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


def judges_of(facts: RubricFacts) -> str:
    """The models that judged under a rubric; a stub is marked as such."""
    models = sorted({str(one.get("model", name)) for name, one in facts.judges.items()})
    return ", ".join(f"{model} (a stub)" if model == STUB else model for model in models)


def judge_names(manifest: RunManifest) -> dict[str, str]:
    """The judges of each judged task and group."""
    names = {}
    for name, tasks in {**{task: (task,) for task in manifest.tasks}, **manifest.groups}.items():
        judges = sorted(
            {judges_of(facts) for facts in manifest.judge.values() if {*tasks} & {*facts.tasks}}
        )
        if judges:
            names[name] = ", ".join(judges)
    return names


def judge_hash(
    rubric: Rubric, template: str, judges: Mapping[str, Mapping[str, Any]], rule: Rule
) -> str:
    """Hash of everything that determines the decision of ``judges``, with that of the rubric's
    ``template``; their order and local names do not matter.
    """
    if any(IMPORTED in one for one in judges.values()):
        return short_hash(canonical_json([IMPORTED, rubric_hash(rubric), *judges.values()]))
    parts = [rubric_hash(rubric, template), sorted(canonical_json(one) for one in judges.values())]
    if len(judges) > 1:
        parts.append(rule)
    return short_hash(canonical_json(parts))
