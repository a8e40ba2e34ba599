"""From samples to questions for judges, and from their verdicts to scores.

No judge is called here (see :mod:`medtasks.runs.judge`): the same verdicts give the same scores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import fsum
from typing import Any, TypeAlias

from medtasks.catalog.benchmark import FAILED
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import aspects_of, load_rubric, occurrences_of, rubric_hash, total
from medtasks.catalog.scales import Rubric
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.files import canonical_json, short_hash
from medtasks.judge.agreement import AgreementReport, Unit, agreement_report
from medtasks.judge.ensemble import Rule, bounds, combine
from medtasks.judge.pipeline import ImageSource, Question, Verdicts
from medtasks.judge.settings import STUB
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.samples import JudgedResponse, JudgedScore, Limits, Sample
from medtasks.runs.scored import ideal_response
from medtasks.runs.scores import COVERAGE


def judged_responses(sample: Sample) -> tuple[str, ...]:
    """The texts to judge: the filtered response of each repeat."""
    return tuple(repeat.filtered for repeat in sample.repeats) or (sample.filtered,)


def is_asked(spec: TaskSpec, rubric: str, document: Mapping[str, Any], text: str) -> bool:
    """Whether judges are asked about ``text`` under the rubric."""
    asks = spec.benchmark.to_judge.get(rubric)
    return asks is None or asks(document, text)


def questions_of(
    samples: Mapping[str, Sequence[Sample]],
    tasks: Sequence[str],
    rubric: Rubric,
    images: Callable[[str, Sample], tuple[ImageSource, ...]] = lambda _task, _sample: (),
) -> list[Question]:
    """A question for every response of ``tasks`` that ``rubric`` asks about, with the images of its task and sample."""
    questions = []
    for task in tasks:
        spec = load_spec(task)
        for sample in samples[task]:
            if sample.status == FAILED:
                continue
            document = sample.whole_document()
            questions += [
                Question(
                    name=_question_name(task, sample, number),
                    document=document,
                    response=text,
                    images=images(task, sample),
                    cluster=sample.cluster,
                    unit=(task, sample.sample_id) if number == 0 else None,
                )
                for number, text in enumerate(judged_responses(sample))
                if is_asked(spec, rubric.name, document, text)
            ]
    return questions


def _question_name(task: str, sample: Sample, number: int) -> str:
    return f"{task}/{sample.sample_id}#{number}"


def combined_responses(
    rubric: Rubric, rule: Rule, questions: Sequence[Question], verdicts: Mapping[str, Verdicts]
) -> dict[str, JudgedResponse]:
    """The judges' verdicts on each response with the aspects that stay undecided, by question."""
    responses = {}
    for question in questions:
        judges = {judge: given.by_question[question.name] for judge, given in verdicts.items()}
        scores = {judge: verdict.scores for judge, verdict in judges.items()}
        if any(scores.values()):
            undecided = combine(scores, aspects_of(rubric, question.document), rule).open
        else:  # the document itself may be invalid, so its aspects are not read
            undecided = {"(all)": "; ".join(f"{judge}: {one.unjudged}" for judge, one in judges.items())}
        responses[question.name] = JudgedResponse(text=short_hash(question.response), judges=judges, open=undecided)
    return responses


def with_verdicts(
    samples: Mapping[str, list[Sample]],
    responses: Mapping[str, JudgedResponse],
    known: Mapping[str, RubricFacts],
    facts: RubricFacts,
) -> dict[str, list[Sample]]:
    """``samples`` with a rubric's verdicts and scores in its tasks; ``known`` are the facts of other rubrics.

    A response that is not judged gets an empty verdict.
    """
    judged, rubric = dict(samples), facts.rubric.name
    for task in facts.tasks:
        renewed = []
        for sample in samples[task]:
            verdicts = tuple(
                responses.get(_question_name(task, sample, number)) or JudgedResponse(text=short_hash(text))
                for number, text in enumerate(judged_responses(sample))
            )
            renewed.append(sample.model_copy(update={"verdicts": {**sample.verdicts, rubric: verdicts}}))
        judged[task] = with_judged_scores(load_spec(task), renewed, {**known, rubric: facts})
    return judged


