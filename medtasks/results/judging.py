"""Judging the samples of a run under one rubric, by one judge or several."""

from __future__ import annotations

import asyncio
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from medtasks.benchmarks.base import FAILED
from medtasks.benchmarks.documents import all_pictures
from medtasks.data.store import open_prepared
from medtasks.errors import MedtasksError, UsageError
from medtasks.files import canonical_json, short_hash
from medtasks.judge.adjudicate import adjudicate, all_or_none
from medtasks.judge.agreement import AgreementReport, agreement_report
from medtasks.judge.client import JudgeClient, Spent
from medtasks.judge.config import JudgeConfig
from medtasks.judge.ensemble import Rule, combine
from medtasks.judge.families import Families, same_family
from medtasks.judge.human import Unit
from medtasks.judge.images import ImageSource
from medtasks.judge.judgement import Adjudication, Judgement, Question
from medtasks.judge.rubric import aspects_of, rubric_hash
from medtasks.judge.scales import Rubric
from medtasks.judge.settings import judge_identity
from medtasks.judge.store import VerdictStore
from medtasks.prompts import template_hash
from medtasks.results.judge_problems import problems
from medtasks.results.judged import is_asked, judged_document, judged_responses, text_hash, with_judged_scores
from medtasks.results.manifest import RubricFacts
from medtasks.results.samples import JudgedResponse, JudgeEntry, Sample
from medtasks.spec import load_spec

Progress = Callable[[str, int, int, Spent, "str | None"], None]
"""Called with judge, questions done, all questions, what was spent, and why the judge does not answer at present."""

Ratings = Mapping[str, Mapping[Unit, Mapping[str, float]]]
"""Rater to task and sample id to aspect to score."""


@dataclass(frozen=True)
class Judging:
    """The run's samples with verdicts and scores, the facts for its manifest, and what was spent by judge.

    ``problems`` are lines for the user, from :func:`medtasks.results.judge_problems.problems`.
    """

    samples: dict[str, list[Sample]]
    facts: RubricFacts
    spent: dict[str, Spent]
    problems: tuple[str, ...]


class NothingJudged(MedtasksError):
    """Not one response was judged; ``attempt`` has the outcome of each."""

    def __init__(self, attempt: Judging) -> None:
        facts = attempt.facts
        sentences = [
            f"rubric {facts.rubric.name}: not one of {facts.asked:,} responses was judged ({_listed(facts.unjudged)})",
            *attempt.problems,
            "Nothing was changed, and answers that did come are kept in the verdict store",
        ]
        super().__init__(". ".join(one.rstrip(".") for one in sentences) + ".")
        self.attempt = attempt


@dataclass(frozen=True)
class _Case:
    """One response of one sample."""

    task: str
    sample: Sample
    number: int
    text: str

    @property
    def name(self) -> str:
        return f"{self.task}/{self.sample.sample_id}#{self.number}"


def judgeable_tasks(samples: Mapping[str, Sequence[Sample]], rubric: Rubric) -> tuple[str, ...]:
    """The tasks of a run that can be judged under ``rubric``: those that name it, or whose benchmark it names.

    Raises:
        UsageError: there is none.
    """
    named = {name: load_spec(name).metadata for name in samples}
    names = tuple(
        name for name, task in named.items() if rubric.name in task.rubrics or task.benchmark in rubric.benchmarks
    )
    if not names:
        raise UsageError(
            f"rubric {rubric.name} is for no task of this run ({', '.join(samples)}); a task names its rubrics in its "
            "metadata."
        )
    return names


