"""Agreement of raters under a rubric: by hand, and as the statistics give it singly."""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any

import pytest

from medtasks.catalog.rubric_files import load_rubric
from medtasks.judge.agreement import COLUMNS, agreement_report, rows
from medtasks.runs.agreement_report import AgreementReport
from medtasks.stats.agreement import (
    Coefficient,
    Ratings,
    agreement_interval,
    cohen_kappa,
    fleiss_kappa,
    krippendorff_alpha,
    raw_agreement,
    spearman,
)

KVASIR = load_rubric("kvasir_aspects")
REASON = load_rubric("med_cmr_medreason")
FEW = 50


def binary(**scores: str) -> dict[str, dict[str, dict[str, int]]]:
    """Raters' scores of units u0, u1, … under aspect `a`; a dash is missing."""
    return {
        rater: {f"u{place}": {"a": int(one)} for place, one in enumerate(given) if one != "-"}
        for rater, given in scores.items()
    }


def own_clusters(ratings: Any) -> dict[str, str]:
    return {unit: unit for scores in ratings.values() for unit in scores}


def simulated(units: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Three raters on three scales, of which the third leaves some units out; four units a
    cluster.
    """
    draw = random.Random(5)
    ratings: dict[str, Any] = {"judge-b": {}, "judge-a": {}, "human": {}}
    for unit in range(units):
        truth = {aspect.name: draw.randint(0, 4) for aspect in REASON.aspects}
        for rater, given in ratings.items():
            if rater != "human" or unit % 3:
                given[f"u{unit:03}"] = {
                    name: min(4, max(0, score + draw.choice([-1, 0, 0, 1])))
                    for name, score in truth.items()
                }
    return ratings, {f"u{unit:03}": f"image{unit // 4}" for unit in range(units)}


def measured(report: AgreementReport) -> dict[tuple[str | None, str, str], Coefficient]:
    """The coefficients by aspect, raters and measure."""
    return {
        (one.aspect, one.raters, one.measure): Coefficient(
            **one.model_dump(include={*Coefficient.model_fields})
        )
        for one in report.measures
    }


def test_two_judges_by_hand() -> None:
    ratings = binary(one="1111000011", two="1110001011")
    found = measured(agreement_report(KVASIR, ratings, own_clusters(ratings), FEW))
    # 8 of 10 agree; both say 1 in 6 of 10, so chance is 0.36 + 0.16
    # alpha: 1 - (n - 1) * disagreeing / chance = 1 - 19 * 4 / (2 * 12 * 8)
    expected = {
        ("one, two", "raw agreement"): 0.8,
        ("one, two", "Cohen's kappa"): (0.8 - 0.52) / 0.48,
        ("all", "Fleiss' kappa"): (0.8 - 0.52) / 0.48,
        ("all", "Krippendorff's alpha, nominal"): 1 - 19 * 4 / 192,
    }
    assert {one.units for one in found.values()} == {10}
    for aspect in (None, "a"):
        values = {
            (raters, measure): one.value
            for (of, raters, measure), one in found.items()
            if of == aspect
        }
        assert values == pytest.approx(expected)


def test_pooled_counts_every_aspect_of_every_unit() -> None:
    one = {"u1": {"a": 1, "b": 0}, "u2": {"a": 1}, "u3": {"b": 1}}
    two = {"u1": {"a": 1, "b": 1}, "u2": {"a": 0}, "u3": {"b": 1}}
    found = measured(
        agreement_report(KVASIR, {"one": one, "two": two}, {"u1": "x", "u2": "y", "u3": "z"}, FEW)
    )
    raw = {aspect: one for (aspect, _, measure), one in found.items() if measure == "raw agreement"}
    assert {aspect: one.units for aspect, one in raw.items()} == {None: 4, "a": 2, "b": 2}
    assert raw[None].value == 0.5


def test_values_and_intervals_are_those_that_each_statistic_has_alone() -> None:
    ratings, clusters = simulated(60)
    report = agreement_report(REASON, ratings, clusters, FEW)
    found, aspect = measured(report), REASON.aspects[0].name
    assert list(dict.fromkeys(one.aspect for one in report.measures)) == [
        one.name for one in REASON.aspects
    ]

    def alone(statistic: Any, raters: list[str], units: list[str]) -> Any:
        scores = [[ratings[rater].get(unit, {}).get(aspect) for unit in units] for rater in raters]
        return agreement_interval(
            Ratings.of(scores), statistic, [clusters[unit] for unit in units], FEW
        )

    of_pairs = {
        "raw agreement": raw_agreement,
        "Cohen's kappa": cohen_kappa,
        "Cohen's kappa, quadratic": functools.partial(cohen_kappa, quadratic=True),
        "Spearman's rho": spearman,
    }
    everyone, everything, of_all = sorted(ratings), sorted(clusters), sorted(ratings["human"])
    ordinal = functools.partial(krippendorff_alpha, level="ordinal")
    expected = {
        ("all", "Krippendorff's alpha, ordinal"): alone(ordinal, everyone, everything),
        ("all", "Fleiss' kappa"): alone(fleiss_kappa, everyone, of_all),
    }
    for one, other in itertools.combinations(everyone, 2):
        common = sorted(ratings[one].keys() & ratings[other].keys())
        for measure, statistic in of_pairs.items():
            expected[f"{one}, {other}", measure] = alone(statistic, [one, other], common)
    assert expected == {
        (raters, measure): one for (of, raters, measure), one in found.items() if of == aspect
    }
    assert all(one.low < one.value < one.high for one in expected.values())


def test_no_order_changes_a_byte() -> None:
    ratings, clusters = simulated(30)
    turned = {
        rater: dict(reversed(list(scores.items())))
        for rater, scores in reversed(list(ratings.items()))
    }
    first, second = (agreement_report(REASON, one, clusters, FEW) for one in (ratings, turned))
    assert first.model_dump_json() == second.model_dump_json()
    assert AgreementReport.model_validate_json(first.model_dump_json()) == first


def test_what_is_undefined_says_why_also_in_the_table() -> None:
    ratings = binary(one="11--", two="11--", three="--01")
    report = agreement_report(KVASIR, ratings, own_clusters(ratings), FEW)
    found = measured(report)
    assert (
        found["a", "one, two", "raw agreement"].value,
        found["a", "one, two", "Cohen's kappa"].value,
    ) == (1, None)
    apart, every = found["a", "one, three", "Cohen's kappa"], found["a", "all", "Fleiss' kappa"]
    assert (apart.units, apart.value, apart.reason) == (0, None, "no unit was rated by both")
    assert every.reason == "no unit was rated by all raters"
    assert found["a", "all", "Krippendorff's alpha, nominal"].units == 2
    table = rows(report)
    assert all(len(row) == len(COLUMNS) for row in table)
    assert [row[0] for row in table] == ["(pooled)"] * 8 + ["a"] * 8
    assert ("a", "one, two", "raw agreement", "2", "1.000") in {row[:5] for row in table}
    (undefined,) = (row for row in table if row[:3] == ("a", "one, two", "Cohen's kappa"))
    assert undefined[4] == "undefined"
    assert "one category" in undefined[5]