def judged_threshold(facts: Mapping[str, RubricFacts]) -> float:
    """The share of verdicts below which a run's scores are marked incomplete."""
    return max((one.threshold for one in facts.values()), default=COVERAGE)


_Known: TypeAlias = dict[tuple[Any, ...], dict[str, JudgedScore]]
"""The metrics of one rubric by all that decides them, because thousands of samples have equal verdicts or none."""


def with_judged_scores(
    spec: TaskSpec, samples: Sequence[Sample], facts: Mapping[str, RubricFacts] | None = None
) -> list[Sample]:
    """``samples`` with the metrics of the task's first rubric, and of all others under which it was judged.

    They are computed from the samples' verdicts. A judged rubric is used as it was then, even if its file has changed.

    Verdicts on a text other than the sample's current filtered response (the filter has changed) are dropped. A sample
    without complete verdicts is pending, with limits on its score.
    """
    known = facts or {}
    computed: _Known = {}
    judged = {name: one.rubric for name, one in known.items() if spec.name in one.tasks}
    rubrics = {name: load_rubric(name) for name in spec.metadata.rubrics[:1] if name not in judged} | judged
    if not rubrics and not any(sample.verdicts or sample.judged or sample.pending for sample in samples):
        return list(samples)
    return [_with_scores(spec, sample, rubrics, known, computed) for sample in samples]


def _with_scores(
    spec: TaskSpec,
    sample: Sample,
    rubrics: Mapping[str, Rubric],
    facts: Mapping[str, RubricFacts],
    computed: _Known,
) -> Sample:
    scores = {name: score for name, score in sample.scores.items() if name not in sample.judged}
    statistics = {name: row for name, row in sample.statistics.items() if name not in sample.judged}
    texts = [short_hash(text) for text in judged_responses(sample)] if sample.verdicts else []
    verdicts: dict[str, tuple[JudgedResponse, ...]] = {}
    judged: dict[str, JudgedScore] = {}
    for name, rubric in rubrics.items():
        found = sample.verdicts.get(name, ())
        if found and [one.text for one in found] == texts:
            verdicts[name] = found
        judged |= _scores(spec, sample, rubric, facts.get(name), verdicts.get(name, ()), computed)
    for metric, one in judged.items():
        low, high = one.limits
        scores[metric] = None
        if low == high:
            statistics[metric] = low
            scores[metric] = low[0] / low[1] if low[1] else None
    return sample.model_copy(
        update={
            "scores": scores,
            "statistics": statistics,
            "verdicts": verdicts,
            "judged": judged,
            "pending": ()
            if sample.status == FAILED
            else tuple(name for name, one in judged.items() if one.limits[0] != one.limits[1]),
        }
    )


def _scores(
    spec: TaskSpec,
    sample: Sample,
    rubric: Rubric,
    facts: RubricFacts | None,
    found: tuple[JudgedResponse, ...],
    computed: _Known,
) -> dict[str, JudgedScore]:
    """Every metric of one rubric; ``computed`` shares them between samples."""
    document = sample.whole_document()
    rows: list[dict[str, tuple[Limits, dict[str, Limits]]]] = []
    failed = sample.status == FAILED  # open if the ideal response would be judged
    texts = [ideal_response(document) if failed else text for text in judged_responses(sample)]
    asked = tuple(is_asked(spec, rubric.name, document, text) for text in texts)
    combined = bool(found) and facts is not None and not failed
    by_aspect = any(asked) and (combined or not _BY_ASPECT.isdisjoint(rubric.metrics.values()))
    names = ""
    if by_aspect and rubric.aspects_from is not None:
        names = str(document.get(rubric.aspects_from))
    elif by_aspect:
        aspects_of(rubric, document)  # refuses an invalid document
    votes = tuple(
        tuple((name, one.scores and tuple(one.scores.items())) for name, one in response.judges.items())
        for response in found
    )
    key = rubric.name, asked, failed, names, votes
    if key in computed:
        return computed[key]
    for number, is_open in enumerate(asked):
        if not is_open:
            rows.append({metric: (_NOTHING, {}) for metric in rubric.metrics})
        else:
            rows.append(_limits(rubric, document, facts, found[number] if found and not failed else None))
    judge = facts.judge_hash if facts is not None and found and any(one.judges for one in found) else None
    scores = {}
    for metric in rubric.metrics:
        limits = _sum([row[metric][0] for row in rows])
        parts = {key: _sum([row[metric][1][key] for row in rows]) for key in rows[0][metric][1]}
        repeats = tuple(row[metric][0] for row in rows) if len(rows) > 1 else ()
        scores[metric] = JudgedScore(rubric=rubric.name, judge=judge, limits=limits, repeats=repeats, parts=parts)
    computed[key] = scores
    return scores


