"""The rating files of several people, read together: each must be of a person of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import TypeAlias

from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import counted
from medtasks.judge.rating_file import RatingFile, rating_files, read_rating_file
from medtasks.judge.rating_records import AnswerKey, Rating

_FEWEST_SECONDS = 2
"""Two people may save the same rating of an answer in the same second once, but hardly twice."""
_Statement: TypeAlias = tuple[AnswerKey, str, str, float | None, str]


def read_ratings(path: Path, rubric: str) -> list[RatingFile]:
    """The rating files under a rubric at ``path``, a file or a folder.

    Raises:
        UsageError: there is no rating file.
        DataError: one cannot be read, is of another rubric, or two are of the same rater, also if
            one is a copy under another name.
    """
    files = []
    by_rater: dict[str, Path] = {}
    for file_path in rating_files(path, rubric):
        file = read_rating_file(file_path)
        plan = file.plan
        if plan.rubric != rubric:
            raise DataError(
                f"{file_path}, line 1: field `rubric` is {shown(plan.rubric)}, expected "
                f"{shown(rubric)}; name that rubric, or give other ratings."
            )
        if plan.rater in by_rater:
            raise DataError(
                f"{file_path}, line 1: field `rater` is {shown(plan.rater)}, as in "
                f"{by_rater[plan.rater]}, expected a file a rater; remove one."
            )
        by_rater[plan.rater] = file_path
        files.append(file)
    _require_own_ratings(files)
    return files


def _require_own_ratings(files: Sequence[RatingFile]) -> None:
    """Refuse files of different raters that have the same ratings, which would count twice.

    Ratings are the same if they give the same scores and comment to the same answer, and were saved
    in the same second after the same time on screen.

    Raises:
        DataError: two files have such ratings of several seconds; the message names both.
    """
    for first, second in combinations(files, 2):
        shared = _statements(first) & _statements(second)
        seconds = {time for _, time, *_ in shared}
        if len(seconds) >= _FEWEST_SECONDS:
            total = counted(len(second.ratings), "rating")
            raise DataError(
                f"{second.path}: {len(shared):,} of its {total} have the scores and times of those "
                f"in {first.path}, expected ratings by another person; remove the copy."
            )


def _statements(file: RatingFile) -> set[_Statement]:
    """What the rater said of each answer, when, and how long it took."""
    return {_statement(rating) for rating in file.ratings.values()}


def _statement(rating: Rating) -> _Statement:
    """A rating without what the plan says of its answer."""
    scores = repr(sorted(rating.scores.items()))
    return rating.key, rating.time, scores, rating.seconds, rating.comment
