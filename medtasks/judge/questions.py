"""From samples to questions for judges, and from their verdicts to judged samples.

No judge is called here (see :mod:`medtasks.judge.judge_run`): the same verdicts give the same
scores.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from medtasks.benchmarks.documents import all_pictures
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.core.files import short_hash
from medtasks.judge.pipeline import Question
from medtasks.judge.user_message import ImageSource
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, Sample
from medtasks.runs.verdict import Rule, Verdict
from medtasks.scoring.judge_identity import IMPORTED, judge_hash
from medtasks.scoring.judged_scores import undecided_aspects, with_judged_scores
from medtasks.scoring.rubric_scorer import judged_responses

if TYPE_CHECKING:
    from PIL.Image import Image

_SAMPLE = re.compile(r"^sample \S+: ")


def questions_of(
    samples: Mapping[str, Sequence[Sample]],
    tasks: Sequence[str],
    rubric: Rubric,
    fingerprints: Mapping[str, str] | None = None,
) -> list[Question]:
    """A question for every response of ``tasks`` that ``rubric`` asks about.

    Questions have images or frames if ``fingerprints`` are passed: those of the prepared data, by
    benchmark.
    """
    questions = []
    for task in tasks:
        asks = load_spec(task).benchmark.scoring.to_judge.get(rubric.name)
        for sample in samples[task]:
            if sample.status == FAILED:
                continue
            document = sample.whole_document()
            images: tuple[ImageSource, ...] = ()
            if fingerprints:
                images = _image_sources(document, fingerprints[document["benchmark"]])
            for number, text in enumerate(judged_responses(sample)):
                if asks is None or asks(document, text):
                    name = question_name(sample, number)
                    questions.append(Question(name, document, text, images))
    return questions


def question_name(sample: Sample, number: int) -> str:
    """The name of the question about one of a sample's responses, counted from 0."""
    return f"{sample.task}/{sample.sample_id}#{number}"


def _image_sources(document: Mapping[str, Any], fingerprint: str) -> tuple[ImageSource, ...]:
    """The document's images or frames, each identified by data and name, to be loaded later."""
    names = document["media"]
    if document.get("frames"):
        video = names[0]
        names = [f"{video}@{frame}" for frame in document["frames"]]
    images = []
    for place, name in enumerate(names):
        key = hashlib.sha256(f"{fingerprint}/{name}".encode()).hexdigest()
        images.append(ImageSource(key, partial(_picture_at, document, place)))
    return tuple(images)


def _picture_at(document: Mapping[str, Any], place: int) -> Image:
    """The document's image at ``place``, also in a blind run: its judge is not blind."""
    return all_pictures(document)[place]


def judged_samples(
    samples: Mapping[str, list[Sample]],
    earlier_facts: Mapping[str, RubricFacts],
    rubric: Rubric,
    tasks: tuple[str, ...],
    judges: Mapping[str, dict[str, Any]],
    questions: Sequence[Question],
    verdicts: Mapping[str, Mapping[str, Verdict]],
    *,
    rule: Rule = "majority",
    **more: Any,
) -> tuple[dict[str, list[Sample]], RubricFacts]:
    """``samples`` with the verdicts and scores of ``rubric`` in its ``tasks``, and the facts on it.

    A response that is not judged gets an empty verdict.

    Args:
        samples: the samples of a run, by task.
        earlier_facts: the facts on rubrics that the run was judged under before.
        rubric: the rubric that was asked about.
        tasks: the tasks with this rubric.
        judges: the settings that identify each judge.
        questions: the questions that were asked.
        verdicts: those of each judge by question.
        rule: how the verdicts of several judges are combined.
        **more: further fields of the facts.
    """
    responses = {}
    for question in questions:
        responses[question.name] = _judged_response(question, rubric, verdicts, rule)
    unjudged = _reasons_unjudged(responses.values())
    facts = RubricFacts(
        rubric=rubric,
        tasks=tasks,
        judges=dict(judges),
        combine=rule,
        asked=len(responses),
        judged=len(responses) - unjudged.total(),
        unjudged=dict(sorted(unjudged.items())),
        **_hashes(rubric, judges, rule),
        **_repairs_and_tokens(verdicts),
        **more,
    )
    judged = dict(samples)
    all_facts = {**earlier_facts, rubric.name: facts}
    for task in tasks:
        with_verdicts = (_with_verdicts(sample, rubric, responses) for sample in samples[task])
        judged[task] = with_judged_scores(load_spec(task), with_verdicts, all_facts)
    return judged, facts


def _hashes(rubric: Rubric, judges: Mapping[str, dict[str, Any]], rule: Rule) -> dict[str, Any]:
    """What the facts identify rubric, prompt and judges by.

    Which rubric and prompt an imported judge was shown is not known.
    """
    if any(IMPORTED in identity for identity in judges.values()):
        hash_of_rubric = IMPORTED
        hash_of_template = IMPORTED
    else:
        hash_of_rubric = rubric_hash(rubric)
        hash_of_template = template_hash(rubric.template)
    return {
        "rubric_hash": hash_of_rubric,
        "template_hash": hash_of_template,
        "judge_hash": judge_hash(rubric, hash_of_template, judges, rule),
    }


def _judged_response(
    question: Question,
    rubric: Rubric,
    verdicts: Mapping[str, Mapping[str, Verdict]],
    rule: Rule,
) -> JudgedResponse:
    """The response that a question is about, with the verdicts of all judges on it."""
    verdict_by_judge: dict[str, Verdict] = {}
    for judge, by_question in verdicts.items():
        verdict_by_judge[judge] = by_question[question.name]
    return JudgedResponse(
        text=short_hash(question.response),
        judges=verdict_by_judge,
        open=undecided_aspects(verdict_by_judge, rubric, question.document, rule),
    )


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


def _repairs_and_tokens(verdicts: Mapping[str, Mapping[str, Verdict]]) -> dict[str, Any]:
    """How many verdicts were repaired, and the tokens of the distinct ones."""
    repaired = 0
    distinct: dict[tuple[str, str | None], Verdict] = {}
    for judge, by_question in verdicts.items():
        for verdict in by_question.values():
            repaired += verdict.repaired
            distinct[judge, verdict.key] = verdict
    return {
        "repaired": repaired,
        "prompt_tokens": sum(verdict.prompt_tokens for verdict in distinct.values()),
        "completion_tokens": sum(verdict.completion_tokens for verdict in distinct.values()),
    }


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
