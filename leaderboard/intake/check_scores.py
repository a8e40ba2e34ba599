"""The checks of a run's scores: judged, verified, and equal to those computed here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from medtasks.catalog.spec import load_spec
from medtasks.core.findings import Severity
from medtasks.core.text import counted, first_names
from medtasks.metrics.registry import learned_metric
from medtasks.runs.samples import Sample, lacks_texts
from medtasks.scoring.learned_scores import with_learned_metrics
from medtasks.scoring.run_record import Difference
from medtasks.scoring.scores import MetricScore, coverage_text

from ..verify.coverage import is_incomplete
from .rules import MOST, OF_DATA, RULES
from .shown_layouts import layout_of
from .submission import Submission
from .submission_findings import SubmissionFinding, problem

_TOLERANCE = 1e-3
"""A learned score depends a little on the others in its batch."""


class LearnedDifference(NamedTuple):
    """A value of a learned metric in the field ``scores`` or ``statistics``, and what it is
    here.
    """

    field: str
    observed: str
    computed: str


def check_scores(run: Submission, learned: bool) -> Iterator[SubmissionFinding]:
    """Findings about scores of the run; with ``learned``, learned metrics are computed again."""
    yield from _unjudged_scores(run)
    yield from _unverified_samples(run)
    yield from _differing_fields(run)
    if learned:
        yield from _differing_learned_scores(run)


def _unjudged_scores(run: Submission) -> Iterator[SubmissionFinding]:
    """Scores that are not judged or have too few verdicts; an error for headline scores."""
    headline: set[tuple[str, str]] = set()
    for facts in run.tasks.values():
        layout = layout_of(facts.benchmark)
        headline.update((column.task, column.metric) for column in layout.headline)
    for name, entry in run.scored.entries.items():
        lacking: dict[tuple[str, Severity], list[str]] = {}
        for metric, score in entry.scores.metrics.items():
            if not _lacks_verdicts(score):
                continue
            severity: Severity = "error" if (name, metric) in headline else "warning"
            coverage = coverage_text(score.samples, None, score.judged)
            lacking.setdefault((coverage, severity), []).append(metric)
        for (coverage, severity), metrics in lacking.items():
            yield run.problem(
                "LB205",
                name,
                coverage,
                ", ".join(metrics),
                "scores.json",
                fix=f"run `medtasks judge {run.folder} --judge FILE`",
                severity=severity,
            )


def _lacks_verdicts(score: MetricScore) -> bool:
    """Whether a judged score has no value, or too few verdicts."""
    if score.judged is None or not score.samples:
        return False
    return score.value is None or is_incomplete(score)


def _unverified_samples(run: Submission) -> Iterator[SubmissionFinding]:
    """What verification refused, and what it could not verify, other than stripped tasks."""
    unverifiable: dict[str, list[str]] = {}
    for task, verification in run.scored.verification.items():
        samples, file = run.samples[task], f"samples/{task}.jsonl"
        if verification.outcome == "unverifiable" and not lacks_texts(samples):
            unverifiable.setdefault(verification.reason, []).append(task)
        named = verification.other_prompts[:MOST]
        for line, sample in enumerate(samples, start=1):
            if sample.sample_id in named:
                where = f"{task}: {sample.sample_id}"
                yield run.problem(
                    "LB403", where, "another prompt", file=file, line=line, field="prompt"
                )
        if verification.outcome == "refused" and verification.strangers:
            yield run.problem("LB401", task, verification.reason, file=file)
    for why, tasks in sorted(unverifiable.items()):
        observed = f"{first_names(tasks, MOST)} cannot be verified here ({why})"
        yield run.problem("LB402", run.name, observed)


def _differing_fields(run: Submission) -> Iterator[SubmissionFinding]:
    """Fields of samples that are not what is computed here.

    No code reads them, but whoever opens the files does.
    """
    by_field: dict[str, list[Difference]] = {}
    for difference in run.scored.record.differences:
        by_field.setdefault(difference.field, []).append(difference)
    for field, differences in by_field.items():
        first = differences[0]
        code = "LB404" if field.partition(".")[0] in OF_DATA else "LB405"
        observed = first.found or "nothing"
        samples = sum(difference.samples for difference in differences)
        if samples > 1:
            tasks = counted(len(differences), "task")
            observed += f" (of {samples:,} samples that differ, in {tasks})"
        yield run.problem(
            code,
            f"{first.task}: {first.first}",
            observed,
            field,
            f"samples/{first.task}.jsonl",
            line=_line_of(run.samples[first.task], first.first),
            expected=f"{first.expected or 'nothing'}, {RULES[code].expected}",
        )


def _line_of(samples: Sequence[Sample], sample_id: str) -> int:
    """The number of the sample's line, from 1."""
    for line, sample in enumerate(samples, start=1):
        if sample.sample_id == sample_id:
            return line
    raise LookupError(sample_id)


def _differing_learned_scores(run: Submission) -> Iterator[SubmissionFinding]:
    """The learned metrics of the run's responses, computed again and compared."""
    for task in run.scored.verification:
        spec, samples = load_spec(task), run.samples[task]
        if not spec.learned or lacks_texts(samples):
            continue
        problems: list[str] = []
        again = with_learned_metrics(spec, samples, problems)
        for text in problems:
            yield problem("LB107", task, text.rstrip("."))
        for metric in spec.learned:
            yield from _learned_metric(run, task, metric, again)


def _learned_metric(
    run: Submission, task: str, metric: str, again: Sequence[Sample]
) -> Iterator[SubmissionFinding]:
    """The finding about a learned metric that cannot be computed here, or differs."""
    samples, file = run.samples[task], f"samples/{task}.jsonl"
    submitted = [sample.scores.get(metric) for sample in samples]
    count = sum(score is not None for score in submitted)
    if count and learned_metric(metric).unavailable() is not None:
        observed = f"{counted(count, 'sample')} with a score that cannot be computed here"
        yield run.problem(
            "LB107", task, observed, f"scores.{metric}", file, expected="what it needs"
        )
        return
    for line, (sample, rescored) in enumerate(zip(samples, again, strict=True), start=1):
        difference = _learned_difference(sample, rescored, metric)
        if difference is not None:
            field, observed, computed = difference
            yield run.problem(
                "LB106",
                f"{task}: {sample.sample_id}",
                observed,
                f"{field}.{metric}",
                file,
                expected=f"{computed} as computed here",
                line=line,
            )
            return


def _learned_difference(sample: Sample, rescored: Sample, metric: str) -> LearnedDifference | None:
    """The first value of the metric that differs; None if what both samples have is equal."""
    score, computed = sample.scores.get(metric), rescored.scores.get(metric)
    if score is not None and computed is not None and abs(score - computed) > _TOLERANCE:
        return LearnedDifference("scores", f"{score:g}", f"{computed:g}")
    submitted = sample.statistics.get(metric, ())
    again = rescored.statistics.get(metric, ())
    if len(submitted) != len(again):  # one of them was not computed
        return None
    for number, computed_number in zip(submitted, again, strict=True):
        if abs(number - computed_number) > _TOLERANCE:
            return LearnedDifference("statistics", f"{number:g}", f"{computed_number:g}")
    return None