_BY_ASPECT = frozenset({"aspects", "occurrences"})
"""Values of a rubric's metrics that are sums over the aspects of a sample."""

_NOTHING: Limits = ((0.0, 0.0), (0.0, 0.0))


def _limits(
    rubric: Rubric, document: Mapping[str, Any], facts: RubricFacts | None, found: JudgedResponse | None
) -> dict[str, tuple[Limits, dict[str, Limits]]]:
    """The worst and best statistics of each metric, and of its parts, that the verdicts on one response allow."""
    if found is None or facts is None:
        return {metric: _open(rubric, document, key) for metric, key in rubric.metrics.items()}
    aspects = aspects_of(rubric, document)
    combined = combine(
        {name: found.judges[name].scores if name in found.judges else None for name in facts.judges},
        aspects,
        facts.combine,
    )
    if combined.open:
        low, high = bounds(rubric, document, combined.scores)
    else:
        low = high = total(rubric, document, combined.scores)
    answer = {}
    for metric, key in rubric.metrics.items():
        parts: dict[str, Limits] = {}
        if key in _BY_ASPECT:
            parts = {
                name: ((times * low[name], times), (times * high[name], times))
                for name, times in _times(rubric, document, key).items()
            }
            limits = _sum(list(parts.values()))
        else:
            limits = ((low[key], 1.0), (high[key], 1.0))
        answer[metric] = (limits, parts)
    return answer


def _open(rubric: Rubric, document: Mapping[str, Any], key: str) -> tuple[Limits, dict[str, Limits]]:
    """The limits for a response without a verdict."""
    whole: Limits = ((0.0, 1.0), (rubric.best, 1.0))
    if key not in _BY_ASPECT:
        return whole, {}
    times = _times(rubric, document, key)
    parts: dict[str, Limits] = {name: ((0.0, one), (one * rubric.best, one)) for name, one in times.items()}
    return _sum(list(parts.values())), parts


def _times(rubric: Rubric, document: Mapping[str, Any], key: str) -> dict[str, float]:
    """How often each aspect counts in a metric over aspects."""
    names = [aspect.name for aspect in aspects_of(rubric, document)]
    counts = occurrences_of(rubric, document) if key == "occurrences" else (1,) * len(names)
    return dict(zip(names, map(float, counts), strict=True))


def _sum(limits: Sequence[Limits]) -> Limits:
    if len(limits) == 1:
        return limits[0]
    low, high = (tuple(fsum(column) for column in zip(*side, strict=True)) for side in zip(*limits, strict=True))
    return (low, high)


IMPORTED = "imported"
"""Used in place of the hashes of rubric and template for imported verdicts: their judge's prompt is not known."""
_SAMPLE = re.compile(r"^sample \S+: ")

Ratings = Mapping[str, Mapping[Unit, Mapping[str, float]]]
"""Scores by rater, by task and sample id, and by aspect."""


