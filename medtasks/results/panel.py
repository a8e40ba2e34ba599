"""A panel's answers under one rubric: decisions on each response, facts for the manifest, problems to report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks.base import FAILED
from medtasks.files import canonical_json, short_hash
from medtasks.judge.agreement import AgreementReport, agreement_report
from medtasks.judge.ensemble import Rule, combine
from medtasks.judge.human import Unit
from medtasks.judge.judgement import INVALID, REPAIR, Adjudication, Judgement
from medtasks.judge.settings import JudgeSettings
from medtasks.judge.store import VerdictStore
from medtasks.prompts import template_hash
from medtasks.results.judged import is_asked, judged_document, judged_responses, with_judged_scores
from medtasks.results.manifest import RubricFacts
from medtasks.results.samples import JudgedResponse, JudgeEntry, Sample
from medtasks.rubrics.rubric import aspects_of, rubric_hash
from medtasks.rubrics.scales import Rubric
from medtasks.spec import load_spec
from medtasks.text import one_line

IMPORTED = "imported"
"""Used in place of the hashes of rubric and template for imported verdicts: their judge's prompt is not known."""
SHOWN = 300  # characters of an answer
_FAILURES = ("http ", "timeout:", "connection:", "bad reply:", "question:")
_KEY_MISSING = ("http 400", "http 401", "http 403", "http 404")  # typical replies to a request without a key
_SAMPLE = re.compile(r"^sample \S+: ")

Ratings = Mapping[str, Mapping[Unit, Mapping[str, float]]]
"""Scores by rater, by task and sample id, and by aspect."""


@dataclass(frozen=True)
class Case:
    """One response of one sample."""

    task: str
    sample: Sample
    number: int
    text: str

    @property
    def name(self) -> str:
        """Unique within a run."""
        return f"{self.task}/{self.sample.sample_id}#{self.number}"

    @property
    def document(self) -> dict[str, Any]:
        """The document as the rubric sees it."""
        return judged_document(self.sample)


def cases_of(samples: Mapping[str, Sequence[Sample]], tasks: Sequence[str], rubric: Rubric) -> list[Case]:
    """Every response of ``tasks`` that ``rubric`` asks about."""
    specs = {task: load_spec(task) for task in tasks}
    return [
        case
        for task, spec in specs.items()
        for sample in samples[task]
        if sample.status != FAILED
        for case in _responses_of(task, sample)
        if is_asked(spec, rubric.name, case.document, case.text)
    ]


def _responses_of(task: str, sample: Sample) -> list[Case]:
    return [Case(task, sample, number, text) for number, text in enumerate(judged_responses(sample))]


def panel_responses(
    rubric: Rubric, rule: Rule, cases: Sequence[Case], asked: Mapping[str, Adjudication]
) -> dict[str, JudgedResponse]:
    """The judges' answers on each case, with the aspects still undecided, by the case's name."""
    responses = {}
    for case in cases:
        judgements = {name: one.judgements[case.name] for name, one in asked.items()}
        verdicts = {name: None if one.verdict is None else one.verdict.scores for name, one in judgements.items()}
        if any(verdicts.values()):
            undecided = combine(verdicts, aspects_of(rubric, case.document), rule).open
        else:  # the document itself may be invalid, so its aspects are not read
            undecided = {"(all)": "; ".join(f"{name}: {one.reason}" for name, one in judgements.items())}
        entries = {name: _entry(one) for name, one in judgements.items()}
        responses[case.name] = JudgedResponse(text=short_hash(case.text), judges=entries, open=undecided)
    return responses


def _entry(judgement: Judgement) -> JudgeEntry:
    verdict = judgement.verdict
    return JudgeEntry(
        key=judgement.key,
        scores=None if verdict is None else dict(verdict.scores),
        reasons={} if verdict is None else dict(verdict.reasons),
        unjudged=judgement.reason,
        repaired=judgement.repaired,
        prompt_tokens=judgement.prompt_tokens,
        completion_tokens=judgement.completion_tokens,
    )


def rubric_facts(
    rubric: Rubric,
    tasks: tuple[str, ...],
    identities: Mapping[str, dict[str, Any]],
    responses: Mapping[str, JudgedResponse],
    cases: Sequence[Case],
    asked: Mapping[str, Adjudication],
    *,
    rule: Rule,
    threshold: float,
    warnings: tuple[str, ...],
    agreement: AgreementReport | None = None,
) -> RubricFacts:
    """The manifest's facts about judging under a rubric; ``identities`` identify the judges."""
    distinct = {(one.key, name): one for name, many in asked.items() for one in many.judgements.values()}.values()
    unjudged = Counter(_reason(asked, case) for case in cases if responses[case.name].open)
    return RubricFacts(
        rubric=rubric,
        rubric_hash=rubric_hash(rubric),
        template_hash=template_hash(rubric.template),
        tasks=tasks,
        judges=dict(identities),
        combine=rule,
        judge_hash=judge_hash(rubric_hash(rubric), identities, rule),
        threshold=threshold,
        asked=len(cases),
        judged=len(cases) - unjudged.total(),
        unjudged=dict(sorted(unjudged.items())),
        repaired=sum(one.repaired for one in asked.values()),
        extra_keys=sum(one.extra_keys for one in asked.values()),
        prompt_tokens=sum(one.prompt_tokens for one in distinct),
        completion_tokens=sum(one.completion_tokens for one in distinct),
        warnings=warnings,
        agreement=agreement,
    )


