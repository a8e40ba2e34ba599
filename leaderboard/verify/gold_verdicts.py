"""What people said of gold answers: right, wrong or ambiguous."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import shown
from medtasks.core.text import counted, first_names
from medtasks.data.csv_rows import read_csv_rows
from medtasks.judge.joined_ratings import read_ratings
from medtasks.judge.rating_file import is_rating_file, ratings_beside
from medtasks.judge.rating_records import GOLD, GOLD_CHOICES

from .question_content import Contents, QuestionKey

WRONG = "wrong"
CANNOT_TELL = "cannot tell"
QUESTION_HASH = "question_hash"
"""The column of a CSV file that identifies the question as the rater saw it (`content_hash`)."""
_COLUMNS = ("task", "sample_id", "verdict")
"""Required columns of a CSV file; ``rater`` and `QUESTION_HASH` are optional."""

AskedAs: TypeAlias = Callable[[str], str]
"""The task that asks each question of a task once: the task itself if no other does."""


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

    ``hashes`` identify the question that each rater saw (`content_hash`), as far as it is known.
    ``unidentified`` counts the verdicts without a hash, which are used even if the question has
    changed. ``torn`` are the names of rating files whose last line was cut off, so that it is not
    read. ``changed`` and ``absent`` are questions whose verdicts are not used: those that have
    changed since a rater saw them, and those that are not in the results.
    """

    by_question: Mapping[tuple[str, str], QuestionVerdict] = field(default_factory=dict)
    hashes: Mapping[QuestionKey, Mapping[str, str]] = field(default_factory=dict)
    unidentified: int = 0
    torn: tuple[str, ...] = ()
    changed: tuple[QuestionKey, ...] = ()
    absent: tuple[QuestionKey, ...] = ()

    def of(self, task: str, sample_id: str) -> QuestionVerdict | None:
        """What people said of a question; None if nobody was asked about it."""
        return self.by_question.get((task, sample_id))

    def found(self, choice: str) -> set[tuple[str, str]]:
        """The questions of which most raters said this, by task and sample id."""
        return {key for key, verdict in self.by_question.items() if verdict.majority == choice}

    def caveats(self) -> Iterator[str]:
        """Which verdicts are not used, and why, and which may be about an older question."""
        for name in self.torn:
            yield f"the last line of {name} is cut off and not used: its answer is asked again"
        if self.changed:
            changed = counted(len(self.changed), "rated question")
            verb = "has" if len(self.changed) == 1 else "have"
            yield (
                f"{changed} {verb} changed since, so earlier verdicts are not used: "
                f"{_names(self.changed)}"
            )
        if self.absent:
            absent = counted(len(self.absent), "rated question")
            verb = "is" if len(self.absent) == 1 else "are"
            yield f"{absent} {verb} not in the results and not used: {_names(self.absent)}"
        if self.unidentified:
            verdicts = counted(self.unidentified, "verdict")
            yield (
                f"{verdicts} without `{QUESTION_HASH}`: whether the question has changed since it "
                "was rated is not known"
            )

    def compared(self, contents: Contents) -> GoldVerdicts:
        """Without verdicts on another version of a question than the results have.

        Verdicts whose version is not known stay, as do those on questions that are not in
        ``contents``.
        """
        by_question: dict[QuestionKey, QuestionVerdict] = {}
        changed: list[QuestionKey] = []
        for key, verdict in self.by_question.items():
            current = contents.get(key)
            if current is None:
                by_question[key] = verdict
                continue
            seen = self.hashes.get(key, {})
            kept = {}
            for rater, choice in verdict.by_rater.items():
                if rater not in seen or current == {seen[rater]}:
                    kept[rater] = choice
            if len(kept) < len(verdict.by_rater):
                changed.append(key)
            if kept:
                by_question[key] = QuestionVerdict(kept)
        return replace(self, by_question=by_question, changed=tuple(sorted(changed)))

    def tasks_with(self, tasks: Iterable[str], asked_as: AskedAs) -> list[str]:
        """Those of ``tasks`` that ask the questions of a rated task; ``asked_as`` names the task
        that asks each question once.
        """
        rated = {asked_as(task) for task, _ in self.by_question}
        return [task for task in tasks if asked_as(task) in rated]

    def found_in(self, contents: Contents, asked_as: AskedAs) -> GoldVerdicts:
        """Without verdicts on questions that are in no result, also not as a variant."""
        ids: set[QuestionKey] = set()
        for task, sample_id in contents:
            ids |= {(asked_as(task), sample_id), (asked_as(task), _question_id(sample_id))}
        by_question: dict[QuestionKey, QuestionVerdict] = {}
        absent: list[QuestionKey] = []
        for key, verdict in self.by_question.items():
            task, sample_id = key
            plain_task = asked_as(task)
            names = {(plain_task, sample_id)}
            if plain_task != task:
                names.add((plain_task, _question_id(sample_id)))
            if names.isdisjoint(ids):
                absent.append(key)
            else:
                by_question[key] = verdict
        return replace(self, by_question=by_question, absent=tuple(sorted(absent)))

    def notes(self, questions: Sequence[_Named]) -> Iterator[str]:
        """What is not used, how many listed questions were rated, and how far raters agree."""
        yield from self.caveats()
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
        not_listed = sorted(self.by_question.keys() - keys)
        if not_listed:
            number = counted(len(not_listed), "rated question")
            yield f"{number} not listed here: {_names(not_listed)}"


def read_verdicts(path: Path) -> GoldVerdicts:
    """The verdicts in a folder of ratings, a rating file, or a CSV file with the columns ``task``,
    ``sample_id``, ``verdict`` and perhaps ``rater`` and ``question_hash``.

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
    hashes: dict[QuestionKey, dict[str, str]] = defaultdict(dict)
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
            hashes[rating.task, rating.sample_id][file.plan.rater] = rating.response_hash
    torn = tuple(file.path.name for file in files if file.is_torn)
    return replace(_verdicts(by_question), hashes=hashes, torn=torn)


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
    hashes: dict[QuestionKey, dict[str, str]] = defaultdict(dict)
    unidentified = 0
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
        seen = str(fields.get(QUESTION_HASH) or "").strip()
        if seen:
            hashes[key][rater] = seen
        else:
            unidentified += 1
    return replace(_verdicts(by_question), hashes=hashes, unidentified=unidentified)


def _verdicts(by_question: Mapping[tuple[str, str], Mapping[str, str]]) -> GoldVerdicts:
    """The verdicts by question, from each rater's choice by question."""
    verdicts = {key: QuestionVerdict(dict(ratings)) for key, ratings in by_question.items()}
    return GoldVerdicts(verdicts)


def _names(questions: Sequence[QuestionKey]) -> str:
    """The first questions, each with its task."""
    names = [shown(f"{sample_id} of {task}") for task, sample_id in questions]
    return first_names(names, 5)


def _question_id(sample_id: str) -> str:
    """The id of the question that a sample with rotated options or another prompt asks."""
    return sample_id.rpartition("~")[0] or sample_id
