"""Verdicts that came with predictions: taken over as those of the judge that the user names, never as ours."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.benchmarks.base import FAILED
from medtasks.errors import UsageError
from medtasks.files import canonical_json, short_hash
from medtasks.judge.families import same_family
from medtasks.judge.rubric import load_rubric, rubric_hash
from medtasks.judge.scales import Rubric
from medtasks.judge.verdict import Verdict, parse_verdict
from medtasks.results.foreign import Prediction
from medtasks.results.judged import is_asked, judged_document, text_hash, with_judged_scores
from medtasks.results.manifest import RubricFacts
from medtasks.results.samples import JudgedResponse, JudgeEntry, Sample
from medtasks.results.scoring import COVERAGE
from medtasks.spec import load_spec

IMPORTED = "imported"
"""In place of the hashes of rubric and template: the judge's prompt is not known."""


def with_verdicts(
    samples: Mapping[str, Sequence[Sample]],
    given: Mapping[str, Sequence[Prediction]],
    judge: str,
    layout: str,
    *,
    model: str,
) -> tuple[dict[str, list[Sample]], dict[str, RubricFacts]]:
    """``samples`` with the verdicts of their predictions, scored by each task's first rubric; facts for the manifest.

    The judge's identity is its name and that it was imported, so these scores are comparable with no verdict of ours.
    A verdict that lacks an aspect, or that another row of the same sample contradicts, is none: it is counted.

    Raises:
        UsageError: no task is judged, or no prediction has a verdict.
    """
    named = {task: load_spec(task).metadata.rubrics[:1] for task in samples}
    rubrics = {name: load_rubric(name) for names in named.values() for name in names}
    if not rubrics:
        raise UsageError(f"no task of {', '.join(samples)} is judged; leave --verdicts-of out.")
    if not any(one.verdict for several in given.values() for one in several):
        raise UsageError("no prediction of the file has a verdict (`eval_json`); leave --verdicts-of out.")
    facts: dict[str, RubricFacts] = {}
    told = {task: list(members) for task, members in samples.items()}
    for name, rubric in rubrics.items():
        tasks = tuple(task for task, names in named.items() if name in names)
        unjudged: Counter[str] = Counter()
        asked = 0
        for task in tasks:
            responses = [_response(task, sample, rubric, given, judge) for sample in told[task]]
            asked += sum(bool(one.judges) for one in responses)
            unjudged.update(entry.unjudged for one in responses for entry in one.judges.values() if entry.unjudged)
            told[task] = [
                sample.model_copy(update={"verdicts": {**sample.verdicts, name: (one,)}})
                for sample, one in zip(told[task], responses, strict=True)
            ]
        facts[name] = _facts(rubric, tasks, judge, layout, asked, unjudged, same_family(judge, model))
    return {task: with_judged_scores(load_spec(task), members, facts) for task, members in told.items()}, facts


def _response(
    task: str, sample: Sample, rubric: Rubric, given: Mapping[str, Sequence[Prediction]], judge: str
) -> JudgedResponse:
    text = text_hash(sample.filtered)
    document = judged_document(sample)
    if sample.status == FAILED or not is_asked(load_spec(task), rubric.name, document, sample.filtered):
        return JudgedResponse(text=text)
    found = _verdict([one.verdict for one in given.get(sample.sample_id, ())], rubric, document)
    if isinstance(found, str):
        entry = JudgeEntry(key=None, unjudged=found)
        return JudgedResponse(text=text, judges={judge: entry}, open={"(all)": f"{judge}: {found}"})
    entry = JudgeEntry(key=None, scores=dict(found.scores), reasons=dict(found.reasons))
    return JudgedResponse(text=text, judges={judge: entry})


def _verdict(given: Sequence[Mapping[str, Any] | None], rubric: Rubric, document: Mapping[str, Any]) -> Verdict | str:
    """The one verdict that the rows of a sample hold, or why there is none."""
    verdicts = [parse_verdict(json.dumps(one), rubric, document) for one in given if one is not None]
    valid = [one for one in verdicts if isinstance(one, Verdict)]
    if not valid:
        return "the file holds no valid verdict" if verdicts else "the file holds no verdict"
    if any(one.scores != valid[0].scores for one in valid):
        return "the file holds contradicting verdicts"
    return valid[0]


def _facts(
    rubric: Rubric,
    tasks: tuple[str, ...],
    judge: str,
    layout: str,
    asked: int,
    unjudged: Counter[str],
    warning: str | None,
) -> RubricFacts:
    identity = {"model": judge, IMPORTED: layout}
    content = canonical_json([IMPORTED, rubric_hash(rubric), identity])
    return RubricFacts(
        rubric=rubric,
        rubric_hash=IMPORTED,
        template_hash=IMPORTED,
        tasks=tasks,
        judges={judge: identity},
        combine="majority",
        judge_hash=short_hash(content),
        threshold=COVERAGE,
        asked=asked,
        judged=asked - unjudged.total(),
        unjudged=dict(sorted(unjudged.items())),
        warnings=() if warning is None else (warning,),
    )
