"""How far the raters of a rubric's aspects (judges, people) agree, with intervals under resampling of clusters."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from medtasks.errors import UsageError
from medtasks.judge.scales import Aspect, Rubric
from medtasks.stats.agreement import (
    Agreement,
    Counts,
    Ratings,
    Statistic,
    agreement_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    spearman,
)

__all__ = ["COLUMNS", "AgreementReport", "AspectAgreement", "Coefficient", "PairAgreement", "agreement_report", "rows"]

Scores = Mapping[str, Mapping[str, float]]
"""Unit (a sample's id) to aspect to score."""

CONFIDENCE = 0.95
SEED = 0
COLUMNS = ("aspect", "raters", "measure", "units", "value", "interval")
"""What the strings of `rows` stand for."""


class Coefficient(BaseModel):
    """One measure of agreement: ``value`` and its interval, None where undefined, with the reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float | None
    low: float | None
    high: float | None
    units: int
    reason: str | None = None


class PairAgreement(BaseModel):
    """Two raters on the ``units`` that both rated.

    ``raw`` is the share of units with the same score, ``kappa`` Cohen's. ``quadratic`` (kappa with quadratic weights)
    and ``spearman`` are there for scales of more than two scores.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    first: str
    second: str
    units: int
    raw: Coefficient
    kappa: Coefficient
    quadratic: Coefficient | None = None
    spearman: Coefficient | None = None


class AspectAgreement(BaseModel):
    """All raters on one aspect; ``aspect`` is None where every aspect of every sample is an item of its own.

    ``fleiss`` is taken over the units that all rated, ``alpha`` (Krippendorff's, on ``level``) over those that at least
    two did.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    aspect: str | None
    level: Literal["nominal", "ordinal"]
    pairs: tuple[PairAgreement, ...]
    fleiss: Coefficient
    alpha: Coefficient


class AgreementReport(BaseModel):
    """Agreement per aspect, and ``pooled`` for a rubric whose aspects vary by sample; percentile intervals."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rubric: str
    raters: tuple[str, ...]
    resamples: int
    confidence: float = CONFIDENCE
    seed: int = SEED
    pooled: AspectAgreement | None
    aspects: tuple[AspectAgreement, ...]


_Item = tuple[str, tuple[float | None, ...]]
"""What was rated: its cluster, and each rater's score, None where there is none."""


def agreement_report(
    rubric: Rubric, ratings: Mapping[str, Scores], clusters: Mapping[str, str], resamples: int = 1000
) -> AgreementReport:
    """Agreement of two or more raters under ``rubric``; neither their order nor that of the units matters.

    Whole clusters are resampled (`medtasks.stats.agreement.agreement_interval`), of those that hold a unit that enters.
    Scores of 0 and 1 are nominal, longer scales ordinal.

    Args:
        rubric: what the raters judged.
        ratings: rater to unit to aspect to score; anything may be missing.
        clusters: unit to cluster (image, patient, video).
        resamples: number of resamples, at least 1.

    Raises:
        UsageError: fewer than two raters, a unit without cluster, a score that is none of the rubric.
    """
    raters = tuple(sorted(ratings))
    if len(raters) < 2:
        raise UsageError(f"found {len(raters)} rater{'s' * (len(raters) != 1)}, agreement needs at least 2; add one.")
    aspects = _aspects(rubric, ratings)
    for rater in raters:
        _check(rubric, aspects, rater, ratings[rater], clusters)
    items = {name: _items(ratings, raters, clusters, name) for name in aspects}
    pooled = None
    if rubric.aspects_from is not None:
        everything = [item for name in aspects for item in items[name]]
        pooled = _agreement(None, True, raters, everything, resamples)
    return AgreementReport(
        rubric=rubric.name,
        raters=raters,
        resamples=resamples,
        pooled=pooled,
        aspects=tuple(_agreement(name, one.binary, raters, items[name], resamples) for name, one in aspects.items()),
    )


def _aspects(rubric: Rubric, ratings: Mapping[str, Scores]) -> dict[str, Aspect]:
    """The rubric's aspects, or where samples name them those that were rated, sorted."""
    if rubric.aspects_from is None:
        return {aspect.name: aspect for aspect in rubric.aspects}
    rated = {name for scores in ratings.values() for given in scores.values() for name in given}
    return {name: Aspect(name=name) for name in sorted(rated)}


def _check(
    rubric: Rubric, aspects: Mapping[str, Aspect], rater: str, scores: Scores, clusters: Mapping[str, str]
) -> None:
    for unit, given in scores.items():
        if unit not in clusters:
            raise UsageError(f"unit {unit!r}, rated by {rater}, has no cluster, expected one for each unit; add it.")
        for name, score in given.items():
            if name not in aspects or not aspects[name].minimum <= score <= aspects[name].maximum:
                raise UsageError(
                    f"{rater} rated {name!r} of unit {unit!r} as {score!r}, which is no score of rubric {rubric.name}; "
                    "compare ratings under one rubric."
                )


def _items(
    ratings: Mapping[str, Scores], raters: Sequence[str], clusters: Mapping[str, str], aspect: str
) -> list[_Item]:
    units = sorted({unit for rater in raters for unit, given in ratings[rater].items() if aspect in given})
    return [(clusters[unit], tuple(ratings[rater].get(unit, {}).get(aspect) for rater in raters)) for unit in units]


def _agreement(
    aspect: str | None, binary: bool, raters: Sequence[str], items: Sequence[_Item], resamples: int
) -> AspectAgreement:
    level: Literal["nominal", "ordinal"] = "nominal" if binary else "ordinal"
    everyone = range(len(raters))
    by_two = [item for item in items if len(raters) - item[1].count(None) >= 2]
    alpha = {"alpha": functools.partial(krippendorff_alpha, level=level)}
    return AspectAgreement(
        aspect=aspect,
        level=level,
        pairs=tuple(_pair(raters, pair, binary, items, resamples) for pair in itertools.combinations(everyone, 2)),
        **_coefficients({"fleiss": fleiss_kappa}, _unordered(_rated_by(items, everyone)), resamples, "all raters"),
        **_coefficients(alpha, _unordered(by_two), resamples, "two raters"),
    )


def _pair(
    raters: Sequence[str], pair: tuple[int, int], binary: bool, items: Sequence[_Item], resamples: int
) -> PairAgreement:
    common = _rated_by(items, pair)
    statistics: dict[str, Statistic] = {"raw": _raw, "kappa": _kappa}
    if not binary:
        statistics |= {"quadratic": _quadratic, "spearman": _spearman}
    return PairAgreement(
        first=raters[pair[0]],
        second=raters[pair[1]],
        units=len(common),
        **_coefficients(statistics, common, resamples, "both"),
    )


def _rated_by(items: Sequence[_Item], raters: Sequence[int]) -> list[_Item]:
    """The items that all ``raters`` rated, with their scores alone."""
    chosen = [(cluster, tuple(scores[rater] for rater in raters)) for cluster, scores in items]
    return [(cluster, scores) for cluster, scores in chosen if None not in scores]


def _unordered(items: Sequence[_Item]) -> list[_Item]:
    """Items for a measure that does not ask who gave which score: fewer distinct ones, which is less work."""
    return [(cluster, tuple(sorted(scores, key=lambda one: (one is None, one)))) for cluster, scores in items]


def _coefficients(
    statistics: Mapping[str, Statistic], items: Sequence[_Item], resamples: int, who: str
) -> dict[str, Coefficient]:
    """Each statistic of the items with its interval.

    As `medtasks.stats.agreement.agreement_interval` gives them one by one, but on clusters that are drawn once for all,
    and computed once for draws with the same counts.
    """
    if not items:
        reason = f"no unit was rated by {who}"
        return {name: Coefficient(value=None, low=None, high=None, units=0, reason=reason) for name in statistics}
    seen: list[tuple[int, ...]] = []
    found: dict[tuple[int, ...], list[Agreement]] = {}

    def note(ratings: Ratings, *, counts: Counts) -> Agreement:
        seen.append(tuple(map(int, counts)))
        if seen[-1] not in found:
            found[seen[-1]] = [statistic(ratings, counts=counts) for statistic in statistics.values()]
        return Agreement(0.0, None, None, 0)

    ratings = list(zip(*(scores for _, scores in items), strict=True))
    drawn = agreement_interval(ratings, note, [cluster for cluster, _ in items], resamples, CONFIDENCE, SEED)
    return {
        name: _with_interval([found[counts][position] for counts in seen], len(items), drawn.reason)
        for position, name in enumerate(statistics)
    }


def _with_interval(found: Sequence[Agreement], units: int, undrawn: str | None) -> Coefficient:
    """The agreement of all items, which comes first, with the interval of the resampled ones that follow."""
    value, reason = found[0].value, found[0].reason or undrawn
    values = [one.value for one in found[1:] if one.value is not None]
    if reason is None and len(values) < len(found) - 1:
        undefined = len(found) - 1 - len(values)
        reason = f"the agreement is undefined in {undefined} of {len(found) - 1} resamples"
    if value is None or reason is not None:
        return Coefficient(value=value, low=None, high=None, units=units, reason=reason)
    low, high = np.quantile(values, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Coefficient(value=value, low=float(low), high=float(high), units=units)


def _raw(ratings: Ratings, *, counts: Counts) -> Agreement:
    """Share of items with the same score; every item is rated by both."""
    items = int(sum(counts))
    same = int(sum(times for one, other, times in zip(*ratings, counts, strict=True) if one == other))
    return Agreement(same / items, None, None, items)


def _kappa(ratings: Ratings, *, counts: Counts) -> Agreement:
    return cohen_kappa(ratings[0], ratings[1], counts=counts)


def _quadratic(ratings: Ratings, *, counts: Counts) -> Agreement:
    return cohen_kappa(ratings[0], ratings[1], "quadratic", counts=counts)


def _spearman(ratings: Ratings, *, counts: Counts) -> Agreement:
    return spearman(ratings[0], ratings[1], counts=counts)


def rows(report: AgreementReport) -> list[tuple[str, ...]]:
    """The report as strings, a row per measure, for a table with `COLUMNS`."""
    parts = [*([report.pooled] if report.pooled else []), *report.aspects]
    return [row for part in parts for row in _part_rows(part)]


def _part_rows(part: AspectAgreement) -> Iterator[tuple[str, ...]]:
    name = "(pooled)" if part.aspect is None else part.aspect
    for pair in part.pairs:
        raters = f"{pair.first}, {pair.second}"
        yield _row(name, raters, "raw agreement", pair.raw)
        yield _row(name, raters, "Cohen's kappa", pair.kappa)
        if pair.quadratic is not None:
            yield _row(name, raters, "Cohen's kappa, quadratic", pair.quadratic)
        if pair.spearman is not None:
            yield _row(name, raters, "Spearman's rho", pair.spearman)
    yield _row(name, "all", "Fleiss' kappa", part.fleiss)
    yield _row(name, "all", f"Krippendorff's alpha, {part.level}", part.alpha)


def _row(aspect: str, raters: str, measure: str, found: Coefficient) -> tuple[str, ...]:
    value = "undefined" if found.value is None else f"{found.value:.3f}"
    bounds = found.reason if found.low is None or found.high is None else f"{found.low:.3f} to {found.high:.3f}"
    return (aspect, raters, measure, f"{found.units:,}", value, bounds or "")
