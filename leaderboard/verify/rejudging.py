"""Submitted verdicts, compared with those that a judge gives now on a random sample of the same
responses.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random

from pydantic import TypeAdapter, ValidationError

from medtasks.catalog.rubric import aspects_of
from medtasks.core.errors import DataError, reading
from medtasks.core.schema import Frozen, first_problem
from medtasks.core.strict_json import require_distinct_keys
from medtasks.judge.agreement import agreement_report
from medtasks.judge.judge_run import Progress, judge_all
from medtasks.judge.settings import JudgeConfig
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import Sample
from medtasks.scoring.judged_scores import judges_of
from medtasks.scoring.panels import combine

from .scored_run import ScoredRun

AGREEMENT = 0.9
"""Share of equal scores below which a submission check warns: judges at temperature 0 vary, too."""


class Rejudged(Frozen):
    """How far the verdicts under one rubric agree with those given again, of the run with the
    SHA-256 ``run``.

    ``judge`` are the models that were asked, on ``date`` in UTC; ``same_judge`` says whether they,
    with their settings, are the run's. ``share`` is that of the judged samples of each task,
    ``samples`` their number. ``scores`` counts the scores of aspects that both verdicts have,
    ``unanswered`` those that were not given again.
    """

    run: str
    folder: str
    rubric: str
    judge: str
    same_judge: bool
    date: str
    share: float
    seed: int
    samples: int
    scores: int
    equal: int
    unanswered: int
    agreement: AgreementReport

    def __str__(self) -> str:
        other = "" if self.same_judge else ", another judge than the run's"
        lacking = f", {self.unanswered:,} not given again" if self.unanswered else ""
        percent = f" ({self.equal / self.scores:.1%})" if self.scores else ""
        return (
            f"{self.samples:,} samples ({self.share:.0%}, seed {self.seed}) asked again of {self.judge}{other}, on "
            f"{self.date}: {self.equal:,} of {self.scores:,} scores equal{percent}{lacking}"
        )


def rejudge(
    run: ScoredRun, config: JudgeConfig, share: float, seed: int, progress: Progress | None = None
) -> Iterator[Rejudged]:
    """Ask ``config``'s judges again about a random sample of a run's verdicts, rubric by rubric.

    The run is one with its samples; tasks without responses are left out. ``share`` is that of the
    judged samples of each task, at least one; a submitter must not know the ``seed`` of their
    choice before. No verdict is taken from or put into the user's store: it may have those of the
    submitter.
    """
    manifest, random = run.manifest, Random(seed)
    responding = {
        task: found for task, found in run.samples.items() if not run.verification[task].claimed
    }
    for rubric, facts in sorted(manifest.judge.items()):
        chosen: dict[str, list[Sample]] = {}
        for task in (task for task in facts.tasks if task in responding):
            judged = [
                one
                for one in responding[task]
                if any(given.judges for given in one.verdicts.get(rubric, ()))
            ]
            if judged:
                chosen[task] = random.sample(judged, ceil(Fraction(str(share)) * len(judged)))
        if not chosen:
            continue
        with tempfile.TemporaryDirectory() as directory:
            fresh = config.model_copy(
                update={"rubrics": (rubric,), "store": Path(directory) / "verdicts.sqlite"}
            )
            again = judge_all(
                chosen, fresh, manifest.model_copy(update={"judge": {}}), progress=progress
            )
        if again.error is not None:
            raise again.error
        new = again.facts[rubric]
        (before, clusters), (after, _) = _scores(chosen, facts), _scores(again.samples, new)
        given = [
            (score, after[name].get(aspect))
            for name, one in before.items()
            for aspect, score in one.items()
        ]
        yield Rejudged(
            run=run.digest,
            folder=run.public.folder,
            rubric=rubric,
            judge=judges_of(new),
            same_judge=facts.judge_hash == new.judge_hash,
            date=datetime.now(timezone.utc).date().isoformat(),
            share=share,
            seed=seed,
            samples=sum(map(len, chosen.values())),
            scores=sum(other is not None for _, other in given),
            equal=sum(score == other for score, other in given),
            unanswered=sum(other is None for _, other in given),
            agreement=agreement_report(
                facts.rubric, {"submitted": before, "again": after}, clusters
            ),
        )


def _scores(
    samples: Mapping[str, Sequence[Sample]], facts: RubricFacts
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """The panel's scores by response and aspect, without those that are undecided, and the cluster
    of each response.
    """
    scores: dict[str, dict[str, float]] = {}
    clusters = {}
    for task, sample in ((task, one) for task, of_task in samples.items() for one in of_task):
        for number, response in enumerate(sample.verdicts[facts.rubric.name]):
            if response.judges:
                name = f"{task}/{sample.sample_id}#{number}"
                panel = {
                    judge: response.judges[judge].scores
                    for judge in facts.judges
                    if judge in response.judges
                }
                aspects = (
                    aspects_of(facts.rubric, sample.whole_document()) if any(panel.values()) else ()
                )
                scores[name], _ = combine(panel, aspects, facts.combine)
                clusters[name] = sample.cluster
    return scores, clusters


REJUDGED = TypeAdapter(list[Rejudged])
"""The file that ``medtasks leaderboard check --rejudged`` writes."""


def read_rejudged(path: Path) -> list[Rejudged]:
    """The records in such a file."""
    with reading(path, "name another file"):
        content = path.read_bytes()
    try:
        require_distinct_keys(content)
        return REJUDGED.validate_json(content, strict=True)
    except ValidationError as error:
        raise DataError(
            f"{path}: {first_problem(error)}; name a file that `medtasks leaderboard check --rejudged` wrote."
        ) from error
