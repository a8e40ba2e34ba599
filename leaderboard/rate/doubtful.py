"""The questions whose gold answers people check: rows of a CSV file with the columns ``task``,
``sample_id`` and ``reasons``, as ``medtasks audit`` writes it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Set
from dataclasses import dataclass, field
from pathlib import Path

from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.csv_rows import read_csv_rows
from medtasks.judge.ratable import rated_text
from medtasks.judge.rating_records import AnswerKey, DrawnAnswer
from medtasks.judge.rating_sample import RatableAnswer
from medtasks.runs.samples import Sample

from ..verify.question_content import content_hash
from .asked import Asked, asked_question
from .rated_runs import RunsToRate, RunToRate

LISTED = "listed"
"""In place of a verdict, in the strata of questions."""
UNLISTED = "It is not listed any more."
"""In place of the reasons for a question that was listed when a rater began."""
ABSENT = "the question is not in these results"
"""Why a question of the list cannot be shown."""
_COLUMNS = ("task", "sample_id", "reasons")


@dataclass
class _Question:
    """A listed question: why, the sample of the first run that has it, and all runs' answers."""

    reasons: str
    sample: Sample | None = None
    run: RunToRate | None = None
    readings: Counter[str] = field(default_factory=Counter)


class DoubtfulQuestions:
    """The questions in the CSV file ``path``, with the answers of the runs.

    Raises:
        DataError: the file cannot be read, lacks a column, has a question twice, or none of its
            questions is in the results; the message names file and line.
    """

    def __init__(self, path: Path, runs: RunsToRate) -> None:
        self._runs = runs
        self._questions = _read(path)
        self._find(self._questions)
        self.absent = 0
        for question in self._questions.values():
            self.absent += question.sample is None
        if self.absent == len(self._questions):
            raise DataError(
                f"{path}: none of its {len(self._questions):,} questions is in the given results; "
                "give the results that it was made from."
            )

    def include(self, answers: Iterable[DrawnAnswer], path: Path) -> None:
        """Add the questions of the plan in the file ``path``, as far as they are not listed.

        Raises:
            DataError: a question of the plan has changed, or is not in the results.
        """
        unlisted = {}
        for answer in answers:
            if answer.key not in self._questions:
                unlisted[answer.key] = _Question(UNLISTED)
        self._questions |= unlisted
        self._find(unlisted)
        for answer in answers:
            sample = self._questions[answer.key].sample
            if sample is None or content_hash(sample) != answer.response_hash:
                raise DataError(
                    f"{path}: the question or the gold answer of sample {shown(answer.sample_id)} "
                    f"of {answer.task} has changed, or the sample is not in the given results; "
                    "give the results of then, or another --rater."
                )

    def _find(self, keys: Collection[AnswerKey]) -> None:
        """Find the samples of questions in the runs."""
        for run in self._runs:
            for task in run.tasks:
                ids = {key.sample_id for key in keys if key.task == task}
                if ids:
                    self._add_answers(run, task, ids)

    def _add_answers(self, run: RunToRate, task: str, ids: Set[str]) -> None:
        """Add the answers of a run to the questions of a task with these sample ids."""
        for sample in run.samples.answers(task).samples:
            if sample.sample_id not in ids:
                continue
            question = self._questions[AnswerKey("", task, sample.sample_id)]
            if question.sample is None:
                question.sample, question.run = sample, run
            if sample.failure is None:
                question.readings[rated_text(sample).strip() or "(empty)"] += 1

    @property
    def population(self) -> list[RatableAnswer]:
        """All questions that are in the results, as a draw takes them."""
        questions = []
        for key, question in self._questions.items():
            if question.sample is not None:
                content = content_hash(question.sample)
                questions.append(
                    RatableAnswer("", "", key.task, key.sample_id, content, verdict=LISTED)
                )
        return questions

    def asked(self, key: AnswerKey) -> Asked:
        """The page's question about the gold answer of a question that is in the results."""
        question = self._questions[key]
        assert question.sample is not None
        assert question.run is not None
        return asked_question(
            question.sample, question.run.manifest, question.reasons, question.readings
        )


def _read(path: Path) -> dict[AnswerKey, _Question]:
    """The questions of the file by task and sample id."""
    rows = read_csv_rows(path)
    header = rows[0].row
    if not set(_COLUMNS) <= header.keys():
        names = first_names([shown(name) for name in header], 12)
        raise DataError(
            f"{path}, line 1: the header has {names}, expected `task`, `sample_id` and `reasons`; "
            "give a file that `medtasks audit` wrote."
        )
    questions: dict[AnswerKey, _Question] = {}
    for where, row in rows:
        key = AnswerKey("", row["task"].strip(), row["sample_id"].strip())
        if key in questions:
            raise DataError(
                f"{where}: sample {shown(key.sample_id)} of {shown(key.task)} is listed twice, "
                "expected once; remove a row."
            )
        questions[key] = _Question(row["reasons"].strip())
    return questions
