"""What people said of gold answers: right, wrong or ambiguous."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import shown
from medtasks.core.text import counted
from medtasks.data.csv_rows import read_csv_rows
from medtasks.judge.rating_file import is_rating_file, ratings_beside, read_ratings
from medtasks.judge.rating_records import GOLD, GOLD_CHOICES

WRONG = "wrong"
CANNOT_TELL = "cannot tell"
_COLUMNS = ("task", "sample_id", "verdict")
"""Required columns of a CSV file; ``rater`` is optional."""


class _Named(Protocol):
    """A question that is identified by its task and sample."""

    @property
    def task(self) -> str: ...
    @property
    def sample_id(self) -> str: ...


@dataclass(frozen=True)
class QuestionVerdict:
    """What each rater said of a question's gold answer, one of `GOLD_CHOICES` or `CANNOT_TELL`."""

    by_rater: Mapping[str, str]

    @property
    def decided(self) -> Mapping[str, int]:
        """How many raters chose each of `GOLD_CHOICES`."""
        return Counter(choice for choice in self.by_rater.values() if choice != CANNOT_TELL)

    @property
    def majority(self) -> str | None:
        """What most raters who could tell said; None without any, or if several are tied.

        >>> QuestionVerdict({"a": "wrong", "b": "wrong", "c": "right"}).majority
        'wrong'
        >>> QuestionVerdict({"a": "wrong", "b": "right"}).majority is None
        True
        """
        ordered = Counter(self.decided).most_common(2)
        if not ordered or (len(ordered) > 1 and ordered[0][1] == ordered[1][1]):
            return None
        return ordered[0][0]

    @property
    def is_disputed(self) -> bool:
        """Whether raters who could tell said different things."""
        return len(self.decided) > 1

    def __str__(self) -> str:
        """``wrong``, or with several raters ``wrong 2, right 1``."""
        counts = Counter(self.by_rater.values())
        if len(self.by_rater) == 1:
            return next(iter(counts))
        return ", ".join(f"{choice} {count}" for choice, count in counts.most_common())


@dataclass(frozen=True)
class GoldVerdicts:
    """The verdicts on questions, by task and sample id.

    ``torn`` are the names of rating files whose last line was cut off, so that it is not read.
    """

    by_question: Mapping[tuple[str, str], QuestionVerdict] = field(default_factory=dict)
    torn: tuple[str, ...] = ()

    def of(self, task: str, sample_id: str) -> QuestionVerdict | None:
        """What people said of a question; None if nobody was asked about it."""
        return self.by_question.get((task, sample_id))

    def found(self, choice: str) -> set[tuple[str, str]]:
        """The questions of which most raters said this, by task and sample id."""
        return {key for key, verdict in self.by_question.items() if verdict.majority == choice}

    def unused_notes(self) -> Iterator[str]:
        """Which verdicts are not used, and why."""
        for name in self.torn:
            yield f"the last line of {name} is cut off and not used: its answer is asked again"

    def notes(self, questions: Sequence[_Named]) -> Iterator[str]:
        """What is not used, how many listed questions were rated, and how far raters agree."""
        yield from self.unused_notes()
        if not self.by_question:
            return
        keys = {(question.task, question.sample_id) for question in questions}
        rated = sorted(self.by_question.keys() & keys)
        majorities = Counter(self.by_question[key].majority or "undecided" for key in rated)
        counts = [f"{count} {choice}" for choice, count in majorities.most_common()]
        summary = f": {', '.join(counts)}" if counts else ""
        yield f"people rated {counted(len(rated), 'listed question')}{summary}"
        several = []
        for verdict in self.by_question.values():
            if sum(verdict.decided.values()) > 1:
                several.append(verdict)
        if several:
            disputed = sum(verdict.is_disputed for verdict in several)
            rated_twice = counted(len(several), "question")
            yield f"raters disagree on {disputed} of {rated_twice} with several verdicts"
        not_listed = len(self.by_question.keys() - keys)
        if not_listed:
            yield f"{counted(not_listed, 'rated question')} not listed here"


def read_verdicts(path: Path) -> GoldVerdicts:
    """The verdicts in a folder of ratings, a rating file, or a CSV file with the columns ``task``,
    ``sample_id``, ``verdict`` and perhaps ``rater``.

    Raises:
        UsageError: there is no such file, or the folder has no ratings of gold answers.
        DataError: a file cannot be read; names file, line and field.
    """
    if not path.exists():
        raise UsageError(
            f"{path}: no such file or folder; give what `medtasks rate --questions` wrote."
        )
    if path.is_file() and not is_rating_file(path):
        return _from_csv(path)
    by_question: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    files = read_ratings(path, GOLD)
    for file in files:
        for rating in file.ratings.values():
            choice = rating.scores.get(GOLD)
            if rating.scores.keys() != {GOLD} or choice not in (*GOLD_CHOICES, None):
                raise DataError(
                    f"{file.path}: sample {shown(rating.sample_id)} of {rating.task} has `scores` "
                    f"{shown(str(rating.scores))}, expected `{GOLD}` with one of "
                    f"{', '.join(GOLD_CHOICES)} or null; restore or remove the line."
                )
            said = CANNOT_TELL if choice is None else str(choice)
            by_question[rating.task, rating.sample_id][file.plan.rater] = said
    torn = tuple(file.path.name for file in files if file.is_torn)
    return replace(_verdicts(by_question), torn=torn)


def verdicts_beside(results: Path) -> GoldVerdicts:
    """The verdicts in the folder of ratings beside the runs in ``results``; none without one.

    Raises:
        DataError: a file cannot be read; names file, line and field.
    """
    folder = ratings_beside(results)
    if not any((folder / GOLD).glob("*.jsonl")):
        return GoldVerdicts()
    return read_verdicts(folder)


def _from_csv(path: Path) -> GoldVerdicts:
    """The verdicts in a CSV file; rows without one are not rated yet."""
    by_question: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for row in read_csv_rows(path):
        fields = row.row
        missing = [name for name in _COLUMNS if name not in fields]
        if missing:
            raise DataError(
                f"{row.where}: has no column `{missing[0]}`, expected {', '.join(_COLUMNS)}; "
                "add it."
            )
        choice = str(fields["verdict"]).strip().casefold()
        if not choice:
            continue
        if choice not in (*GOLD_CHOICES, CANNOT_TELL):
            raise DataError(
                f"{row.where}: field `verdict` is {shown(choice)}, expected one of "
                f"{', '.join((*GOLD_CHOICES, CANNOT_TELL))}, or nothing; correct it."
            )
        rater = str(fields.get("rater") or "").strip() or path.stem
        key = (str(fields["task"]).strip(), str(fields["sample_id"]).strip())
        if rater in by_question[key]:
            raise DataError(
                f"{row.where}: rater {shown(rater)} already has a verdict on sample "
                f"{shown(key[1])} of {shown(key[0])}, expected one; remove one, or name the raters "
                "in a column `rater`."
            )
        by_question[key][rater] = choice
    return _verdicts(by_question)


def _verdicts(by_question: Mapping[tuple[str, str], Mapping[str, str]]) -> GoldVerdicts:
    """The verdicts by question, from each rater's choice by question."""
    verdicts = {key: QuestionVerdict(dict(ratings)) for key, ratings in by_question.items()}
    return GoldVerdicts(verdicts)