def judge_samples(
    samples: Mapping[str, list[Sample]],
    rubric: Rubric,
    config: JudgeConfig,
    store: VerdictStore,
    clients: Mapping[str, JudgeClient],
    *,
    tasks: Sequence[str] | None,
    judged_names: Sequence[str],
    fingerprints: Mapping[str, str],
    known: Mapping[str, RubricFacts],
    labels: Ratings | None,
    families: Families | None,
    progress: Progress,
) -> Judging:
    """Judge every response of ``samples`` that is a question under ``rubric``; what is stored is not asked again.

    All judges are asked at the same time.

    Args:
        samples: of a run, by task; those of other tasks are returned unchanged.
        rubric, config, store: what is judged, who judges, where verdicts are stored.
        clients: of the judges in ``config``, in its order; their budgets are for all rubrics together.
        tasks: which to judge; None means all that can be judged under the rubric.
        judged_names: names of the model that answered, for the warning about judges of its family.
        fingerprints: of the samples' data, by benchmark; needed if judges are shown images.
        known: facts of other rubrics, whose scores stay.
        labels: human annotations, to compare the judges with.
        families: the table of families; None is the shipped one.
        progress: called on the way.

    Raises:
        UsageError: the rubric is for no task of the run.
        NothingJudged: not one response was judged; the message has the most frequent reasons, the first error and an
            answer.
        MedtasksError: images are to be shown, and the data prepared here are not those of the run.
    """
    tasks = judgeable_tasks(samples, rubric) if tasks is None else tuple(tasks)
    shown = {name: rubric.media and settings.images for name, settings in config.judges.items()}
    specs = {task: load_spec(task) for task in tasks}
    cases = [case for case in _cases(samples, tasks) if is_asked(specs[case.task], rubric.name, *_asked(case))]
    images = _images(cases, fingerprints) if any(shown.values()) else {}
    questions = [
        Question(case.name, judged_document(case.sample), case.text, images.get(case.name, ())) for case in cases
    ]
    found, spent = asyncio.run(_ask(questions, rubric, clients, store, progress))
    responses = _responses(rubric, config.combine, cases, found)
    facts = _facts(rubric, config, tasks, cases, found, responses, shown, judged_names, labels, families)
    everything = {**known, rubric.name: facts}
    judged: dict[str, list[Sample]] = {}
    for task, members in samples.items():
        judged[task] = members
        if task in tasks:
            renewed = [_with_verdicts(task, sample, rubric.name, responses) for sample in members]
            judged[task] = with_judged_scores(specs[task], renewed, everything)
    judging = Judging(judged, facts, spent, problems(found, config.judges, store))
    if cases and not any(one.verdicts for one in found.values()):
        raise NothingJudged(judging)
    return judging


def _cases(samples: Mapping[str, Sequence[Sample]], tasks: Sequence[str]) -> Iterator[_Case]:
    for task in tasks:
        for sample in samples[task]:
            for number, text in enumerate(() if sample.status == FAILED else judged_responses(sample)):
                yield _Case(task, sample, number, text)


def _asked(case: _Case) -> tuple[dict[str, Any], str]:
    return judged_document(case.sample), case.text


async def _ask(
    questions: Sequence[Question],
    rubric: Rubric,
    clients: Mapping[str, JudgeClient],
    store: VerdictStore,
    progress: Progress,
) -> tuple[dict[str, Adjudication], dict[str, Spent]]:
    asking = [
        adjudicate(questions, rubric, client, store, functools.partial(progress, name))
        for name, client in clients.items()
    ]
    found = dict(zip(clients, await all_or_none(asking), strict=True))
    return found, {name: one.spent for name, one in found.items()}


def _listed(reasons: Mapping[str, int]) -> str:
    return "; ".join(f"{count:,} × {reason}" for reason, count in Counter(reasons).most_common(3))


def _responses(
    rubric: Rubric, rule: Rule, cases: Sequence[_Case], found: Mapping[str, Adjudication]
) -> dict[str, JudgedResponse]:
    responses = {}
    for case in cases:
        judgements = {name: one.judgements[case.name] for name, one in found.items()}
        undecided = _undecided(rubric, rule, case, judgements)
        entries = {name: _entry(one) for name, one in judgements.items()}
        responses[case.name] = JudgedResponse(text=text_hash(case.text), judges=entries, open=undecided)
    return responses


def _undecided(rubric: Rubric, rule: Rule, case: _Case, judgements: Mapping[str, Judgement]) -> dict[str, str]:
    verdicts = {name: None if one.verdict is None else one.verdict.scores for name, one in judgements.items()}
    if not any(verdicts.values()):  # its document may be the reason, and then has no aspects
        return {"(all)": "; ".join(f"{name}: {one.reason}" for name, one in judgements.items())}
    return combine(verdicts, aspects_of(rubric, judged_document(case.sample)), rule).open


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


def _with_verdicts(task: str, sample: Sample, rubric: str, responses: Mapping[str, JudgedResponse]) -> Sample:
    """The sample with the verdicts on its responses; a response that is not judged has none."""
    cases = [_Case(task, sample, number, text) for number, text in enumerate(judged_responses(sample))]
    said = tuple(responses.get(case.name) or JudgedResponse(text=text_hash(case.text)) for case in cases)
    return sample.model_copy(update={"verdicts": {**sample.verdicts, rubric: said}})


