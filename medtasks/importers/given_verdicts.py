"""Verdicts that a file of predictions has, as those of an imported judge."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from medtasks.catalog.rubric import Rubric
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.importers.predictions import Prediction
from medtasks.judge.families import family_warnings
from medtasks.judge.pipeline import Question
from medtasks.judge.questions import questions_of
from medtasks.judge.rubric_verdicts import RubricVerdicts, judged_under_rubric
from medtasks.judge.verdict_parsing import parse_verdict
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import Sample
from medtasks.runs.verdict import Verdict
from medtasks.scoring.judge_identity import IMPORTED
from medtasks.scoring.scores import COVERAGE


@dataclass(frozen=True)
class ImportedJudge:
    """The judge whose verdicts a file has: its name, the file's layout, and the judged model."""

    name: str
    layout: str
    model: str


def with_given_verdicts(
    samples: Mapping[str, list[Sample]],
    answered: Mapping[str, Sequence[Prediction]],
    judge: ImportedJudge,
) -> tuple[dict[str, list[Sample]], dict[str, RubricFacts]]:
    """``samples`` with the verdicts of their predictions, and the facts for the manifest.

    Each task is scored by its first rubric. The judge is identified by its name and marked as
    imported, so these scores are not comparable with our own.

    Raises:
        UsageError: no task is judged, or no prediction has a verdict.
    """
    tasks_of_rubrics = _tasks_of_rubrics(samples)
    _require_verdicts(samples, tasks_of_rubrics, answered)
    settings = {judge.name: {"model": judge.name, IMPORTED: judge.layout}}
    warnings = family_warnings([judge.name], [judge.model])
    judged = dict(samples)
    facts: dict[str, RubricFacts] = {}
    for name, tasks in tasks_of_rubrics.items():
        rubric = load_rubric(name)
        questions = questions_of(judged, tasks, rubric)
        judging = RubricVerdicts(
            rubric=rubric,
            tasks=tuple(tasks),
            questions=questions,
            judges=settings,
            verdicts={judge.name: _verdicts_on(questions, answered, rubric)},
            threshold=COVERAGE,
            warnings=warnings,
        )
        result = judged_under_rubric(judging, judged, facts)
        judged = result.samples
        facts[name] = result.facts
    return judged, facts


def _require_verdicts(
    samples: Mapping[str, list[Sample]],
    tasks_of_rubrics: Mapping[str, list[str]],
    answered: Mapping[str, Sequence[Prediction]],
) -> None:
    """Refuse predictions without verdicts, or for tasks that are not judged."""
    if not tasks_of_rubrics:
        raise UsageError(f"no task of {', '.join(samples)} is judged; leave --verdicts-of out.")
    for predictions in answered.values():
        if any(prediction.verdict for prediction in predictions):
            return
    raise UsageError(
        "no prediction of the file has a verdict (`eval_json`); leave --verdicts-of out."
    )


def _tasks_of_rubrics(samples: Mapping[str, list[Sample]]) -> dict[str, list[str]]:
    """The tasks that each rubric scores: those whose first rubric it is."""
    tasks: dict[str, list[str]] = defaultdict(list)
    for task in samples:
        for rubric in load_spec(task).metadata.rubrics[:1]:
            tasks[rubric].append(task)
    return tasks


def _verdicts_on(
    questions: Sequence[Question], answered: Mapping[str, Sequence[Prediction]], rubric: Rubric
) -> dict[str, Verdict]:
    """The file's verdict on each question's response, by name of the question."""
    verdicts: dict[str, Verdict] = {}
    for question in questions:
        predictions = answered.get(question.document["sample_id"], ())
        verdicts[question.name] = _given_verdict(predictions, rubric, question.document)
    return verdicts


def _given_verdict(
    predictions: Sequence[Prediction], rubric: Rubric, document: Mapping[str, object]
) -> Verdict:
    """The verdict on a response, or why its predictions have none."""
    readings = []
    for prediction in predictions:
        if prediction.verdict is not None:
            readings.append(parse_verdict(json.dumps(prediction.verdict), rubric, document))
    valid = [reading for reading in readings if isinstance(reading, Verdict)]
    if not readings:
        return Verdict(unjudged="the file has no verdict")
    if not valid:
        return Verdict(unjudged="the file has no valid verdict")
    if any(verdict.scores != valid[0].scores for verdict in valid):
        return Verdict(unjudged="the file has contradicting verdicts")
    return Verdict(scores=valid[0].scores, reasons=valid[0].reasons)
