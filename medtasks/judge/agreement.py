"""Agreement of the raters of a rubric's aspects, with cluster-bootstrap intervals."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from medtasks.catalog.rubric import Rubric
from medtasks.runs.agreement_report import ALPHA, SEED, Agreement, AgreementReport
from medtasks.stats import agreement as stats

Scores = Mapping[str, Mapping[str, float]]  # unit (a sample's id) to aspect to score

COLUMNS = ("aspect", "raters", "measure", "units", "value", "interval")  # headings of `rows`


@dataclass(frozen=True)
class _RatedUnit:
    """A unit on one aspect: its cluster, and each rater's score or None."""

    cluster: str
    scores: tuple[float | None, ...]

    @property
    def is_complete(self) -> bool:
        return None not in self.scores

    @property
    def ratings(self) -> int:
        """How many raters scored it."""
        return len(self.scores) - self.scores.count(None)


@dataclass(frozen=True)
class _Aspect:
    """All rated units of one aspect; of all aspects if the name is None."""

    name: str | None
    is_binary: bool
    units: list[_RatedUnit]


def agreement_report(
    rubric: Rubric,
    ratings: Mapping[str, Scores],
    clusters: Mapping[str, str],
    resamples: int = 1000,
) -> AgreementReport:
    """Agreement of two or more raters under ``rubric``.

    Scores of 0 and 1 are nominal, longer scales ordinal.

    Args:
        rubric: the rubric whose aspects were rated.
        ratings: scores by rater, unit and aspect; anything may be missing.
        clusters: the cluster of each unit; whole clusters are resampled.
        resamples: the number of bootstrap resamples.
    """
    raters = tuple(sorted(ratings))
    aspects: list[_Aspect] = []
    for name, is_binary in _scales(rubric, ratings).items():
        aspects.append(_Aspect(name, is_binary, _rated_units(name, raters, ratings, clusters)))
    if rubric.aspects_from is not None:
        pooled = list(itertools.chain.from_iterable(aspect.units for aspect in aspects))
        aspects.insert(0, _Aspect(None, is_binary=True, units=pooled))
    measures: list[Agreement] = []
    for aspect in aspects:
        measures += _measures(aspect, raters, resamples)
    return AgreementReport(
        rubric=rubric.name, raters=raters, resamples=resamples, measures=tuple(measures)
    )


def _scales(rubric: Rubric, ratings: Mapping[str, Scores]) -> dict[str, bool]:
    """Whether each aspect is scored by 0 and 1, by name."""
    if rubric.aspects_from is None:
        return {aspect.name: aspect.binary for aspect in rubric.aspects}
    names: set[str] = set()  # the samples name them
    for scores_by_unit in ratings.values():
        for scores in scores_by_unit.values():
            names |= scores.keys()
    return dict.fromkeys(sorted(names), True)


def _rated_units(
    aspect: str,
    raters: Sequence[str],
    ratings: Mapping[str, Scores],
    clusters: Mapping[str, str],
) -> list[_RatedUnit]:
    """The units that a rater scored on the aspect, sorted by id."""
    names: set[str] = set()
    for scores_by_unit in ratings.values():
        for unit, scores in scores_by_unit.items():
            if aspect in scores:
                names.add(unit)
    units = []
    for unit in sorted(names):
        scores_of_raters = tuple(ratings[rater].get(unit, {}).get(aspect) for rater in raters)
        units.append(_RatedUnit(clusters[unit], scores_of_raters))
    return units


def _measures(aspect: _Aspect, raters: Sequence[str], resamples: int) -> Iterator[Agreement]:
    """All measures on one aspect: those of each pair of raters, then those of all raters."""
    for first, second in itertools.combinations(range(len(raters)), 2):
        names = f"{raters[first]}, {raters[second]}"
        units = _rated_by_both(aspect.units, first, second)
        for measure, statistic in _pair_statistics(aspect.is_binary).items():
            coefficient = _coefficient(statistic, units, resamples, needs="both")
            yield _agreement(aspect, names, measure, coefficient)
    yield from _measures_of_all(aspect, resamples)