def _facts(
    rubric: Rubric,
    config: JudgeConfig,
    tasks: tuple[str, ...],
    cases: Sequence[_Case],
    found: Mapping[str, Adjudication],
    responses: Mapping[str, JudgedResponse],
    shown: Mapping[str, bool],
    judged_names: Sequence[str],
    labels: Ratings | None,
    families: Families | None,
) -> RubricFacts:
    identities = {name: judge_identity(one, images=shown[name]) for name, one in config.judges.items()}
    warnings = [
        next(filter(None, (same_family(settings.model, name, families) for name in judged_names)), None)
        for settings in config.judges.values()
    ]
    by_key = {(one.key, name): one for name, many in found.items() for one in many.judgements.values()}
    unjudged = Counter(_why(found, case) for case in cases if responses[case.name].open)
    return RubricFacts(
        rubric=rubric,
        rubric_hash=rubric_hash(rubric),
        template_hash=template_hash(rubric.template),
        tasks=tasks,
        judges=identities,
        combine=config.combine,
        judge_hash=_judge_hash(rubric, identities, config.combine),
        threshold=config.threshold,
        asked=len(cases),
        judged=len(cases) - sum(unjudged.values()),
        unjudged=dict(sorted(unjudged.items())),
        repaired=sum(one.repaired for one in found.values()),
        extra_keys=sum(one.extra_keys for one in found.values()),
        prompt_tokens=sum(one.prompt_tokens for one in by_key.values()),
        completion_tokens=sum(one.completion_tokens for one in by_key.values()),
        warnings=tuple(sorted({warning for warning in warnings if warning is not None})),
        agreement=_agreement(rubric, cases, found, labels),
    )


def _judge_hash(rubric: Rubric, identities: Mapping[str, dict[str, Any]], rule: Rule) -> str:
    """Hash of everything that determines a panel's verdict; the judges' order and their names here do not count."""
    parts = [rubric_hash(rubric), sorted(canonical_json(one) for one in identities.values())]
    if len(identities) > 1:
        parts.append(rule)
    return short_hash(canonical_json(parts))


_SAMPLE = re.compile(r"^sample \S+: ")


def _kind(reason: str) -> str:
    """A reason without the part that differs between responses."""
    return _SAMPLE.sub("", reason)[:120] if _SAMPLE.match(reason) else reason.partition(":")[0]


def _why(found: Mapping[str, Adjudication], case: _Case) -> str:
    silent = {name: one.judgements[case.name].reason for name, one in found.items()}
    reasons = [(name, _kind(reason)) for name, reason in silent.items() if reason is not None]
    if not reasons:
        return "judges disagree"
    return "; ".join(f"{name}: {reason}" for name, reason in reasons) if len(found) > 1 else reasons[0][1]


def _agreement(
    rubric: Rubric, cases: Sequence[_Case], found: Mapping[str, Adjudication], labels: Ratings | None
) -> AgreementReport | None:
    """Agreement of the judges with each other and with human annotations; None for a single rater.

    Annotations are per sample: of repeated responses they are compared with the first.
    """
    units = {case.name: case.sample.cluster for case in cases}
    ratings: dict[str, dict[str, Mapping[str, float]]] = {
        name: {case: verdict.scores for case, verdict in one.verdicts.items()} for name, one in found.items()
    }
    if labels:
        first = {(case.task, case.sample.sample_id): case.name for case in cases if case.number == 0}
        for rater, scores in labels.items():
            name = rater if rater not in found else f"{rater} (labels)"
            ratings[name] = {first[unit]: given for unit, given in scores.items() if unit in first}
    return agreement_report(rubric, ratings, units) if len(ratings) > 1 else None


def _images(cases: Sequence[_Case], fingerprints: Mapping[str, str]) -> dict[str, tuple[ImageSource, ...]]:
    """The images that the model was shown, by case.

    Raises:
        MedtasksError: as :func:`judge_samples`.
    """
    benchmarks = {task: load_spec(task).metadata.benchmark for task in {case.task for case in cases}}
    for benchmark in sorted(set(benchmarks.values())):
        prepared = open_prepared(benchmark).manifest.fingerprint
        if prepared != fingerprints.get(benchmark):
            raise MedtasksError(
                f"{benchmark}: the data prepared here have fingerprint {prepared}, those of the run "
                f"{fingerprints.get(benchmark)}, so its images cannot be shown to a judge; prepare the same data, or "
                "judge without images."
            )
    return {
        case.name: shown_images(
            benchmarks[case.task], {**judged_document(case.sample), "media": list(case.sample.media)}
        )
        for case in cases
    }


def shown_images(benchmark: str, document: Mapping[str, Any]) -> tuple[ImageSource, ...]:
    """The images or frames of a document, for a judge that can see images; read when the request is sent.

    Raises:
        NotPreparedError: the benchmark is not prepared here.
    """
    fingerprint = open_prepared(benchmark).manifest.fingerprint
    frames = document.get("frames") or []
    names = [f"{document['media'][0]}@{frame}" for frame in frames] or document["media"]
    return tuple(
        ImageSource(hashlib.sha256(f"{fingerprint}/{name}".encode()).hexdigest(), _loader(document, position))
        for position, name in enumerate(names)
    )


def _loader(document: Mapping[str, Any], position: int) -> Callable[[], Any]:
    return lambda: all_pictures(document)[position]  # also in a blind run: its judge is not blind
