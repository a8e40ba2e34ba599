"""From samples to questions for judges, and from their verdicts to judged samples.

No judge is called here (see :mod:`medtasks.judge.judge_run`): the same verdicts give the same
scores.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from medtasks.benchmarks.documents import all_pictures
from medtasks.catalog.benchmark import FAILED
from medtasks.catalog.prompts import template_hash
from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.catalog.spec import load_spec
from medtasks.core.files import short_hash
from medtasks.judge.pipeline import ImageSource, Question
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, Sample
from medtasks.runs.verdict import Rule, Verdict
from medtasks.scoring.judged_scores import (
    IMPORTED,
    judge_hash,
    judged_responses,
    undecided_aspects,
    with_judged_scores,
)

_SAMPLE = re.compile(r"^sample \S+: ")


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
        undecided = undecided_aspects(given, rubric, question.document, rule)
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
