"""The manifest's facts about judging under a rubric: who judged, how many responses, and how far judges agree."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import rubric_hash
from medtasks.catalog.scales import Rubric
from medtasks.core.files import canonical_json, short_hash
from medtasks.judge.agreement import AgreementReport, agreement_report
from medtasks.judge.ensemble import Rule
from medtasks.judge.human import Unit
from medtasks.judge.pipeline import Question, Verdicts
from medtasks.judge.settings import STUB
from medtasks.runs.manifest import RubricFacts, RunManifest
from medtasks.runs.samples import JudgedResponse

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
    kinds = [(judge, _kind(reason)) for judge, reason in reasons.items() if reason is not None]
    if not kinds:
        return "judges disagree"
    return "; ".join(f"{judge}: {kind}" for judge, kind in kinds) if len(verdicts) > 1 else kinds[0][1]


def _kind(reason: str) -> str:
    return _SAMPLE.sub("", reason)[:120] if _SAMPLE.match(reason) else reason.partition(":")[0]


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
