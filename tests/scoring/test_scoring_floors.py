"""Floors of an accuracy: guessing, and always giving the most frequent correct option."""

from __future__ import annotations

import pytest
from made_samples import made_sample

from medtasks.catalog.registry import get_benchmark
from medtasks.runs.samples import Sample
from medtasks.scoring.floors import Floors, floors_of
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.scores import MetricScore

MI_CXR = get_benchmark("mi_cxr")


def answered(number: int, target: str, filtered: str = "A", **document: object) -> Sample:
    return made_sample(
        "mi_cxr_tel_single",
        number,
        filtered == target,
        sample_id=f"tel-{number}",
        cluster=f"p{number}",
        target=target,
        filtered=filtered,
        document={"target": target, "qtype": "single_emergence", "group_type": "TEL", **document},
    )


def accuracy(samples: list[Sample]) -> MetricScore:
    return score_samples(samples, MI_CXR).metrics["accuracy"]


def test_the_best_constant_answer_is_the_most_frequent_correct_option() -> None:
    score = accuracy([answered(number, target) for number, target in enumerate("ACCBCDACE")])
    assert (score.constant, score.constant_answer, score.chance) == (4 / 9, "C", 0.2)
    assert score.value == 2 / 9
    assert score.margin_over_chance == pytest.approx(2 / 9 - 1 / 5)
    assert score.margin_over_floor == pytest.approx(2 / 9 - 4 / 9)


def test_of_equally_frequent_options_the_first_in_the_alphabet_is_named() -> None:
    assert floors_of([5] * 4, ["D", "B", "D", "B"]) == Floors(0.2, 0.5, "B")


def test_each_group_has_the_constant_answer_of_its_own_questions() -> None:
    samples = [answered(number, target) for number, target in enumerate("EEEEBBA")]
    scores = score_samples(samples, MI_CXR, ["null_option"])
    groups = {
        name: group.metrics["accuracy"] for name, group in scores.breakdowns["null_option"].items()
    }
    assert (groups["null option right"].constant_answer, groups["null option right"].constant) == (
        "E",
        1.0,
    )
    assert groups["another option right"].constant_answer == "B"
    assert groups["another option right"].constant == 2 / 3
    assert scores.metrics["accuracy"].constant_answer == "E"


def test_options_of_the_documents_own_count_as_well() -> None:
    own = {"choices": dict.fromkeys("ABC", "?")}
    score = accuracy([answered(number, target, **own) for number, target in enumerate("BBA")])
    assert (score.chance, score.constant, score.constant_answer) == (1 / 3, 2 / 3, "B")


def test_what_cannot_be_guessed_has_no_floor() -> None:
    score = accuracy([answered(0, "A"), answered(1, "A", multi_select=True)])
    assert (score.chance, score.constant, score.constant_answer) == (None, None, None)
    assert score.margin_over_floor is None


def test_where_an_answer_is_unknown_only_chance_is_a_floor() -> None:
    floors = floors_of([4, 4], ["", "A"])
    assert floors == Floors(0.25)
    assert floors.highest == 0.25
    assert Floors(None).highest is None
