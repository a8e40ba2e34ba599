"""From samples to questions for judges, and from their verdicts to scores.

No judge is called here (see :mod:`medtasks.runs.judge`): the same verdicts give the same scores.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import fsum
from typing import Any, TypeAlias

from medtasks.benchmarks.documents import all_pictures
from medtasks.catalog.benchmark import FAILED
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric, aspects_of, load_rubric, rubric_hash
from medtasks.catalog.spec import TaskSpec, load_spec
from medtasks.core.files import canonical_json, short_hash
from medtasks.judge.pipeline import ImageSource, Question
from medtasks.judge.settings import STUB
from medtasks.judge.verdict import Rule, Verdict, bounds, combine
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.samples import JudgedResponse, JudgedScore, Limits, Sample
from medtasks.runs.scored import ideal_response

IMPORTED = "imported"
"""Used in place of the hashes of rubric and template for imported verdicts: their judge's prompt is
not known.
"""
_BY_ASPECT = frozenset({"aspects", "occurrences"})
"""Values of a rubric's metrics that are sums over the aspects of a sample."""
_NOTHING: tuple[Limits, dict[str, Limits]] = ((0.0, 0.0), (0.0, 0.0)), {}
_SAMPLE = re.compile(r"^sample \S+: ")


# --- questions, and the verdicts on them ---


def judged_responses(sample: Sample) -> tuple[str, ...]:
    """The texts to judge: the filtered response of each repeat."""
    return tuple(repeat.filtered for repeat in sample.repeats) or (sample.filtered,)


def questions_of(
    samples: Mapping[str, Sequence[Sample]],
    tasks: Sequence[str],
    rubric: Rubric,
    shown: Mapping[str, str] | None = None,
) -> list[Question]:
    """A question for every response of ``tasks`` that ``rubric`` asks about; with its images or
    frames if the fingerprint of its benchmark's prepared data is in ``shown``.
    """
    questions = []
    for task in tasks:
        asks = load_spec(task).benchmark.to_judge.get(rubric.name)
        for sample in samples[task]:
            if sample.status == FAILED:
                continue
            document = sample.whole_document()
            images = _images(document, shown[document["benchmark"]]) if shown else ()
            questions += [
                Question(f"{task}/{sample.sample_id}#{number}", document, text, images)
                for number, text in enumerate(judged_responses(sample))
                if asks is None or asks(document, text)
            ]
    return questions


def _images(document: Mapping[str, Any], fingerprint: str) -> tuple[ImageSource, ...]:
    def picture(place: int) -> Any:
        return all_pictures(document)[place]  # also in a blind run: its judge is not blind

    names = [
        f"{document['media'][0]}@{frame}" for frame in document.get("frames") or ()
    ] or document["media"]
    keys = [hashlib.sha256(f"{fingerprint}/{name}".encode()).hexdigest() for name in names]
    return tuple(ImageSource(key, partial(picture, place)) for place, key in enumerate(keys))


def judged_samples(
    samples: Mapping[str, list[Sample]],
    known: Mapping[str, RubricFacts],
    rubric: Rubric,
    tasks: tuple[str, ...],
    judges: Mapping[str, dict[str, Any]],
    questions: Sequence[Question],
    verdicts: Mapping[str, Mapping[str, Verdict]],
    *,
    rule: Rule = "majority",
    **more: Any,
) -> tuple[dict[str, list[Sample]], RubricFacts]:
    """``samples`` with the verdicts and scores of ``rubric`` in its ``tasks``, and the facts about
    them.

    ``known`` are the facts of other rubrics, ``judges`` the settings that identify each judge,
    ``verdicts`` those of each judge by question, ``more`` further fields of the facts. A response
    that is not judged gets an empty verdict.
    """
    responses: dict[str, JudgedResponse] = {}
    unjudged = Counter[str]()  # by reason, without the details that differ between responses
    for question in questions:
        given = {judge: by_question[question.name] for judge, by_question in verdicts.items()}
        undecided = _undecided(given, rubric, question.document, rule)
        responses[question.name] = JudgedResponse(
            text=short_hash(question.response), judges=given, open=undecided
        )
        if undecided:
            kinds = []
            for judge, verdict in given.items():
                if (reason := verdict.unjudged) is not None:
                    kind = (
                        _SAMPLE.sub("", reason)[:120]
                        if _SAMPLE.match(reason)
                        else reason.partition(":")[0]
                    )
                    kinds.append(f"{judge}: {kind}" if len(verdicts) > 1 else kind)
            unjudged["; ".join(kinds) or "judges disagree"] += 1
    every = [
        (judge, verdict)
        for judge, by_question in verdicts.items()
        for verdict in by_question.values()
    ]
    distinct = {(judge, verdict.key): verdict for judge, verdict in every}.values()
    imported = any(IMPORTED in one for one in judges.values())
    template = IMPORTED if imported else template_hash(rubric.template)
    facts = RubricFacts(
        rubric=rubric,
        rubric_hash=IMPORTED if imported else rubric_hash(rubric),
        template_hash=template,
        tasks=tasks,
        judges=dict(judges),
        combine=rule,
        judge_hash=judge_hash(rubric, template, judges, rule),
        asked=len(responses),
        judged=len(responses) - unjudged.total(),
        unjudged=dict(sorted(unjudged.items())),
        repaired=sum(verdict.repaired for _, verdict in every),
        prompt_tokens=sum(verdict.prompt_tokens for verdict in distinct),
        completion_tokens=sum(verdict.completion_tokens for verdict in distinct),
        **more,
    )
    judged = dict(samples)

    def with_verdicts(sample: Sample) -> Sample:
        found = tuple(
            responses.get(f"{sample.task}/{sample.sample_id}#{number}")
            or JudgedResponse(text=short_hash(text))
            for number, text in enumerate(judged_responses(sample))
        )
        return sample.model_copy(update={"verdicts": {**sample.verdicts, rubric.name: found}})

    for task in tasks:
        judged[task] = with_judged_scores(
            load_spec(task), map(with_verdicts, samples[task]), {**known, rubric.name: facts}
        )
    return judged, facts


def _undecided(
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
        undecided = _undecided(whole, facts.rubric, document, facts.combine) if given else {}
        panel.append(JudgedResponse(text=response.text, judges=given, open=undecided))
    return tuple(panel)


# --- scores ---

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


# --- judges ---


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