def own_judge_hash(facts: RubricFacts) -> str:
    """The ``judge_hash`` that follows from the rubric, the judges and the rule in ``facts``."""
    if facts.rubric_hash == IMPORTED:
        return imported_hash(facts.rubric, *facts.judges.values())
    return judge_hash(rubric_hash(facts.rubric, facts.template_hash), facts.judges, facts.combine)


def imported_hash(rubric: Rubric, *identities: Mapping[str, Any]) -> str:
    """The ``judge_hash`` of verdicts that came with predictions."""
    return short_hash(canonical_json([IMPORTED, rubric_hash(rubric), *identities]))


def judge_hash(rubric: str, identities: Mapping[str, dict[str, Any]], rule: Rule) -> str:
    """Hash of everything that determines a panel's verdict; the judges' order and local names do not matter."""
    parts = [rubric, sorted(canonical_json(one) for one in identities.values())]
    if len(identities) > 1:
        parts.append(rule)
    return short_hash(canonical_json(parts))


def _reason(asked: Mapping[str, Adjudication], case: Case) -> str:
    """Why a case is unjudged, without the details that differ between responses."""
    reasons = {name: one.judgements[case.name].reason for name, one in asked.items()}
    kinds = [(name, _kind(reason)) for name, reason in reasons.items() if reason is not None]
    if not kinds:
        return "judges disagree"
    return "; ".join(f"{name}: {kind}" for name, kind in kinds) if len(asked) > 1 else kinds[0][1]


def _kind(reason: str) -> str:
    return _SAMPLE.sub("", reason)[:120] if _SAMPLE.match(reason) else reason.partition(":")[0]


def agreement_of(
    rubric: Rubric, cases: Sequence[Case], asked: Mapping[str, Adjudication], labels: Ratings
) -> AgreementReport | None:
    """Agreement of the judges with each other and with human annotations; None for a single rater.

    Annotations are per sample; if the question was repeated, they are compared with the first response.
    """
    ratings: dict[str, dict[str, Mapping[str, float]]] = {
        name: {case: verdict.scores for case, verdict in one.verdicts.items()} for name, one in asked.items()
    }
    first = {(case.task, case.sample.sample_id): case.name for case in cases if case.number == 0}
    for rater, scores in labels.items():
        name = rater if rater not in asked else f"{rater} (labels)"
        ratings[name] = {first[unit]: given for unit, given in scores.items() if unit in first}
    clusters = {case.name: case.sample.cluster for case in cases}
    return agreement_report(rubric, ratings, clusters) if len(ratings) > 1 else None


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
                responses.get(case.name) or JudgedResponse(text=short_hash(case.text))
                for case in _responses_of(task, sample)
            )
            renewed.append(sample.model_copy(update={"verdicts": {**sample.verdicts, rubric: verdicts}}))
        judged[task] = with_judged_scores(load_spec(task), renewed, {**known, rubric: facts})
    return judged


def problems(
    asked: Mapping[str, Adjudication], judges: Mapping[str, JudgeSettings], store: VerdictStore
) -> tuple[str, ...]:
    """One line per judge for its first failure, with its address, and one for its first invalid answer."""
    lines = []
    for name, adjudication in asked.items():
        failure = next((why for why in adjudication.unjudged.values() if why.startswith(_FAILURES)), None)
        if failure is not None:
            lines.append(one_line(f"{name} at {judges[name].base_url}: {failure}{_without_key(failure, judges[name])}"))
        for case, judgement in adjudication.judgements.items():
            if judgement.reason == INVALID:
                lines.append(one_line(f"{name} on {case}: {_invalid_answer(judgement.key or '', store)}"))
                break
    return tuple(lines)


def _without_key(failure: str, settings: JudgeSettings) -> str:
    if not failure.startswith(_KEY_MISSING) or settings.api_key() is not None:
        return ""
    return f" (asked without a key: the environment variable {settings.api_key_env} is not set)"


def _invalid_answer(key: str, store: VerdictStore) -> str:
    (*_, last) = store.get([key, key + REPAIR]).values()
    answer = one_line(last.answer)
    shown = answer if len(answer) <= SHOWN else f"{answer[:SHOWN]}…"
    return f"not a verdict, because {last.reason}; it answered: {shown or '(nothing)'}"
