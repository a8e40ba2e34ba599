"""Which answers of a run people can rate under a rubric, and how its judge scored each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric
from medtasks.catalog.spec import load_spec
from medtasks.catalog.statuses import FAILED
from medtasks.core.errors import DataError
from medtasks.core.files import short_hash
from medtasks.judge.rating_sample import RatableAnswer
from medtasks.runs.manifest import RunManifest
from medtasks.runs.samples import Sample
from medtasks.scoring.rubric_scorer import judged_responses

UNJUDGED = "unjudged"
"""The class of answers without a verdict of the run's judge."""
UNDECIDED = "undecided"
"""The class of answers whose judges disagree, or left an aspect open."""
_CLASSES = ((1 / 3, "low"), (2 / 3, "middle"))
"""The classes of scores below these shares of the best one; all higher ones are ``high``."""


@dataclass
class Ratable:
    """Answers that can be rated, and how many cannot, by reason."""

    answers: list[RatableAnswer] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def rated_text(sample: Sample) -> str:
    """The text of an answer that people rate, which is what judges see: the filtered response.

    If the question was repeated, it is that of the first response.
    """
    return judged_responses(sample)[0]


def tasks_under(rubric: Rubric, tasks: Iterable[str]) -> list[str]:
    """The tasks that can be rated under a rubric: those that name it, and those of its
    benchmarks.
    """
    names = []
    for task in tasks:
        facts = load_spec(task).metadata
        if rubric.name in facts.rubrics or facts.benchmark in rubric.benchmarks:
            names.append(task)
    return names


def ratable_answers(
    manifest: RunManifest, model: str, samples: Mapping[str, Iterable[Sample]], rubric: Rubric
) -> Ratable:
    """The answers of a run that can be rated under ``rubric``.

    Answers about which no judge would be asked, and empty ones, are left out: the benchmark's rules
    score them.

    Args:
        manifest: that of the run.
        model: the name of the model.
        samples: the samples of the tasks to rate, by task, with the judge's scores if there are
            any.
        rubric: what they are rated under.
    """
    ratable = Ratable()
    for task in tasks_under(rubric, samples):
        for sample in samples[task]:
            reason = _why_left_out(sample, rubric)
            if reason:
                ratable.left_out[reason] += 1
                continue
            answer = RatableAnswer(
                run=manifest.identity,
                model=model,
                task=task,
                sample_id=sample.sample_id,
                response_hash=short_hash(rated_text(sample)),
                verdict=verdict_class(sample, rubric),
            )
            ratable.answers.append(answer)
    return ratable


def _why_left_out(sample: Sample, rubric: Rubric) -> str:
    """Why an answer cannot be rated; empty if it can be."""
    if sample.status == FAILED:
        return "the request failed"
    text = rated_text(sample)
    if not text.strip():
        return "the response is empty"
    document = sample.whole_document()
    is_asked = load_spec(sample.task).benchmark.scoring.to_judge.get(rubric.name)
    if is_asked is not None and not is_asked(document, text):
        return "the rubric does not apply to it (for example, to an abstention)"
    try:
        aspects_of(rubric, document)
    except DataError:
        return "its document does not fit the rubric"
    return ""


def verdict_class(sample: Sample, rubric: Rubric) -> str:
    """The judge's class of an answer, by the rubric's first metric.

    It is ``low``, ``middle`` or ``high`` for the three thirds of the scale, or one of `UNJUDGED`
    and `UNDECIDED`.
    """
    metric = next(iter(rubric.metrics))
    score = sample.judged.get(metric)
    if score is None or score.judge is None:
        return UNJUDGED
    lowest, highest = score.repeats[0] if score.repeats else score.limits
    if lowest != highest:
        return UNDECIDED
    total, weight = lowest
    if not weight:
        return UNJUDGED
    share = total / weight / rubric.best
    for limit, name in _CLASSES:
        if share < limit:
            return name
    return "high"
