"""The ratings of several people together: how much each one counts.

The rating of an answer by one rater counts as 1 / Σ π, where π is the probability that a rater
rated an answer of that stratum, summed over all raters (multiplicity estimator: Sirken, 1970,
Journal of the American Statistical Association 65: 257–266). An answer that several people rated
counts once on average. A rater's π is the number of answers with a score that the rater has in the
stratum, divided by the number in the stratum, so it is right for raters who stopped early.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from medtasks.core.errors import DataError
from medtasks.judge.rating_file import RatingFile
from medtasks.judge.rating_records import Rating, Stratum


@dataclass(frozen=True)
class WeightedRating:
    """A rating with a score; ``weight`` is the number of answers that it stands for."""

    rater: str
    rating: Rating
    stratum: Stratum
    weight: float


@dataclass(frozen=True)
class StratumRatings:
    """A stratum, and its ratings by all people: those with a score, which have ``weight`` each.

    ``cannot_tell`` counts ratings without a score.
    """

    stratum: Stratum
    ratings: int
    cannot_tell: int
    weight: float | None


def weighted_ratings(files: Sequence[RatingFile]) -> list[WeightedRating]:
    """The ratings with a score in the files of all raters, with their weights.

    The weights in a stratum with any rating add up to its population.

    Raises:
        DataError: the files were not drawn together.
    """
    strata = strata_ratings(files)
    weighted = []
    for file in files:
        for rating in file.ratings.values():
            weight = strata[rating.stratum].weight
            if rating.has_scores and weight is not None:
                stratum = strata[rating.stratum].stratum
                weighted.append(WeightedRating(file.plan.rater, rating, stratum, weight))
    return weighted


def strata_ratings(files: Sequence[RatingFile]) -> list[StratumRatings]:
    """All strata of the files of all raters, also those without a rating.

    Raises:
        DataError: the files were not drawn together.
    """
    if not files:
        return []
    require_one_frame(files)
    rated = [0] * len(files[0].plan.strata)
    without_score = [0] * len(rated)
    for file in files:
        for rating in file.ratings.values():
            rated[rating.stratum] += rating.has_scores
            without_score[rating.stratum] += not rating.has_scores
    strata = []
    for number, stratum in enumerate(files[0].plan.strata):
        probability = rated[number] / stratum.population
        weight = 1 / probability if probability else None
        strata.append(StratumRatings(stratum, rated[number], without_score[number], weight))
    return strata


def require_one_frame(files: Sequence[RatingFile]) -> None:
    """Refuse files that were drawn from other answers or with another seed.

    Raises:
        DataError: they were; the message names two files.
    """
    first = files[0]
    for file in files[1:]:
        for field in ("rubric_hash", "frame", "seed", "overlap"):
            value, expected = getattr(file.plan, field), getattr(first.plan, field)
            if value != expected:
                raise DataError(
                    f"{file.path}: field `{field}` of the plan is {value!r}, expected "
                    f"{expected!r} as in {first.path}: they were not drawn together; rate the "
                    "same results, before or after judging them, with the same options."
                )
