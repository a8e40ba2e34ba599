"""What the verdicts under one rubric make of a run's samples.

No judge is called here (see :mod:`medtasks.judge.judge_run`): the same verdicts give the same
scores.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.catalog.spec import load_spec
from medtasks.core.files import short_hash
from medtasks.judge.judged import JudgedRubric, Samples
from medtasks.judge.pipeline import Question
from medtasks.judge.questions import question_name
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, Sample
from medtasks.runs.verdict import Rule, Verdict
from medtasks.scoring.judge_identity import IMPORTED, judge_hash
from medtasks.scoring.judged_scores import undecided_aspects, with_judged_scores
from medtasks.scoring.rubric_scorer import judged_responses

_SAMPLE = re.compile(r"^sample \S+: ")


@dataclass(frozen=True)
class RubricVerdicts:
    """The verdicts of a panel of judges on the responses of ``tasks``, under one ``rubric``.

    ``judges`` are the settings that identify each judge, and ``verdicts`` those of each judge by
    name of the question. ``rule`` combines the verdicts on a response; a score needs verdicts on
    the share ``threshold`` of the responses. ``agreement`` is that of the judges with each other
    and with human annotations.
    """

    rubric: Rubric
    tasks: tuple[str, ...]
    questions: Sequence[Question]
    judges: Mapping[str, dict[str, Any]]
    verdicts: Mapping[str, Mapping[str, Verdict]]
    threshold: float
    rule: Rule = "majority"
    warnings: tuple[str, ...] = ()
    agreement: AgreementReport | None = None

    @property
    def are_imported(self) -> bool:
        """Whether a judge's verdicts are from a file: what this judge was shown is not known."""
        return any(IMPORTED in settings for settings in self.judges.values())

    def on_response(self, question: Question) -> JudgedResponse:
        """The response that a question is about, with the verdicts of all judges on it."""
        verdicts: dict[str, Verdict] = {}
        for judge, by_question in self.verdicts.items():
            verdicts[judge] = by_question[question.name]
        return JudgedResponse(
            text=short_hash(question.response),
            judges=verdicts,
            open=undecided_aspects(verdicts, self.rubric, question.document, self.rule),
        )


def judged_under_rubric(
    judging: RubricVerdicts, samples: Samples, earlier_facts: Mapping[str, RubricFacts]
) -> JudgedRubric:
    """``samples`` with the verdicts and scores of one rubric, and the facts on judging them.

    A response that no question is about gets an empty verdict. ``earlier_facts`` are those on the
    rubrics that the samples were judged under before.
    """
    rubric = judging.rubric
    responses = {question.name: judging.on_response(question) for question in judging.questions}
    facts = _rubric_facts(judging, responses)
    all_facts = {**earlier_facts, rubric.name: facts}
    judged = dict(samples)
    for task in judging.tasks:
        with_verdicts = (_with_verdicts(sample, rubric, responses) for sample in samples[task])
        judged[task] = with_judged_scores(load_spec(task), with_verdicts, all_facts)
    return JudgedRubric(judged, facts)


def _rubric_facts(judging: RubricVerdicts, responses: Mapping[str, JudgedResponse]) -> RubricFacts:
    """The facts on a rubric for the manifest."""
    rubric = judging.rubric
    hash_of_rubric = hash_of_template = IMPORTED
    if not judging.are_imported:
        hash_of_rubric = rubric_hash(rubric)
        hash_of_template = template_hash(rubric.template)
    unjudged = _reasons_unjudged(responses.values())
    distinct = _distinct_verdicts(judging.verdicts)
    repaired = 0
    for by_question in judging.verdicts.values():
        repaired += sum(verdict.repaired for verdict in by_question.values())
    return RubricFacts(
        rubric=rubric,
        rubric_hash=hash_of_rubric,
        template_hash=hash_of_template,
        tasks=judging.tasks,
        judges=dict(judging.judges),
        combine=judging.rule,
        judge_hash=judge_hash(rubric, hash_of_template, judging.judges, judging.rule),
        threshold=judging.threshold,
        asked=len(responses),
        judged=len(responses) - unjudged.total(),
        unjudged=dict(sorted(unjudged.items())),
        repaired=repaired,
        prompt_tokens=sum(verdict.prompt_tokens for verdict in distinct),
        completion_tokens=sum(verdict.completion_tokens for verdict in distinct),
        warnings=judging.warnings,
        agreement=judging.agreement,
    )


def _distinct_verdicts(verdicts: Mapping[str, Mapping[str, Verdict]]) -> list[Verdict]:
    """Each judge's verdicts, those on equal prompts once: they were asked for and paid once."""
    distinct: dict[tuple[str, str | None], Verdict] = {}
    for judge, by_question in verdicts.items():
        for verdict in by_question.values():
            distinct[judge, verdict.key] = verdict
    return list(distinct.values())


def _reasons_unjudged(responses: Iterable[JudgedResponse]) -> Counter[str]:
    """The number of unjudged responses by reason."""
    reasons: Counter[str] = Counter()
    for response in responses:
        if response.open:
            reasons[_reason_to_count(response.judges)] += 1
    return reasons


def _reason_to_count(verdict_by_judge: Mapping[str, Verdict]) -> str:
    """Why a response is unjudged, without the details that differ between responses."""
    reasons = []
    for judge, verdict in verdict_by_judge.items():
        if verdict.unjudged is None:
            continue
        reason = verdict.unjudged.partition(":")[0]
        if _SAMPLE.match(verdict.unjudged):
            reason = _SAMPLE.sub("", verdict.unjudged)[:120]
        reasons.append(f"{judge}: {reason}" if len(verdict_by_judge) > 1 else reason)
    return "; ".join(reasons) or "judges disagree"


def _with_verdicts(
    sample: Sample, rubric: Rubric, responses: Mapping[str, JudgedResponse]
) -> Sample:
    """The sample with the verdicts on its responses, empty ones where none was asked for."""
    judged = []
    for number, text in enumerate(judged_responses(sample)):
        response = responses.get(question_name(sample, number))
        judged.append(response or JudgedResponse(text=short_hash(text)))
    verdicts = {**sample.verdicts, rubric.name: tuple(judged)}
    return sample.model_copy(update={"verdicts": verdicts})
