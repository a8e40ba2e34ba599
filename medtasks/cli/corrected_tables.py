"""The tables of a run's scores corrected by people, and of the judges' agreement with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from medtasks.cli.console import table, write
from medtasks.core.text import grouped_notes, printable

if TYPE_CHECKING:
    from medtasks.judge.corrected_scores import CorrectedRun, CorrectedScore
    from medtasks.runs.agreement_report import AgreementReport

_SCORES_NOTE = (
    "corrected: what people would give to all answers (prediction-powered inference). The judged "
    "score stays the headline."
)
_WORTH_NOTE = "worth: how many labels would give an interval as narrow without the judge."


def show_corrected(corrected: CorrectedRun) -> None:
    """A row for each corrected score, and why the others are not corrected."""
    rows = []
    notes: list[tuple[str, str]] = []
    for name, by_metric in corrected.scores.items():
        reasons = {score.reason for score in by_metric.values()}
        for metric, score in by_metric.items():
            if score.value is not None:
                rows.append((name, metric, *_score_cells(metric, score)))
            elif len(reasons) > 1:
                notes.append((f"not corrected: {score.reason}", f"{name} {metric}"))
        if len(reasons) == 1 and None not in reasons:
            notes.append((f"not corrected: {reasons.pop()}", name))
    columns = (
        "task", "metric", "judged", "corrected", "95 % interval", "labels", "cannot tell",
        "clusters", "worth",
    )  # fmt: skip
    if rows:
        table(columns, rows, title="\nCorrected by people")
        write(f"  {_SCORES_NOTE}", f"  {_WORTH_NOTE}")
    write(*grouped_notes(notes))
    write(*(f"  {printable(note)}" for note in corrected.notes))
    for rubric, agreement in corrected.agreement.items():
        show_agreement(rubric, agreement)


def show_agreement(rubric: str, agreement: AgreementReport) -> None:
    """A table of the raters who share units."""
    from medtasks.judge.agreement import COLUMNS, rows

    with_units = [row for row in rows(agreement) if row[COLUMNS.index("units")] != "0"]
    if with_units:
        table(COLUMNS, with_units, title=f"\n{rubric}: agreement")


def _score_cells(metric: str, score: CorrectedScore) -> tuple[str, ...]:
    """The numbers of a corrected score as text."""
    digits = _digits(metric)
    low, high = score.interval or (0.0, 0.0)
    return (
        f"{score.judged:.{digits}f}",
        f"{score.value:.{digits}f}",
        f"{low:.{digits}f} to {high:.{digits}f}",
        f"{score.labels:,} of {score.answers:,}",
        f"{score.cannot_tell:,}",
        f"{score.clusters:,}",
        f"{score.effective_labels:,.0f}",
    )


def _digits(metric: str) -> int:
    """How many decimals the scores of a metric have."""
    from medtasks.metrics.registry import unit_of

    return 1 if unit_of(metric) == "points" else 3
