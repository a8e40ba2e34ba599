"""``medtasks audit``: questions whose gold answer deserves a second look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import table, write, write_json
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json, Results
from medtasks.core.progress_bars import progress
from medtasks.core.replacement import replaced
from medtasks.core.text import counted, printable, shortened

if TYPE_CHECKING:
    from medtasks.leaderboard.audit.audit_report import (
        AuditReport,
        BenchmarkAudit,
        DoubtfulQuestion,
    )

app = typer.Typer()

SHOWN = 20
"""Most questions in the printed table."""
_LONGEST_REASON = 240
"""Most characters of a question's reasons in the table."""


@app.command("audit", cls=PlainCommand)
def audit(
    results: Results,
    csv_file: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            metavar="FILE",
            help="Write all questions to this file, for `medtasks rate --questions` and the "
            "benchmark's owner; without their texts if these may not be published.",
        ),
    ] = None,
    verdicts: Annotated[
        Path | None,
        typer.Option(
            help="Human verdicts on gold answers: ratings of `medtasks rate --questions`, or a "
            "CSV file with the columns task, sample_id and verdict."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List questions whose gold answer deserves a second look, with the reasons.

    Example:
        medtasks audit results --csv audit.csv
    """
    from medtasks.leaderboard.audit.audit_folders import audit_folders
    from medtasks.leaderboard.audit.question_file import question_csv, withheld_notes
    from medtasks.leaderboard.verify.gold_verdicts import read_verdicts

    found_by_people = None if verdicts is None else read_verdicts(verdicts)
    with progress("auditing") as bar:
        report = audit_folders(results, bar)
    if found_by_people is not None:
        report = report.with_verdicts(found_by_people)
    if csv_file is not None:
        with replaced(csv_file) as partial:
            partial.write_bytes(question_csv(report).encode("utf-8", "replace"))
    if as_json:
        write_json(_as_json(report))
        return
    _show(report)
    if csv_file is not None:
        write(f"{counted(len(report.questions), 'question')}: {csv_file}")
        write(*(f"  {printable(note)}" for note in withheld_notes(report)))


def _as_json(report: AuditReport) -> dict[str, object]:
    """The report as the command prints it."""
    questions = []
    for question in report.questions:
        verdict = None if question.verdict is None else question.verdict.majority
        added = {"strong": question.is_strong, "reasons": question.reasons, "verdict": verdict}
        ratings = {} if question.verdict is None else question.verdict.by_rater
        questions.append({**vars(question), **added, "ratings": ratings})
    return {"benchmarks": report.benchmarks, "questions": questions, "notes": report.notes}


def _show(report: AuditReport) -> None:
    """Print what was audited, the first questions, and how many there are."""
    from medtasks.leaderboard.audit.signs import SIGN_TITLES

    table(
        ("benchmark", "questions", "models", "independent models", "wrong gold answers", "listed"),
        [_benchmark_row(audit, report) for audit in report.benchmarks],
    )
    write("")
    if not report.questions:
        write("No question has a sign that its gold answer is wrong.")
    else:
        rows = [_question_row(question) for question in report.questions[:SHOWN]]
        table(("task", "sample", "P(wrong)", "people", "reasons"), rows)
        omitted = len(report.questions) - len(rows)
        if omitted:
            write(f"  and {omitted:,} more: --csv FILE has all")
        for kind, count in report.counts().items():
            strength = "" if kind.is_strong else " (weaker sign)"
            write(f"  {counted(count, 'question')}: {SIGN_TITLES[kind]}{strength}")
    for audit in report.benchmarks:
        if audit.expected_error_text:
            write(f"  {printable(f'{audit.title}: {audit.expected_error_text}')}")
        write(*(f"  {printable(f'{audit.title}: {note}')}" for note in audit.notes))
    write(*(f"  {printable(note)}" for note in report.notes))
    if report.questions:
        write(
            "  `medtasks view` shows them with pictures and answers (page Gold answers); "
            "`medtasks rate --questions` asks people"
        )


def _benchmark_row(audit: BenchmarkAudit, report: AuditReport) -> tuple[str, ...]:
    """What was audited of a benchmark."""
    doubtful = sum(question.benchmark == audit.benchmark for question in report.questions)
    independent = "" if audit.effective is None else f"{audit.effective:.1f}"
    rate = "" if audit.wrong_rate is None else f"{100 * audit.wrong_rate:.1f} % (estimate)"
    questions = f"{audit.closed:,} closed"
    if audit.open:
        questions += f", {audit.open:,} open"
    models = f"{len(audit.models)}"
    return audit.benchmark, questions, models, independent, rate, f"{doubtful:,}"


def _question_row(question: DoubtfulQuestion) -> tuple[str, ...]:
    """A doubtful question in the table."""
    return (
        question.task,
        question.sample_id,
        question.probability_text,
        "" if question.verdict is None else str(question.verdict),
        shortened(question.reasons, _LONGEST_REASON),
    )
