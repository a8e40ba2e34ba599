"""Panels of judges: what they decide together, what stays open, and what that leaves possible."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rubric_cases import TASKS, case

from medtasks.catalog.judge_prompt import aspects_of
from medtasks.catalog.rubric import Aspect
from medtasks.catalog.rubric_totals import total
from medtasks.core.errors import MedtasksError
from medtasks.runs.verdict import Rule
from medtasks.scoring.panels import bounds, combine

ONE = [Aspect(name="score_of_it", maximum=4)]


def votes(*scores: int | None) -> dict[str, dict[str, int] | None]:
    """A panel a, b, c, … that judged one aspect."""
    return {
        "abcdefg"[place]: None if one is None else {"score_of_it": one}
        for place, one in enumerate(scores)
    }


panels = st.lists(st.none() | st.integers(0, 4), min_size=1, max_size=7).map(
    lambda scores: votes(*scores)
)


@pytest.mark.parametrize(
    ("panel", "expected"),
    [
        ((3,), 3),
        ((1, 1, None), 1),
        ((2, 2, 2, 0, None), 2),
        ((1, 0), "tie: a gave 1, b gave 0"),
        ((2, 2, 1, 0), "no majority: a gave 2, b gave 2, c gave 1, d gave 0"),
        ((1, None), "b has no verdict; a gave 1"),
        ((None, 1, 0), "a has no verdict; b gave 1, c gave 0"),
        ((0, 1, 2, 3, None), "tie: a gave 0, b gave 1, c gave 2, d gave 3; e has no verdict"),
        ((None, None), "a, b have no verdict"),
    ],
)
def test_more_than_half_of_the_panel_decides_and_what_is_open_says_why(
    panel: tuple[int | None, ...], expected: int | str
) -> None:
    found = combine(votes(*panel), ONE, "majority")
    name = "score_of_it"
    assert found == (
        ({}, {name: expected}) if isinstance(expected, str) else ({name: expected}, {})
    )


def test_a_mean_needs_every_judge_and_scores_of_another_rubric_are_refused() -> None:
    assert combine(votes(1, 2), ONE, "mean") == ({"score_of_it": 1.5}, {})
    assert combine(votes(1, 2, None), ONE, "mean") == ({}, {"score_of_it": "c has no verdict"})
    off_the_scale = [
        {"score_of_it": score} for score in (5, -1, 0.5, float("nan"), float("inf"), "1", None)
    ]
    for wrong in ({}, {"score_of_it": 1, "more": 1}, *off_the_scale):
        with pytest.raises(MedtasksError, match="judge b gave"):
            combine({"a": {"score_of_it": 1}, "b": wrong}, ONE, "majority")


@given(panel=panels, rule=st.sampled_from(["majority", "mean"]), missing=st.integers(0, 4))
def test_every_aspect_is_decided_or_open_whatever_the_order_of_judges_or_the_missing_would_say(
    panel: dict[str, Any], rule: Rule, missing: int
) -> None:
    decided, undecided = combine(panel, ONE, rule)
    assert combine(dict(reversed(panel.items())), ONE, rule) == (decided, undecided)
    assert {*decided} ^ {*undecided} == {"score_of_it"}
    full, _ = combine(
        {judge: given or {"score_of_it": missing} for judge, given in panel.items()}, ONE, rule
    )
    if decided:
        assert full == decided
        assert rule == "mean" or 2 * list(panel.values()).count(decided) > len(panel)
    elif undecided["score_of_it"].startswith(("tie", "no majority")):
        assert not full


def test_total_of_means_by_hand() -> None:
    values = total(
        *case("med_cmr_medreason"), {"ground_truth": 2.5, "visual": 3.5, "faithfulness": 1.5}
    )
    # faithfulness 1.5 is above 1 and at most 2: visual counts no more than 3
    assert values == {
        "ground_truth": 62.5,
        "visual": 75,
        "faithfulness": 37.5,
        "total": 100 * (2.5 + 3) / 8,
    }
    halves = total(
        case("kvasir_aspects")[0], {"question_class": ["one", "two"]}, {"one": 0.5, "two": 1.0}
    )
    assert halves == {"one": 0.5, "two": 1, "strict": 0, "partial": 0.75}


def test_bounds_by_hand() -> None:
    low, high = bounds(*case("med_cmr_medreason"), {"ground_truth": 4, "visual": 4})
    assert (low["total"], high["total"]) == (
        100 * (4 + 1) / 8,
        100,
    )  # faithfulness 0 leaves 1 of the visual score
    low, high = bounds(case("kvasir_aspects")[0], {"question_class": ["one", "two"]}, {"one": 1})
    assert (low["strict"], low["partial"], high["strict"]) == (0, 0.5, 1)


@given(data=st.data(), name=st.sampled_from(sorted(TASKS)))
def test_bounds_hold_whatever_the_open_aspects_turn_out_to_be(
    data: st.DataObject, name: str
) -> None:
    rubric, document = case(name)
    if rubric.aspects_from:
        document[rubric.aspects_from] = ["one", "two", "three"]
    aspects = aspects_of(rubric, document)
    scores = {one.name: data.draw(st.floats(one.minimum, one.maximum)) for one in aspects}
    known = {one.name: scores[one.name] for one in aspects if data.draw(st.booleans())}
    low, high = bounds(rubric, document, known)
    found = total(rubric, document, scores)
    assert low.keys() == found.keys() == high.keys()
    assert all(low[key] <= found[key] <= high[key] for key in found)
