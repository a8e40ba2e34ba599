"""Submitted verdicts, compared with those that a judge gives now on a random sample."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random

from pydantic import TypeAdapter, ValidationError

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Aspect
from medtasks.core.errors import DataError, reading
from medtasks.core.schema import Frozen, first_problem
from medtasks.core.strict_json import require_distinct_keys
from medtasks.judge.agreement import agreement_report
from medtasks.judge.judge_run import judge_all
from medtasks.judge.judged import Judged
from medtasks.judge.judging_report import Progress
from medtasks.judge.settings import JudgeConfig
from medtasks.runs.agreement_report import AgreementReport
from medtasks.runs.manifest import RubricFacts
from medtasks.runs.samples import JudgedResponse, Sample
from medtasks.scoring.judge_identity import judges_of
from medtasks.scoring.panels import combine

from .scored_run import ScoredRun

AGREEMENT = 0.9
"""Share of equal scores below which a submission check warns: judges at temperature 0 vary, too."""


class Rejudged(Frozen):
    """How far a run's verdicts under one rubric agree with those given again.

    ``run`` is the SHA-256 of the run, ``judge`` are the models that were asked, on ``date`` in
    UTC; ``same_judge`` says whether they, with their settings, are the run's. ``share`` is that of
    the judged samples of each task, ``samples`` their number. ``scores`` counts the scores of
    aspects that both verdicts have, ``unanswered`` those that were not given again.
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
        """The outcome as a line of a report."""
        samples = f"{self.samples:,} samples ({self.share:.0%}, seed {self.seed})"
        judge = self.judge
        if not self.same_judge:
            judge += ", another judge than the run's"
        equal = f"{self.equal:,} of {self.scores:,} scores equal"
        if self.scores:
            equal += f" ({self.equal / self.scores:.1%})"
        if self.unanswered:
            equal += f", {self.unanswered:,} not given again"
        return f"{samples} asked again of {judge}, on {self.date}: {equal}"


Chosen = Mapping[str, list[Sample]]
"""Samples by task."""


def rejudge(
    run: ScoredRun, config: JudgeConfig, share: float, seed: int, progress: Progress | None = None
) -> Iterator[Rejudged]:
    """Ask judges again about a random sample of a run's verdicts, rubric by rubric.

    No verdict is taken from or put into the user's store: it may have those of the submitter.

    Args:
        run: a run with its samples; tasks without responses are left out.
        config: the judges to ask.
        share: of the judged samples of each task, at least one.
        seed: of the random choice; a submitter must not know it before.
        progress: as of `judge_all`.

    Raises:
        MedtasksError: the judges cannot be asked.
    """
    random = Random(seed)
    for name in sorted(run.manifest.judge):
        chosen = _random_samples(run, name, share, random)
        if chosen:
            again = _ask_again(run, name, chosen, config, progress)
            yield _compared(run, name, chosen, again, share, seed)


def _compared(
    run: ScoredRun, rubric: str, chosen: Chosen, again: Judged, share: float, seed: int
) -> Rejudged:
    """How far the verdicts of ``again`` agree with the run's on the samples ``chosen``."""
    facts, new_facts = run.manifest.judge[rubric], again.facts[rubric]
    before = _panel_scores(chosen, facts)
    after = _panel_scores(again.samples, new_facts)
    counts = _agreement_counts(before.scores, after.scores)
    by_round = {"submitted": before.scores, "again": after.scores}
    return Rejudged(
        run=run.digest,
        folder=run.public.folder,
        rubric=rubric,
        judge=judges_of(new_facts),
        same_judge=facts.judge_hash == new_facts.judge_hash,
        date=datetime.now(timezone.utc).date().isoformat(),
        share=share,
        seed=seed,
        samples=sum(map(len, chosen.values())),
        scores=counts["compared"],
        equal=counts["equal"],
        unanswered=counts["unanswered"],
        agreement=agreement_report(facts.rubric, by_round, before.clusters),
    )


