"""Agreement of the raters of a rubric's aspects (judges, humans), with cluster-bootstrap intervals."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Literal

from medtasks.catalog.scales import Rubric
from medtasks.core.schema import Frozen
from medtasks.stats.agreement import (
    Coefficient,
    Ratings,
    Statistic,
    agreement_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    raw_agreement,
    spearman,
)
from medtasks.stats.bootstrap import CONFIDENCE

Scores = Mapping[str, Mapping[str, float]]
"""Unit (a sample's id) to aspect to score."""

SEED = 0
COLUMNS = ("aspect", "raters", "measure", "units", "value", "interval")
"""Headings of `rows`."""


class PairAgreement(Frozen):
    """Two raters on the ``units`` that both rated.

    ``raw`` is the share of units with the same score, ``kappa`` Cohen's. Only scales of more than two scores have
    ``quadratic`` (kappa with quadratic weights) and ``spearman``.
    """

    first: str
    second: str
    units: int
    raw: Coefficient
    kappa: Coefficient
    quadratic: Coefficient | None = None
    spearman: Coefficient | None = None


class AspectAgreement(Frozen):
    """All raters on one aspect; if ``aspect`` is None, every aspect of every sample is a separate item.

    ``fleiss`` is computed over the units that all rated, ``alpha`` (Krippendorff's, on ``level``) over those that at
    least two rated.
    """

    aspect: str | None
    level: Literal["nominal", "ordinal"]
    pairs: tuple[PairAgreement, ...]
    fleiss: Coefficient
    alpha: Coefficient


class AgreementReport(Frozen):
    """Agreement per aspect, and ``pooled`` for a rubric whose aspects vary by sample; percentile intervals."""

    rubric: str
    raters: tuple[str, ...]
    resamples: int
    confidence: float = CONFIDENCE
    seed: int = SEED
    pooled: AspectAgreement | None
    aspects: tuple[AspectAgreement, ...]


_Item = tuple[str, tuple[float | None, ...]]
"""An item's cluster, and each rater's score or None."""


def agreement_report(
    rubric: Rubric, ratings: Mapping[str, Scores], clusters: Mapping[str, str], resamples: int = 1000
) -> AgreementReport:
    """Agreement of two or more raters under ``rubric``; neither their order nor that of the units matters.

    Whole clusters are resampled (`medtasks.stats.agreement.agreement_interval`), among those with a rated unit.
    Scores of 0 and 1 are nominal, longer scales ordinal.

    Args:
        rubric: what the raters judged.
        ratings: rater to unit to aspect to score within the rubric's scales; anything may be missing.
        clusters: of every unit (image, patient, video).
        resamples: number of resamples, at least 1.
    """
    raters = tuple(sorted(ratings))
    aspects = {aspect.name: aspect.binary for aspect in rubric.aspects}
    if rubric.aspects_from is not None:  # samples name them
        rated = {name for scores in ratings.values() for given in scores.values() for name in given}
        aspects = dict.fromkeys(sorted(rated), True)
    items: dict[str, list[_Item]] = {}
    for name in aspects:
        units = sorted({unit for scores in ratings.values() for unit, given in scores.items() if name in given})
        items[name] = [
            (clusters[unit], tuple(ratings[rater].get(unit, {}).get(name) for rater in raters)) for unit in units
        ]
    pooled = None
    if rubric.aspects_from is not None:
        pooled = _agreement(None, True, raters, [item for of_aspect in items.values() for item in of_aspect], resamples)
    return AgreementReport(
        rubric=rubric.name,
        raters=raters,
        resamples=resamples,
        pooled=pooled,
        aspects=tuple(_agreement(name, binary, raters, items[name], resamples) for name, binary in aspects.items()),
    )


_OF_PAIRS: Mapping[str, tuple[str, Statistic]] = {
    "raw": ("raw agreement", raw_agreement),
    "kappa": ("Cohen's kappa", cohen_kappa),
    "quadratic": ("Cohen's kappa, quadratic", functools.partial(cohen_kappa, quadratic=True)),
    "spearman": ("Spearman's rho", spearman),
}
"""By field of `PairAgreement`, its heading and how it is computed."""


def _agreement(
    aspect: str | None, binary: bool, raters: Sequence[str], items: Sequence[_Item], resamples: int
) -> AspectAgreement:
    level: Literal["nominal", "ordinal"] = "nominal" if binary else "ordinal"

    def coefficient(statistic: Statistic, of: Sequence[_Item], who: str) -> Coefficient:
        if not of:
            return Coefficient(units=0, reason=f"no unit was rated by {who}")
        rows = list(zip(*(scores for _, scores in of), strict=True))
        return agreement_interval(Ratings.of(rows), statistic, [cluster for cluster, _ in of], resamples, SEED)

    pairs = []
    for one, other in itertools.combinations(range(len(raters)), 2):
        both = [(cluster, (scores[one], scores[other])) for cluster, scores in items]
        both = [item for item in both if None not in item[1]]
        measures = {
            name: coefficient(statistic, both, "both")
            for name, (_, statistic) in _OF_PAIRS.items()
            if not (binary and name in ("quadratic", "spearman"))
        }
        pairs.append(PairAgreement(first=raters[one], second=raters[other], units=len(both), **measures))
    # these measures ignore who gave which score: sorted, fewer items are distinct, which is faster
    unordered = [(cluster, tuple(sorted(scores, key=lambda one: (one is None, one)))) for cluster, scores in items]
    by_all = [item for item in unordered if None not in item[1]]
    by_two = [item for item in unordered if len(raters) - item[1].count(None) >= 2]
    return AspectAgreement(
        aspect=aspect,
        level=level,
        pairs=tuple(pairs),
        fleiss=coefficient(fleiss_kappa, by_all, "all raters"),
        alpha=coefficient(functools.partial(krippendorff_alpha, level=level), by_two, "two raters"),
    )


def rows(report: AgreementReport) -> list[tuple[str, ...]]:
    """The report as strings, a row per measure, for a table with `COLUMNS`."""
    table: list[tuple[str, ...]] = []
    for part in [*filter(None, [report.pooled]), *report.aspects]:
        measures: list[tuple[str, str, Coefficient | None]] = [
            (f"{pair.first}, {pair.second}", label, getattr(pair, name))
            for pair in part.pairs
            for name, (label, _) in _OF_PAIRS.items()
        ]
        measures.append(("all", "Fleiss' kappa", part.fleiss))
        measures.append(("all", f"Krippendorff's alpha, {part.level}", part.alpha))
        for raters, measure, found in measures:
            if found is not None:
                value = "undefined" if found.value is None else f"{found.value:.3f}"
                no_bounds = found.low is None or found.high is None
                bounds = found.reason or "" if no_bounds else f"{found.low:.3f} to {found.high:.3f}"
                table.append((part.aspect or "(pooled)", raters, measure, f"{found.units:,}", value, bounds))
    return table