def rubric_facts(
    rubric: Rubric,
    tasks: tuple[str, ...],
    identities: Mapping[str, dict[str, Any]],
    responses: Mapping[str, JudgedResponse],
    verdicts: Mapping[str, Verdicts],
    *,
    rule: Rule,
    threshold: float,
    warnings: tuple[str, ...],
    agreement: AgreementReport | None = None,
) -> RubricFacts:
    """The facts about ``responses``, by question; ``identities`` are the settings that identify each judge."""
    distinct = {
        (verdict.key, judge): verdict for judge, given in verdicts.items() for verdict in given.by_question.values()
    }.values()
    unjudged = Counter(_reason(verdicts, name) for name, response in responses.items() if response.open)
    return RubricFacts(
        rubric=rubric,
        rubric_hash=rubric_hash(rubric),
        template_hash=template_hash(rubric.template),
        tasks=tasks,
        judges=dict(identities),
        combine=rule,
        judge_hash=judge_hash(rubric_hash(rubric), identities, rule),
        threshold=threshold,
        asked=len(responses),
        judged=len(responses) - unjudged.total(),
        unjudged=dict(sorted(unjudged.items())),
        repaired=sum(given.repaired for given in verdicts.values()),
        extra_keys=sum(given.extra_keys for given in verdicts.values()),
        prompt_tokens=sum(verdict.prompt_tokens for verdict in distinct),
        completion_tokens=sum(verdict.completion_tokens for verdict in distinct),
        warnings=warnings,
        agreement=agreement,
    )


def judges_of(facts: RubricFacts) -> str:
    """The models that judged under a rubric; a stub is marked as such."""
    models = sorted({str(one.get("model", name)) for name, one in facts.judges.items()})
    return ", ".join(f"{model} (a stub)" if model == STUB else model for model in models)


def judge_names(manifest: RunManifest) -> dict[str, str]:
    """The judges of each judged task and group."""
    leaves = {**{task: (task,) for task in manifest.tasks}, **manifest.groups}
    names = {}
    for name, tasks in leaves.items():
        judges = sorted({judges_of(facts) for facts in manifest.judge.values() if {*tasks} & {*facts.tasks}})
        if judges:
            names[name] = ", ".join(judges)
    return names


def own_judge_hash(facts: RubricFacts) -> str:
    """The ``judge_hash`` that follows from the rubric, the judges and the rule in ``facts``."""
    if facts.rubric_hash == IMPORTED:
        return imported_hash(facts.rubric, *facts.judges.values())
    return judge_hash(rubric_hash(facts.rubric, facts.template_hash), facts.judges, facts.combine)


def imported_hash(rubric: Rubric, *identities: Mapping[str, Any]) -> str:
    """The ``judge_hash`` of verdicts that came with predictions."""
    return short_hash(canonical_json([IMPORTED, rubric_hash(rubric), *identities]))


def judge_hash(rubric: str, identities: Mapping[str, dict[str, Any]], rule: Rule) -> str:
    """Hash of everything that determines the judges' decision; their order and local names do not matter."""
    parts = [rubric, sorted(canonical_json(one) for one in identities.values())]
    if len(identities) > 1:
        parts.append(rule)
    return short_hash(canonical_json(parts))


def _reason(verdicts: Mapping[str, Verdicts], name: str) -> str:
    """Why a question is unjudged, without the details that differ between responses."""
    reasons = {judge: given.by_question[name].unjudged for judge, given in verdicts.items()}
    kinds = [
        (judge, _SAMPLE.sub("", reason)[:120] if _SAMPLE.match(reason) else reason.partition(":")[0])
        for judge, reason in reasons.items()
        if reason is not None
    ]
    if not kinds:
        return "judges disagree"
    return "; ".join(f"{judge}: {kind}" for judge, kind in kinds) if len(verdicts) > 1 else kinds[0][1]


def agreement_of(
    rubric: Rubric, questions: Sequence[Question], verdicts: Mapping[str, Verdicts], labels: Ratings
) -> AgreementReport | None:
    """Agreement of the judges with each other and with human annotations; None for a single rater.

    Annotations are per sample; if the question was repeated, they are compared with the first response.
    """
    ratings: dict[str, dict[str, Mapping[str, float]]] = {
        judge: {name: verdict.scores or {} for name, verdict in given.valid.items()}
        for judge, given in verdicts.items()
    }
    first = {question.unit: question.name for question in questions if question.unit is not None}
    for rater, scores in labels.items():
        name = rater if rater not in verdicts else f"{rater} (labels)"
        ratings[name] = {first[unit]: given for unit, given in scores.items() if unit in first}
    clusters = {question.name: question.cluster for question in questions}
    return agreement_report(rubric, ratings, clusters) if len(ratings) > 1 else None