def _random_samples(
    run: ScoredRun, rubric: str, share: float, random: Random
) -> dict[str, list[Sample]]:
    """A share of the judged samples of each task with responses."""
    chosen: dict[str, list[Sample]] = {}
    for task in run.manifest.judge[rubric].tasks:
        if task not in run.samples or run.verification[task].claimed:
            continue
        judged = [sample for sample in run.samples[task] if _is_judged(sample, rubric)]
        if judged:
            chosen[task] = random.sample(judged, ceil(Fraction(str(share)) * len(judged)))
    return chosen


def _is_judged(sample: Sample, rubric: str) -> bool:
    """Whether a judge answered about one of the sample's responses."""
    return any(verdict.judges for verdict in sample.verdicts.get(rubric, ()))


def _ask_again(
    run: ScoredRun,
    rubric: str,
    chosen: Chosen,
    config: JudgeConfig,
    progress: Progress | None,
) -> Judged:
    """The samples with new verdicts.

    Raises:
        MedtasksError: the judges cannot be asked.
    """
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "verdicts.sqlite"
        fresh = config.model_copy(update={"rubrics": (rubric,), "store": store})
        unjudged = run.manifest.model_copy(update={"judge": {}})
        again = judge_all(chosen, fresh, unjudged, progress=progress)
    if again.error is not None:
        raise again.error
    return again


def _agreement_counts(
    before: Mapping[str, Mapping[str, float]], after: Mapping[str, Mapping[str, float]]
) -> Counter[str]:
    """How many scores both verdicts have, how many of these are equal, and how many one lacks."""
    counts: Counter[str] = Counter()
    for response, aspects in before.items():
        for aspect, score in aspects.items():
            new_score = after[response].get(aspect)
            counts["unanswered"] += new_score is None
            counts["compared"] += new_score is not None
            counts["equal"] += new_score == score
    return counts


@dataclass(frozen=True)
class _PanelScores:
    """A panel's scores by response and aspect, and the cluster of each response."""

    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    clusters: dict[str, str] = field(default_factory=dict)


def _panel_scores(samples: Chosen, facts: RubricFacts) -> _PanelScores:
    """The scores of the panel under a rubric, without those that are undecided."""
    panel_scores = _PanelScores()
    for task, task_samples in samples.items():
        for sample in task_samples:
            for number, verdict in enumerate(sample.verdicts[facts.rubric.name]):
                if verdict.judges:
                    response = f"{task}/{sample.sample_id}#{number}"
                    panel_scores.scores[response] = _combined_scores(sample, verdict, facts)
                    panel_scores.clusters[response] = sample.cluster
    return panel_scores


def _combined_scores(
    sample: Sample, verdict: JudgedResponse, facts: RubricFacts
) -> dict[str, float]:
    """The panel's score of one response in each aspect, without those that are undecided."""
    by_judge = {}
    for judge in facts.judges:
        if judge in verdict.judges:
            by_judge[judge] = verdict.judges[judge].scores
    aspects: Sequence[Aspect] = ()
    if any(by_judge.values()):
        aspects = aspects_of(facts.rubric, sample.whole_document())
    scores, _ = combine(by_judge, aspects, facts.combine)
    return scores


REJUDGED = TypeAdapter(list[Rejudged])
"""The file that ``medtasks leaderboard check --rejudged`` writes."""


def read_rejudged(path: Path) -> list[Rejudged]:
    """The records in a file that ``medtasks leaderboard check --rejudged`` wrote.

    Raises:
        DataError: the file cannot be read, or is not such a file.
    """
    with reading(path, "name another file"):
        content = path.read_bytes()
    try:
        require_distinct_keys(content)
        return REJUDGED.validate_json(content, strict=True)
    except ValidationError as error:
        fix = "name a file that `medtasks leaderboard check --rejudged` wrote"
        raise DataError(f"{path}: {first_problem(error)}; {fix}.") from error
