"""Questions whose gold answer deserves a second look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from medtasks.core.text import TextTable
from medtasks.leaderboard.audit.answered_questions import AnsweredRun
from medtasks.leaderboard.audit.audit_folders import answered_run
from medtasks.leaderboard.audit.audit_report import (
    AuditReport,
    BenchmarkAudit,
    DoubtfulQuestion,
    audit_runs,
)
from medtasks.leaderboard.audit.question_file import question_csv
from medtasks.leaderboard.verify.gold_verdicts import read_verdicts
from medtasks.python_api.boards import AnyRuns, opened_runs
from medtasks.python_api.runs import Run


@dataclass(frozen=True)
class Audit:
    """The questions whose gold answer deserves a second look; a notebook shows them as a table."""

    report: AuditReport

    @property
    def questions(self) -> tuple[DoubtfulQuestion, ...]:
        """The questions, the most doubtful first: their signs in words (``reasons``), the
        probability that the gold answer is wrong, the models' votes, and what people said.
        """
        return self.report.questions

    @property
    def benchmarks(self) -> tuple[BenchmarkAudit, ...]:
        """What was audited of each benchmark: questions, models, how many independent models they
        are worth, and the estimated share of wrong gold answers.
        """
        return self.report.benchmarks

    @property
    def notes(self) -> list[str]:
        """What was left out, and why."""
        notes = []
        for audit in self.report.benchmarks:
            sentences = [audit.expected_error_text, *audit.notes]
            notes += [f"{audit.title}: {sentence}" for sentence in sentences if sentence]
        return [*notes, *self.report.notes]

    @property
    def table(self) -> TextTable:
        """The questions as text."""
        rows = []
        for question in self.questions:
            people = "" if question.verdict is None else str(question.verdict)
            rows.append(
                (
                    question.task,
                    question.sample_id,
                    question.probability_text,
                    people,
                    question.reasons,
                )
            )
        columns = ("task", "sample", "P(wrong)", "people", "reasons")
        return TextTable(columns, rows, "Gold answers that deserve a second look", self.notes)

    def csv(self) -> str:
        """The file that ``medtasks audit --csv`` writes: without texts where these may not be
        published.
        """
        return question_csv(self.report)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def audit(runs: AnyRuns, *, verdicts: str | Path | None = None) -> Audit:
    """The questions whose gold answer deserves a second look, as ``medtasks audit`` lists them.

    Args:
        runs: runs, or directories that contain some.
        verdicts: what people said of gold answers: ratings of ``medtasks rate --questions``, or a
            CSV file with ``task``, ``sample_id`` and ``verdict``.

    Raises:
        UsageError: there is no run, or no such file.
        MedtasksError: a run cannot be read.
    """
    found_by_people = None if verdicts is None else read_verdicts(Path(verdicts))
    answered = [_answered(run) for run in opened_runs(runs)]
    report = audit_runs(answered)
    if found_by_people is not None:
        report = report.with_verdicts(found_by_people)
    return Audit(report)


def _answered(run: Run) -> AnsweredRun:
    """The run with its samples."""
    if run.is_result_directory:
        assert run.path is not None
        return answered_run(run.scored, run.path)
    record = run._record
    assert record is not None
    return AnsweredRun(run.scored, record.samples.__getitem__)
