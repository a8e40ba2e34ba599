"""The comparison of two runs in scores corrected by people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from medtasks.core.errors import UsageError
from medtasks.core.text import TextTable, grouped_notes, p_text, signed_interval
from medtasks.judge.corrected_differences import CorrectedPair, corrected_differences
from medtasks.judge.corrected_scores import corrected_run
from medtasks.judge.label_sources import require_named_runs
from medtasks.metrics.registry import unit_of

from ..verify.scored_run import ScoredRun
from .comparison import DIGITS, Comparison, signed_number

COLUMNS = (
    "task",
    "metric",
    "A",
    "B",
    "A - B",
    "95 % interval",
    "p",
    "p (Holm)",
    "labels A, B",
    "items",
    "clusters",
)
_METHOD = (
    "Corrected: what people would give to all answers (prediction-powered inference); intervals "
    "and p are by Student's t, with the clusters of both runs paired."
)


def with_corrected(
    comparison: Comparison,
    runs: tuple[ScoredRun, ScoredRun],
    human: Path,
    *,
    task: str | None = None,
    metric: str | None = None,
) -> Comparison:
    """The comparison of two ``runs`` with their differences corrected by the labels in ``human``.

    Args:
        comparison: that of these runs.
        runs: the runs with their samples.
        human: as for `medtasks.judge.corrected_scores.corrected_run`.
        task: only this task or group.
        metric: only this metric.

    Raises:
        UsageError: the labels do not say which run they are about, are about none of the two, are
            no probability sample, or a run was not judged under their rubric.
        DataError: they cannot be read.
    """
    require_named_runs(human)
    first, second = (corrected_run(run.record, human) for run in runs)
    pairs = corrected_differences(first, second, task=task, metric=metric)
    notes = []
    for side, corrected in (("A", first), ("B", second)):
        notes += [f"{side}: {note}" for note in corrected.notes]
    if not pairs:
        reasons = "; ".join(notes) or "no judged score of both runs is labelled"
        raise UsageError(
            f"{human}: corrects no difference ({reasons}); label answers of both runs."
        )
    return replace(comparison, corrected=pairs, corrected_notes=tuple(notes))


def corrected_table(pairs: Sequence[CorrectedPair], notes: Sequence[str]) -> TextTable:
    """The corrected differences as ``medtasks compare --human`` prints them."""
    rows = []
    reasons: list[tuple[str, str]] = []
    for pair in pairs:
        if pair.difference is None:
            reasons.append((f"not corrected: {pair.reason}", f"{pair.task} {pair.metric}"))
            continue
        unit = unit_of(pair.metric)
        first_labels, second_labels = pair.labels
        rows.append(
            (
                pair.task,
                pair.metric,
                signed_number(pair.first, unit),
                signed_number(pair.second, unit),
                signed_number(pair.difference, unit, "+"),
                signed_interval(pair.interval, DIGITS[unit]),
                p_text(pair.p_value),
                p_text(pair.p_holm),
                f"{first_labels:,}, {second_labels:,}",
                f"{pair.answers:,}",
                f"{pair.clusters:,}",
            )
        )
    below = [f"  {_METHOD}", *grouped_notes(reasons), *(f"  {note}" for note in notes)]
    return TextTable(COLUMNS, rows, "Corrected by people", below)
