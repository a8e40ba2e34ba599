"""Human labels of a run's answers, from a CSV file, a rating file or a folder of ratings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Rubric, rubric_hash
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.judge.csv_labels import read_csv_labels
from medtasks.judge.joined_ratings import read_ratings
from medtasks.judge.labels import HumanLabel, HumanLabels, LabelledRun, LabelledStratum
from medtasks.judge.rating_file import RatingFile, is_rating_file
from medtasks.judge.rating_records import Rating
from medtasks.judge.rating_weights import StratumRatings, strata_ratings


def read_labels(path: Path, rubric: Rubric, run: LabelledRun) -> HumanLabels:
    """The labels in a CSV file (`read_csv_labels`), in a rating file, or in all rating files under
    the rubric in a folder.

    Raises:
        UsageError: a folder has no ratings under the rubric.
        DataError: a file cannot be read, or its labels are not on the rubric's aspects.
    """
    if path.is_dir() or is_rating_file(path):
        return labels_of_ratings(read_ratings(path, rubric.name), rubric, run)
    return read_csv_labels(path, rubric, run)


def rating_hash(rubric: Rubric) -> str:
    """The hash of a rubric as people see it: without the template, which only judges are shown."""
    return rubric_hash(rubric, template="")


def labels_of_ratings(files: list[RatingFile], rubric: Rubric, run: LabelledRun) -> HumanLabels:
    """The labels of the run in rating files; those of other runs are left out.

    Files that were not drawn together have no weights.

    Raises:
        DataError: a file is of another version of the rubric, or has a score that is not on the
            scale of one of its aspects.
    """
    for file in files:
        _require_rubric(file, rubric)
    strata, why_unweighted = _strata(files)
    collected = _CollectedLabels()
    for file in files:
        for rating in file.ratings.values():
            if rating.run == run.identity:
                collected.add(file, rating, rubric, run)
    labels = collected.labels
    if collected.stale and not why_unweighted:
        why_unweighted = (
            f"{collected.stale:,} rated responses have changed since (another filter or run), so "
            "the labels are not a probability sample of the current ones"
        )
    if not why_unweighted:
        labels = collected.weighted(strata)
    return HumanLabels(
        labels=tuple(labels),
        absent=tuple(sorted(collected.absent)),
        stale=collected.stale,
        cannot_tell=collected.cannot_tell,
        torn=tuple(file.path.name for file in files if file.is_torn),
        strata=() if why_unweighted else _labelled_strata(strata, run),
        why_unweighted=why_unweighted,
    )


@dataclass
class _CollectedLabels:
    """The labels of a run without weights, each with the number of its stratum, and its ratings
    that give no label: of samples ``absent`` from the run, of responses that are ``stale``, and
    those without a score.
    """

    labels: list[HumanLabel] = field(default_factory=list)
    strata: list[int] = field(default_factory=list)
    absent: set[str] = field(default_factory=set)
    stale: int = 0
    cannot_tell: int = 0

    def add(self, file: RatingFile, rating: Rating, rubric: Rubric, run: LabelledRun) -> None:
        """Add a rating of the run as a label, or count why it is none."""
        unit = (rating.task, rating.sample_id)
        if unit not in run.documents:
            self.absent.add(rating.sample_id)
        elif run.response_hashes[unit] != rating.response_hash:
            self.stale += 1
        elif not rating.has_scores:
            self.cannot_tell += 1
        else:
            scores = _scores(rating, rubric, run.documents[unit], file)
            self.labels.append(HumanLabel(file.plan.rater, unit, scores))
            self.strata.append(rating.stratum)

    def weighted(self, strata: Sequence[StratumRatings]) -> list[HumanLabel]:
        """The labels with their strata and weights."""
        weighted = []
        for label, stratum in zip(self.labels, self.strata, strict=True):
            weight = strata[stratum].weight
            weighted.append(HumanLabel(label.rater, label.unit, label.scores, str(stratum), weight))
        return weighted


def _require_rubric(file: RatingFile, rubric: Rubric) -> None:
    """Refuse ratings under another version of the rubric."""
    expected = rating_hash(rubric)
    if file.plan.rubric_hash != expected:
        raise DataError(
            f"{file.path}: was rated under another version of rubric {rubric.name} "
            f"({file.plan.rubric_hash}, expected {expected}); restore the rubric as it was, or "
            "rate again."
        )


def _strata(files: list[RatingFile]) -> tuple[list[StratumRatings], str]:
    """The strata that the files were drawn from; or why there are no common ones."""
    try:
        return strata_ratings(files), ""
    except DataError as error:
        return [], str(error).rstrip(".")


def _scores(
    rating: Rating, rubric: Rubric, document: Mapping[str, Any], file: RatingFile
) -> dict[str, int]:
    """The scores of a rating, without aspects that the rater could not decide."""
    aspects = {aspect.name: aspect for aspect in aspects_of(rubric, document)}
    scores: dict[str, int] = {}
    for name, value in rating.scores.items():
        if value is None:
            continue
        score = aspects[name].score_of(value) if name in aspects else None
        if score is None:
            raise DataError(
                f"{file.path}: sample {shown(rating.sample_id)} has {shown(value)} for "
                f"{shown(name)}, expected a score of an aspect of rubric {rubric.name}; correct "
                "or remove the line."
            )
        scores[name] = score
    return scores


def _labelled_strata(strata: list[StratumRatings], run: LabelledRun) -> tuple[LabelledStratum, ...]:
    """The strata of the run's answers."""
    labelled = []
    for number, ratings in enumerate(strata):
        stratum = ratings.stratum
        if stratum.run == run.identity:
            labelled.append(
                LabelledStratum(
                    name=str(number),
                    task=stratum.task,
                    verdict=stratum.verdict,
                    population=stratum.population,
                    labels=ratings.ratings,
                    cannot_tell=ratings.cannot_tell,
                )
            )
    return tuple(labelled)
