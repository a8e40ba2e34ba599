"""A rater at work: the answers in the rater's order, and the file that keeps the ratings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from medtasks.core.errors import UsageError
from medtasks.judge.rating_records import DrawnAnswer, Rating
from medtasks.judge.rating_writer import RatingWriter
from medtasks.runs.manifest import now

from .asked import Asked

LONGEST_COMMENT = 4000
"""Characters."""
_LONGEST_TIME = 1e6
"""Seconds that a form may state."""


@dataclass(frozen=True)
class Progress:
    """How far a rater is: numbers of answers, and the positions of those without a rating."""

    total: int
    rated: int
    cannot_tell: int
    open: tuple[int, ...]


class RatingSession:
    """The answers that a rater is asked about, by position from 1.

    Args:
        writer: the rater's file.
        asked: makes the page's question about a drawn answer.
        title: what pages are called: that of the rubric.
    """

    def __init__(
        self, writer: RatingWriter, asked: Callable[[DrawnAnswer], Asked], title: str
    ) -> None:
        self._writer = writer
        self._asked = asked
        self.title = title
        self.plan = writer.plan
        self.was_torn = writer.was_torn

    @property
    def file_name(self) -> str:
        """The end of the file's path: pages must not show names of results' directories."""
        return "/".join(self._writer.path.parts[-2:])

    @property
    def total(self) -> int:
        return len(self.plan.answers)

    def asked(self, position: int) -> Asked:
        """What the page at a position asks about; `UsageError` if there is none."""
        return self._asked(self._answer(position))

    def rating(self, position: int) -> Rating | None:
        """The last rating at a position, if there is one."""
        return self._writer.ratings.get(self._answer(position).key)

    def progress(self) -> Progress:
        """How far the rater is."""
        ratings = self._writer.ratings
        open_positions = []
        for position, answer in enumerate(self.plan.answers, start=1):
            if answer.key not in ratings:
                open_positions.append(position)
        cannot_tell = sum(rating.cannot_tell for rating in ratings.values())
        return Progress(self.total, len(ratings), cannot_tell, tuple(open_positions))

    def next_open(self, after: int = 0) -> int | None:
        """The first position without a rating behind ``after``, or else the first of all; None if
        there is none.
        """
        positions = self.progress().open
        later = [position for position in positions if position > after]
        return next(iter(later or positions), None)

    def rate(self, position: int, form: Mapping[str, str]) -> None:
        """Write what a form says of the answer at a position.

        Raises:
            UsageError: there is no such answer, or the form lacks a score or has a wrong one.
            DataError: the file cannot be written.
        """
        answer = self._answer(position)
        is_undecided = form.get("do") == "cannot_tell"
        scores: dict[str, int | str | None] = {}
        for number, aspect in enumerate(self._asked(answer).aspects):
            value = form.get(f"aspect-{number}", "")
            score = aspect.score_of(value) if value else None
            if score is None and (value or not is_undecided):
                raise UsageError(f"Not saved: {aspect.label} has no score; choose one.")
            scores[aspect.name] = score
        comment = form.get("comment", "").strip()
        if len(comment) > LONGEST_COMMENT:
            raise UsageError(
                f"Not saved: the comment has {len(comment):,} characters; shorten it to "
                f"{LONGEST_COMMENT:,}."
            )
        self._writer.add(
            Rating(
                **answer.model_dump(),
                probability=self.plan.stratum_of(answer).probability,
                scores=scores,
                cannot_tell=None in scores.values(),
                comment=comment,
                seconds=_seconds(form.get("seconds", "")),
                time=now(),
            )
        )

    def _answer(self, position: int) -> DrawnAnswer:
        """The answer at a position."""
        if not 1 <= position <= self.total:
            raise UsageError(f"There is no answer {position}; there are {self.total:,}.")
        return self.plan.answers[position - 1]


def _seconds(text: str) -> float | None:
    """The time that a form states; None if it states none."""
    try:
        seconds = float(text)
    except ValueError:
        return None
    return round(seconds, 1) if 0 <= seconds <= _LONGEST_TIME else None
