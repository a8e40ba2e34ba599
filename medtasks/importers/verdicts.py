"""Verdicts that came with predictions: scored under the judge's name given by the user, never as our own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.rubric import load_rubric
from medtasks.catalog.scales import Rubric
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.importers.prediction import Prediction
from medtasks.judge.ensemble import same_family
from medtasks.judge.pipeline import Verdicts
from medtasks.judge.verdict import Verdict, parse_verdict
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import Sample
from medtasks.runs.scores import COVERAGE
from medtasks.runs.verdicts import (
    IMPORTED,
    combined_responses,
    imported_hash,
    questions_of,
    rubric_facts,
    with_verdicts,
)


def with_given_verdicts(
    samples: Mapping[str, list[Sample]],
    given: Mapping[str, Sequence[Prediction]],
    judge: str,
    layout: str,
    *,
    model: str,
) -> tuple[dict[str, list[Sample]], dict[str, RubricFacts]]:
    """``samples`` with the verdicts in their predictions, scored by each task's first rubric; facts for the manifest.

    The judge is identified by its name and marked as imported, so these scores are not comparable with our own.
    Verdicts that lack an aspect, or contradict each other on the same sample, do not count.

    Raises:
        UsageError: no task is judged, or no prediction has a verdict.
    """
    rubrics = {task: load_spec(task).metadata.rubrics[:1] for task in samples}
    names = tuple(dict.fromkeys(name for listed in rubrics.values() for name in listed))
    if not names:
        raise UsageError(f"no task of {', '.join(samples)} is judged; leave --verdicts-of out.")
    if not any(prediction.verdict for several in given.values() for prediction in several):
        raise UsageError("no prediction of the file has a verdict (`eval_json`); leave --verdicts-of out.")
    warning = same_family(judge, model)
    described = {"model": judge, IMPORTED: layout}
    judged, known = dict(samples), dict[str, RubricFacts]()
    for name in names:
        rubric = load_rubric(name)
        tasks = tuple(task for task, listed in rubrics.items() if name in listed)
        questions = questions_of(judged, tasks, rubric)
        verdicts = {
            judge: Verdicts(
                {
                    question.name: _verdict(given.get(question.document["sample_id"], ()), rubric, question.document)
                    for question in questions
                }
            )
        }
        responses = combined_responses(rubric, "majority", questions, verdicts)
        facts = rubric_facts(
            rubric,
            tasks,
            {judge: described},
            responses,
            verdicts,
            rule="majority",
            threshold=COVERAGE,
            warnings=() if warning is None else (warning,),
        )
        hashes = {"rubric_hash": IMPORTED, "template_hash": IMPORTED, "judge_hash": imported_hash(rubric, described)}
        known[name] = facts.model_copy(update=hashes)
        judged = with_verdicts(judged, responses, known, known[name])
    return judged, known


def _verdict(given: Sequence[Prediction], rubric: Rubric, document: Mapping[str, Any]) -> Verdict:
    """The verdict in the rows of a sample, or why there is none."""
    readings = [parse_verdict(json.dumps(one.verdict), rubric, document) for one in given if one.verdict is not None]
    valid = [reading for reading in readings if isinstance(reading, Verdict)]
    if not valid:
        return Verdict(unjudged="the file has no valid verdict" if readings else "the file has no verdict")
    if any(one.scores != valid[0].scores for one in valid):
        return Verdict(unjudged="the file has contradicting verdicts")
    return Verdict(scores=valid[0].scores, reasons=valid[0].reasons)
