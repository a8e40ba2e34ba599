"""Agreement of the raters of a rubric's aspects, with cluster-bootstrap intervals; human annotations from a CSV file.

A row of that file is a label: columns ``sample_id``, ``aspect`` and ``score``, and perhaps ``rater`` and ``task``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medtasks.catalog.records import Where, wrong
from medtasks.catalog.rubric import Aspect, Rubric, aspects_of
from medtasks.core.errors import DataError
from medtasks.core.schema import Frozen, shown
from medtasks.core.text import first_names
from medtasks.data.sources import read_csv_rows
from medtasks.stats import agreement as stats
from medtasks.stats.bootstrap import CONFIDENCE

Scores = Mapping[str, Mapping[str, float]]  # unit (a sample's id) to aspect to score

SEED = 0
COLUMNS = ("aspect", "raters", "measure", "units", "value", "interval")  # headings of `rows`


class PairAgreement(Frozen):
    """Two raters on the ``units`` that both rated; only scales of more than two scores have ``quadratic`` and
    ``spearman``."""

    first: str
    second: str
    units: int
    raw: stats.Coefficient
    kappa: stats.Coefficient
    quadratic: stats.Coefficient | None = None
    spearman: stats.Coefficient | None = None


class AspectAgreement(Frozen):
    """All raters on one aspect; None pools the aspects of every sample. ``fleiss`` is over the units that all rated,
    ``alpha`` (Krippendorff's, on ``level``) over those that at least two rated."""

    aspect: str | None
    level: Literal["nominal", "ordinal"]
    pairs: tuple[PairAgreement, ...]
    fleiss: stats.Coefficient
    alpha: stats.Coefficient


class AgreementReport(Frozen):
    """Agreement per aspect, and ``pooled`` for a rubric whose aspects vary by sample; percentile intervals."""

    rubric: str
    raters: tuple[str, ...]
    resamples: int
    confidence: float = CONFIDENCE
    seed: int = SEED
    pooled: AspectAgreement | None
    aspects: tuple[AspectAgreement, ...]


_Item = tuple[str, tuple[float | None, ...]]  # an item's cluster, and each rater's score or None


def agreement_report(
    rubric: Rubric, ratings: Mapping[str, Scores], clusters: Mapping[str, str], resamples: int = 1000
) -> AgreementReport:
    """Agreement of two or more raters under ``rubric``, by rater, unit and aspect; anything may be missing. Whole
    ``clusters`` of units are resampled. Scores of 0 and 1 are nominal, longer scales ordinal."""
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


_OF_PAIRS: Mapping[str, tuple[str, stats.Statistic]] = {
    "raw": ("raw agreement", stats.raw_agreement),
    "kappa": ("Cohen's kappa", stats.cohen_kappa),
    "quadratic": ("Cohen's kappa, quadratic", functools.partial(stats.cohen_kappa, quadratic=True)),
    "spearman": ("Spearman's rho", stats.spearman),
}
"""By field of `PairAgreement`, its heading and how it is computed."""


def _agreement(
    aspect: str | None, binary: bool, raters: Sequence[str], items: Sequence[_Item], resamples: int
) -> AspectAgreement:
    level: Literal["nominal", "ordinal"] = "nominal" if binary else "ordinal"

    def coefficient(statistic: stats.Statistic, of: Sequence[_Item], who: str) -> stats.Coefficient:
        if not of:
            return stats.Coefficient(units=0, reason=f"no unit was rated by {who}")
        ratings = stats.Ratings.of(list(zip(*(scores for _, scores in of), strict=True)))
        return stats.agreement_interval(ratings, statistic, [cluster for cluster, _ in of], resamples, SEED)

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
        fleiss=coefficient(stats.fleiss_kappa, by_all, "all raters"),
        alpha=coefficient(functools.partial(stats.krippendorff_alpha, level=level), by_two, "two raters"),
    )


