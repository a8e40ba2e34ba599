"""Files of ratings: what a person said of answers that `medtasks.judge.rating_sample` drew.

The first line of a file is the plan; every later line is one rating, or a plan that draws further
answers (`medtasks.judge.rating_records`). Lines are only appended. The last rating of an answer is
the one that counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import jiter
from pydantic import ValidationError

from medtasks.core.errors import DataError, UsageError, reading
from medtasks.core.files import read_lines
from medtasks.core.schema import first_problem, shown
from medtasks.core.strict_json import model_from_json
from medtasks.judge.rating_records import AnswerKey, DrawnAnswer, Rating, RatingPlan
from medtasks.runs.find import SUFFIX as RUN_SUFFIX

FOLDER = "ratings"
"""The name of the folder of ratings beside runs."""
SUFFIX = ".jsonl"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.I)
"""Names of devices under Windows, also before any suffix."""

_Line = TypeVar("_Line", RatingPlan, Rating)


@dataclass(frozen=True)
class RatingFile:
    """A rater's file: the last plan, and the last rating of each answer, in the order of the plan.

    ``size`` is the number of bytes that could be read. If the file is longer, its last line was
    cut off when the process was killed, and the answer will be asked again.
    """

    path: Path
    plan: RatingPlan
    ratings: dict[AnswerKey, Rating]
    size: int

    @property
    def is_torn(self) -> bool:
        """Whether the last line is cut off."""
        return self.path.stat().st_size > self.size

    def rated_in_stratum(self) -> list[int]:
        """How many answers of each stratum have a score."""
        counts = [0] * len(self.plan.strata)
        for rating in self.ratings.values():
            counts[rating.stratum] += rating.has_scores
        return counts


def rating_path(folder: Path, rubric: str, rater: str) -> Path:
    """The file of a rater under a rubric, in a folder of ratings.

    Raises:
        UsageError: the name of the rubric or of the rater cannot be part of a path, or differs from
            that of another rater only in upper and lower case.
    """
    for name, option in ((rubric, "--rubric"), (rater, "--rater")):
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{option} {shown(name)}: names a file, expected up to 64 letters, digits, `.`, "
                "`_` and `-`; give another."
            )
        if _RESERVED.fullmatch(name):
            raise UsageError(
                f"{option} {shown(name)}: names a file, which Windows reserves for a device, "
                "expected another name; add a letter, for example."
            )
    path = folder / rubric / f"{rater}{SUFFIX}"
    _require_distinct(path, rater)
    return path


def _require_distinct(path: Path, rater: str) -> None:
    """Refuse a new file that would be that of another rater where case makes no difference."""
    existing = {file.name for file in path.parent.glob(f"*{SUFFIX}")}
    if path.name in existing:
        return
    for name in sorted(existing):
        if name.casefold() == path.name.casefold():
            existing_rater = name.removesuffix(SUFFIX)
            raise UsageError(
                f"--rater {shown(rater)}: differs only in upper and lower case from the rater "
                f"{shown(existing_rater)} in {path.parent}, expected a name that differs in more; "
                f"give --rater {existing_rater} if you are the same person, or else another."
            )


def ratings_beside(results: Path) -> Path:
    """The folder of ratings beside the runs in ``results``, a run's directory or one of several."""
    folder = results.resolve()
    is_run = folder.name.endswith(RUN_SUFFIX) or (folder / "manifest.json").is_file()
    return (folder.parent if is_run else folder) / FOLDER


def rating_files(path: Path, rubric: str) -> list[Path]:
    """The rating files under a rubric: ``path`` itself, or those in a folder of ratings.

    Raises:
        UsageError: there is none.
    """
    if path.is_file():
        return [path]
    for folder in (path / rubric, path):
        paths = [file for file in sorted(folder.glob(f"*{SUFFIX}")) if file.is_file()]
        if paths:
            return paths
    raise UsageError(
        f"{path}: has no ratings under {rubric} ({rubric}/*{SUFFIX}); give a folder that `medtasks "
        "rate` wrote, or a CSV file."
    )


def is_rating_file(path: Path) -> bool:
    """Whether the first line of a file is the beginning of a JSON object, as no CSV file's is."""
    with reading(path, "restore it"), path.open("rb") as stream:
        return stream.read(1) == b"{"


def read_rating_file(path: Path) -> RatingFile:
    """The plan and the ratings in ``path``.

    Raises:
        DataError: the file cannot be read, or a line but a cut-off last one is not a plan or a
            rating of an answer of the plan; the message names the line.
    """
    plan: RatingPlan | None = None
    drawn: dict[AnswerKey, DrawnAnswer] = {}
    ratings: dict[AnswerKey, Rating] = {}
    size = 0
    with reading(path, "restore it"):
        for number, line in enumerate(read_lines(path), start=1):
            if not line.endswith(b"\n"):
                break
            size += len(line)
            where = f"{path}, line {number}"
            if plan is None or _is_plan(line):
                plan = _parsed(RatingPlan, line, where)
                _require_strata(plan, where)
                drawn = {answer.key: answer for answer in plan.answers}
                continue
            rating = _parsed(Rating, line, where)
            _require_drawn(rating, drawn, where)
            ratings[rating.key] = rating
    if plan is None:
        raise DataError(
            f"{path}: has no plan, expected one in its first line; restore the file, or remove it "
            "and rate again."
        )
    ordered = {key: ratings[key] for key in drawn if key in ratings}
    return RatingFile(path, plan, ordered, size)


def _is_plan(line: bytes) -> bool:
    """Whether a line is a plan and not a rating; whatever is invalid is taken for a rating."""
    try:
        content = jiter.from_json(line)
    except ValueError:
        return False
    return isinstance(content, dict) and "answers" in content


def _parsed(model: type[_Line], line: bytes, where: str) -> _Line:
    """A line as a plan or a rating."""
    try:
        return model_from_json(model, line)
    except ValidationError as error:
        raise DataError(
            f"{where}: {first_problem(error, model)}; restore the line, or remove it."
        ) from error


def _require_strata(plan: RatingPlan, where: str) -> None:
    """Refuse a plan whose strata do not fit its answers."""
    counts = [0] * len(plan.strata)
    for answer in plan.answers:
        if answer.stratum >= len(counts):
            raise DataError(
                f"{where}: field `answers` names stratum {answer.stratum}, expected one of "
                f"{len(counts)}; restore the line."
            )
        counts[answer.stratum] += 1
    for stratum, count in zip(plan.strata, counts, strict=True):
        if not count == stratum.drawn <= stratum.population:
            raise DataError(
                f"{where}: field `strata` has one with {stratum.drawn} drawn of "
                f"{stratum.population}, but {count} answers; restore the line."
            )


def _require_drawn(rating: Rating, drawn: Mapping[AnswerKey, DrawnAnswer], where: str) -> None:
    """Refuse a rating of an answer that the plan does not have."""
    answer = drawn.get(rating.key)
    if answer is None or (answer.response_hash, answer.stratum) != (
        rating.response_hash,
        rating.stratum,
    ):
        raise DataError(
            f"{where}: sample {shown(rating.sample_id)} of {shown(rating.task)} is not an answer "
            "of the plan; restore or remove the line."
        )
