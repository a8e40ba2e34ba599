"""From the verdicts of judges to scores: no judge is called, and the same verdicts give the same
scores.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, TypeAlias

from medtasks.catalog.benchmark import FAILED
from medtasks.catalog.rubric import Rubric, aspects_of, load_rubric, rubric_hash
from medtasks.catalog.spec import TaskSpec
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

_NOTHING: tuple[Limits, dict[str, Limits]] = ((0.0, 0.0), (0.0, 0.0)), {}


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


_Known: TypeAlias = dict[tuple[Any, ...], dict[str, JudgedScore]]
"""The metrics of one rubric by all that decides them, because thousands of samples have equal
verdicts or none.
"""


def with_judged_scores(
    spec: TaskSpec, samples: Iterable[Sample], facts: Mapping[str, RubricFacts] | None = None
) -> list[Sample]:
    """``samples`` with the metrics of the task's first rubric, and of all others under which it was
    judged.

    A judged rubric is used as it was then, even if its file has changed. Verdicts on a text other
    than the sample's current filtered response (the filter has changed) are dropped, as are those
    of judges that ``facts`` do not name. A sample without complete verdicts is pending, with limits
    on its score.
    """
    known, computed = facts or {}, _Known()
    used = {name: one.rubric for name, one in known.items() if spec.name in one.tasks}
    rubrics = {
        name: load_rubric(name) for name in spec.metadata.rubrics[:1] if name not in used
    } | used
    scored = []
    for sample in samples:
        if not (rubrics or sample.verdicts or sample.judged or sample.pending):
            scored.append(sample)
            continue
        scores = {name: score for name, score in sample.scores.items() if name not in sample.judged}
        statistics = {
            name: row for name, row in sample.statistics.items() if name not in sample.judged
        }
        texts = [short_hash(text) for text in judged_responses(sample)] if sample.verdicts else []
        verdicts: dict[str, tuple[JudgedResponse, ...]] = {}
        judged: dict[str, JudgedScore] = {}
        for name, rubric in rubrics.items():
            given = sample.verdicts.get(name, ())
            if name in known and [one.text for one in given] == texts:
                verdicts[name] = _of_panel(given, known[name], sample.whole_document())
            judged |= _scores(
                spec, sample, rubric, known.get(name), verdicts.get(name, ()), computed
            )
        is_open = [metric for metric, one in judged.items() if one.limits[0] != one.limits[1]]
        for metric, one in judged.items():
            row = one.limits[0]
            if metric not in is_open:
                statistics[metric] = row
            scores[metric] = None if metric in is_open or not row[1] else row[0] / row[1]
        pending = () if sample.status == FAILED else tuple(is_open)
        update = {
            "scores": scores,
            "statistics": statistics,
            "verdicts": verdicts,
            "judged": judged,
        }
        scored.append(sample.model_copy(update={**update, "pending": pending}))
    return scored


def _scores(
    spec: TaskSpec,
    sample: Sample,
    rubric: Rubric,
    facts: RubricFacts | None,
    found: tuple[JudgedResponse, ...],
    computed: _Known,
) -> dict[str, JudgedScore]:
    document = sample.whole_document()
    asks = spec.benchmark.to_judge.get(rubric.name)
    failed = sample.status == FAILED  # open if the ideal response would be judged
    texts = [ideal_response(document) if failed else text for text in judged_responses(sample)]
    asked = tuple(asks is None or asks(document, text) for text in texts)
    combined = bool(found) and facts is not None and not failed
    by_aspect = any(asked) and (combined or not _BY_ASPECT.isdisjoint(rubric.metrics.values()))
    names = ""
    if by_aspect and rubric.aspects_from is not None:
        names = str(document.get(rubric.aspects_from))
    elif by_aspect:
        aspects_of(rubric, document)  # refuses an invalid document
    votes = tuple(
        tuple(
            (name, one.scores and tuple(one.scores.items()))
            for name, one in response.judges.items()
        )
        for response in found
    )
    key = rubric.name, asked, failed, names, votes
    if key in computed:
        return computed[key]
    rows = [
        _limits(rubric, document, facts, found[number] if found and not failed else None)
        if is_asked
        else {}
        for number, is_asked in enumerate(asked)
    ]
    judge = facts.judge_hash if facts is not None and any(one.judges for one in found) else None
    scores = {}
    for metric in rubric.metrics:
        given = [row.get(metric, _NOTHING) for row in rows]
        whole = tuple(limits for limits, _ in given)
        parts = {key: _sum([of_aspect[key] for _, of_aspect in given]) for key in given[0][1]}
        repeats = whole if len(rows) > 1 else ()
        scores[metric] = JudgedScore(
            rubric=rubric.name, judge=judge, limits=_sum(whole), repeats=repeats, parts=parts
        )
    computed[key] = scores
    return scores


def _limits(
    rubric: Rubric,
    document: Mapping[str, Any],
    facts: RubricFacts | None,
    found: JudgedResponse | None,
) -> dict[str, tuple[Limits, dict[str, Limits]]]:
    """The worst and best statistics of each metric, and of its parts, that the verdicts on one
    response allow.
    """
    low: Mapping[str, float] = defaultdict(float)
    high: Mapping[str, float] = defaultdict(lambda: rubric.best)
    if found is not None and facts is not None:
        given = {
            name: found.judges[name].scores if name in found.judges else None
            for name in facts.judges
        }
        decided, _ = combine(given, aspects_of(rubric, document), facts.combine)
        low, high = bounds(rubric, document, decided)
    limits: dict[str, tuple[Limits, dict[str, Limits]]] = {}
    for metric, key in rubric.metrics.items():
        if key not in _BY_ASPECT:
            limits[metric] = ((low[key], 1.0), (high[key], 1.0)), {}
            continue
        names = [aspect.name for aspect in aspects_of(rubric, document)]
        times = Counter(names)
        if key == "occurrences" and rubric.aspects_from is not None:
            times = Counter(document[rubric.aspects_from])
        parts: dict[str, Limits] = {
            name: (
                (times[name] * low[name], float(times[name])),
                (times[name] * high[name], float(times[name])),
            )
            for name in names
        }
        limits[metric] = _sum([*parts.values()]), parts
    return limits


def _sum(limits: Sequence[Limits]) -> Limits:
    if len(limits) == 1:
        return limits[0]
    low, high = (
        tuple(fsum(column) for column in zip(*side, strict=True))
        for side in zip(*limits, strict=True)
    )
    return (low, high)


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