def rows(report: AgreementReport) -> list[tuple[str, ...]]:
    """The report as strings, a row per measure, for a table with `COLUMNS`."""
    table: list[tuple[str, ...]] = []
    for part in [*filter(None, [report.pooled]), *report.aspects]:
        measures: list[tuple[str, str, stats.Coefficient | None]] = [
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


HUMAN = "human"  # the rater of rows without one

# spreadsheets write a column of whole numbers with gaps as 1.0
_NUMBER = re.compile(r"([0-9]{1,4})(?:\.0{1,4})?")

Unit = tuple[str, str]  # task and sample id: two tasks may ask about one sample


@dataclass(frozen=True)
class HumanLabels:
    """Scores by rater, unit and aspect; ``unmatched`` are the sample ids without a document, whose labels are left
    out."""

    ratings: dict[str, dict[Unit, dict[str, int]]]
    unmatched: tuple[str, ...]


def read_labels(path: Path, rubric: Rubric, documents: Mapping[Unit, Mapping[str, Any]]) -> HumanLabels:
    """The labels in the CSV file ``path``, each on an aspect of ``rubric`` within its scale; rows without a score
    are skipped. A row without a task refers to the only task with the sample among ``documents`` (by task and sample
    id).

    Raises:
        DataError: the file cannot be read, lacks a column, or has a label that is invalid, duplicated, or about a
            sample of several tasks without naming one; the message names file, line and column.
    """
    rows = read_csv_rows(path)
    if not {"sample_id", "aspect", "score"} <= rows[0].row.keys():
        raise DataError(
            f"{Where(path.name, 1)}: the header has {first_names(map(shown, rows[0].row), 12)}, expected `sample_id`, "
            "`aspect` and `score`; rename or add the columns."
        )
    tasks_of: dict[str, list[str]] = {}
    for task, sample_id in documents:
        tasks_of.setdefault(sample_id, []).append(task)
    ratings: dict[str, dict[Unit, dict[str, int]]] = {}
    first: dict[tuple[str, Unit, str], Where] = {}
    unmatched: set[str] = set()
    for where, row in rows:
        label = {name: cell.strip() for name, cell in row.items()}
        sample_id, written = label["sample_id"], label["score"]
        if not written:
            continue
        if not sample_id:
            raise wrong(where, "sample_id", None, "the id of a sample")
        tasks = tasks_of.get(sample_id, [""])
        if not label.get("task") and len(tasks) > 1:
            raise DataError(
                f"{where}: sample {shown(sample_id)} is in the tasks {', '.join(map(repr, sorted(tasks)))}, expected "
                "the row to name one; add a column `task`."
            )
        unit = label.get("task") or tasks[0], sample_id
        document = documents.get(unit)
        aspect = _aspect(label["aspect"], where, rubric, document)
        number = _NUMBER.fullmatch(written)
        if number is None or int(number[1]) not in aspect.scale:
            raise wrong(where, "score", written, f"a whole number from {aspect.minimum} to {aspect.maximum}")
        rater = label.get("rater") or HUMAN
        before = first.setdefault((rater, unit, aspect.name), where)
        if before is not where:
            raise DataError(
                f"{where}: rater {shown(rater)} already labelled aspect {shown(aspect.name)} of sample "
                f"{shown(sample_id)} in line {before.line}, expected one label; remove one."
            )
        if document is None:
            unmatched.add(sample_id)
        else:
            ratings.setdefault(rater, {}).setdefault(unit, {})[aspect.name] = int(number[1])
    if not first:
        raise DataError(f"{path}: found no score, expected at least one; fill in the scores.")
    return HumanLabels(ratings, tuple(sorted(unmatched)))


def _aspect(name: str, where: Where, rubric: Rubric, document: Mapping[str, Any] | None) -> Aspect:
    if document is not None:
        aspects = aspects_of(rubric, document)
    elif rubric.aspects_from is None:
        aspects = rubric.aspects
    else:  # the sample would name the aspects, but it is not known
        aspects = (Aspect(name=name),) if name else ()
    for aspect in aspects:
        if aspect.name == name:
            return aspect
    expected = first_names((repr(one.name) for one in aspects), 12) or "a name"
    raise wrong(where, "aspect", name, f"an aspect of rubric {rubric.name}: {expected}")
