"""Agreement of the raters of a rubric's aspects, with cluster-bootstrap intervals; human
annotations from a CSV file.

A row of that file is a label: columns ``sample_id``, ``aspect`` and ``score``, and perhaps
``rater`` and ``task``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from medtasks.catalog.records import Where, wrong
from medtasks.catalog.rubric import Aspect, Rubric, aspects_of
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.sources import read_csv_rows
from medtasks.runs.agreement_report import SEED, Agreement, AgreementReport
from medtasks.stats import agreement as stats

Scores = Mapping[str, Mapping[str, float]]  # unit (a sample's id) to aspect to score

COLUMNS = ("aspect", "raters", "measure", "units", "value", "interval")  # headings of `rows`


_Item = tuple[str, tuple[float | None, ...]]  # an item's cluster, and each rater's score or None


def agreement_report(
    rubric: Rubric,
    ratings: Mapping[str, Scores],
    clusters: Mapping[str, str],
    resamples: int = 1000,
) -> AgreementReport:
    """Agreement of two or more raters under ``rubric``, by rater, unit and aspect; anything may be
    missing. Whole ``clusters`` of units are resampled. Scores of 0 and 1 are nominal, longer scales
    ordinal.
    """
    raters = tuple(sorted(ratings))
    binary = {aspect.name: aspect.binary for aspect in rubric.aspects}
    if rubric.aspects_from is not None:  # samples name them
        rated = {name for scores in ratings.values() for given in scores.values() for name in given}
        binary = dict.fromkeys(sorted(rated), True)
    parts: list[tuple[str | None, bool, list[_Item]]] = []
    for name, is_binary in binary.items():
        units = sorted(
            {unit for scores in ratings.values() for unit, given in scores.items() if name in given}
        )
        items = [
            (clusters[unit], tuple(ratings[rater].get(unit, {}).get(name) for rater in raters))
            for unit in units
        ]
        parts.append((name, is_binary, items))
    if rubric.aspects_from is not None:
        parts.insert(0, (None, True, [item for _, _, items in parts for item in items]))
    measures = [
        Agreement(aspect=aspect, raters=names, measure=measure, **dict(found))
        for aspect, is_binary, items in parts
        for names, measure, found in _measured(is_binary, raters, items, resamples)
    ]
    return AgreementReport(
        rubric=rubric.name, raters=raters, resamples=resamples, measures=tuple(measures)
    )


def _measured(
    binary: bool, raters: Sequence[str], items: Sequence[_Item], resamples: int
) -> Iterator[tuple[str, str, stats.Coefficient]]:
    """The raters, the name and the value of each measure on one aspect."""
    level: Literal["nominal", "ordinal"] = "nominal" if binary else "ordinal"

    def coefficient(statistic: stats.Statistic, of: Sequence[_Item], who: str) -> stats.Coefficient:
        if not of:
            return stats.Coefficient(units=0, reason=f"no unit was rated by {who}")
        ratings = stats.Ratings.of(list(zip(*(scores for _, scores in of), strict=True)))
        return stats.agreement_interval(
            ratings, statistic, [cluster for cluster, _ in of], resamples, SEED
        )

    of_pairs: dict[str, stats.Statistic] = {
        "raw agreement": stats.raw_agreement,
        "Cohen's kappa": stats.cohen_kappa,
    }
    if not binary:
        of_pairs["Cohen's kappa, quadratic"] = functools.partial(stats.cohen_kappa, quadratic=True)
        of_pairs["Spearman's rho"] = stats.spearman
    for one, other in itertools.combinations(range(len(raters)), 2):
        both = [(cluster, (scores[one], scores[other])) for cluster, scores in items]
        both = [item for item in both if None not in item[1]]
        for measure, statistic in of_pairs.items():
            yield f"{raters[one]}, {raters[other]}", measure, coefficient(statistic, both, "both")
    # these measures ignore who gave which score: sorted, fewer items are distinct, which is faster
    unordered = [
        (cluster, tuple(sorted(scores, key=lambda one: (one is None, one))))
        for cluster, scores in items
    ]
    by_all = [item for item in unordered if None not in item[1]]
    yield "all", "Fleiss' kappa", coefficient(stats.fleiss_kappa, by_all, "all raters")
    by_two = [item for item in unordered if len(raters) - item[1].count(None) >= 2]
    alpha = functools.partial(stats.krippendorff_alpha, level=level)
    yield "all", f"Krippendorff's alpha, {level}", coefficient(alpha, by_two, "two raters")


def rows(report: AgreementReport) -> list[tuple[str, ...]]:
    """The report as strings, a row per measure, for a table with `COLUMNS`."""
    table: list[tuple[str, ...]] = []
    for one in report.measures:
        value = "undefined" if one.value is None else f"{one.value:.3f}"
        bounds = one.reason or "" if one.low is None else f"{one.low:.3f} to {one.high:.3f}"
        table.append(
            (one.aspect or "(pooled)", one.raters, one.measure, f"{one.units:,}", value, bounds)
        )
    return table


HUMAN = "human"  # the rater of rows without one

Unit = tuple[str, str]  # task and sample id: two tasks may ask about one sample
Labels = dict[str, dict[Unit, dict[str, int]]]  # scores by rater, unit and aspect


def read_labels(
    path: Path, rubric: Rubric, documents: Mapping[Unit, Mapping[str, Any]]
) -> tuple[Labels, list[str]]:
    """The labels in the CSV file ``path``, each on an aspect of ``rubric`` within its scale, and
    the sample ids without a document, whose labels are left out. Rows without a score are skipped.
    A row without a task refers to the only task with the sample among ``documents`` (by task and
    sample id).

    Raises:
        DataError: the file cannot be read, lacks a column, or has a label that is invalid,
            duplicated, or about a sample of several tasks without naming one; the message names
            file, line and column.
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
    ratings: Labels = {}
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
        if document is not None:
            aspects = aspects_of(rubric, document)
        elif rubric.aspects_from is None:
            aspects = rubric.aspects
        else:  # the sample would name the aspects, but it is not known
            aspects = (Aspect(name=label["aspect"]),) if label["aspect"] else ()
        aspect = next((one for one in aspects if one.name == label["aspect"]), None)
        if aspect is None:
            expected = first_names((repr(one.name) for one in aspects), 12) or "a name"
            raise wrong(
                where, "aspect", label["aspect"], f"an aspect of rubric {rubric.name}: {expected}"
            )
        score = aspect.score_of(written)
        if score is None:
            raise wrong(
                where, "score", written, f"a whole number from {aspect.minimum} to {aspect.maximum}"
            )
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
            ratings.setdefault(rater, {}).setdefault(unit, {})[aspect.name] = score
    if not first:
        raise DataError(f"{path}: found no score, expected at least one; fill in the scores.")
    return ratings, sorted(unmatched)