def _measures_of_all(aspect: _Aspect, resamples: int) -> Iterator[Agreement]:
    """The measures of all raters, which need every rating of a unit or at least two."""
    unordered = [_with_sorted_scores(unit) for unit in aspect.units]
    by_all = [unit for unit in unordered if unit.is_complete]
    kappa = _coefficient(stats.fleiss_kappa, by_all, resamples, needs="all raters")
    yield _agreement(aspect, "all", "Fleiss' kappa", kappa)
    by_two = [unit for unit in unordered if unit.ratings >= 2]
    level: Literal["nominal", "ordinal"] = "nominal" if aspect.is_binary else "ordinal"
    statistic = functools.partial(stats.krippendorff_alpha, level=level)
    alpha = _coefficient(statistic, by_two, resamples, needs="two raters")
    yield _agreement(aspect, "all", f"{ALPHA}, {level}", alpha)


def _coefficient(
    statistic: stats.Statistic, units: Sequence[_RatedUnit], resamples: int, *, needs: str
) -> stats.Coefficient:
    """The statistic over the units, which are those with the ratings that it ``needs``."""
    if not units:
        return stats.Coefficient(units=0, reason=f"no unit was rated by {needs}")
    scores_by_rater = list(zip(*(unit.scores for unit in units), strict=True))
    clusters = [unit.cluster for unit in units]
    ratings = stats.Ratings.of(scores_by_rater)
    return stats.agreement_interval(ratings, statistic, clusters, resamples, SEED)


def _agreement(
    aspect: _Aspect, raters: str, measure: str, coefficient: stats.Coefficient
) -> Agreement:
    """The report's entry for one measure on one aspect."""
    return Agreement(aspect=aspect.name, raters=raters, measure=measure, **dict(coefficient))


def _pair_statistics(is_binary: bool) -> dict[str, stats.Statistic]:
    """The measures for two raters by name; ordered scales have further ones."""
    statistics: dict[str, stats.Statistic] = {
        "raw agreement": stats.raw_agreement,
        "Cohen's kappa": stats.cohen_kappa,
    }
    if not is_binary:
        quadratic = functools.partial(stats.cohen_kappa, quadratic=True)
        statistics["Cohen's kappa, quadratic"] = quadratic
        statistics["Spearman's rho"] = stats.spearman
    return statistics


def _rated_by_both(units: Sequence[_RatedUnit], first: int, second: int) -> list[_RatedUnit]:
    """The units that two raters scored, with the scores of these two."""
    rated = []
    for unit in units:
        pair = _RatedUnit(unit.cluster, (unit.scores[first], unit.scores[second]))
        if pair.is_complete:
            rated.append(pair)
    return rated


def _with_sorted_scores(unit: _RatedUnit) -> _RatedUnit:
    """The unit with its scores in ascending order, missing ones last.

    Measures of all raters ignore who gave which score; sorted, fewer units are distinct, which is
    faster.
    """
    scores = sorted(score for score in unit.scores if score is not None)
    return _RatedUnit(unit.cluster, (*scores, *[None] * unit.scores.count(None)))


def rows(report: AgreementReport) -> list[tuple[str, ...]]:
    """The report as strings, a row per measure, for a table with `COLUMNS`."""
    table: list[tuple[str, ...]] = []
    for measure in report.measures:
        value = "undefined" if measure.value is None else f"{measure.value:.3f}"
        interval = measure.reason or ""
        if measure.low is not None:
            interval = f"{measure.low:.3f} to {measure.high:.3f}"
        aspect = measure.aspect or "(pooled)"
        units = f"{measure.units:,}"
        table.append((aspect, measure.raters, measure.measure, units, value, interval))
    return table
