"""LLaVA-Med's metrics are those of its scripts."""

from __future__ import annotations

import pytest

from medtasks_classics.scoring import Exact, Recall, words_of


# worked out by hand from calculate_f1score and calculate_exactmatch of LLaVA-Med
@pytest.mark.parametrize(
    ("prediction", "reference", "recall", "exact"),
    [
        ("left lung", "left lung", 1, 1),
        ("the left lung", "Left lung.", 1, 1),
        ("lung", "left lung", 1 / 2, 1),
        ("left lower lung", "left lung", 1, 2 / 3),
        ("lung lung", "left lung", 2 / 3, 1 / 2),
        ("two nodules", "2 nodules", 1, 1),
        ("none", "0", 1, 1),
        ("left-sided", "left sided", 1, 1),
        ("right", "left", 0, 0),
        ("", "left", 0, 0),
        ("...", "left", 0, 0),
    ],
)
def test_the_metrics_of_llava_med(prediction: str, reference: str, recall: float, exact: float) -> None:
    assert Recall().statistics(prediction, reference).tolist() == pytest.approx([recall, 1])
    assert Exact().statistics(prediction, reference).tolist() == pytest.approx([exact, 1])


def test_a_mark_beside_a_blank_is_deleted_everywhere() -> None:
    assert sorted(words_of("T1-weighted - bright")) == ["bright", "t1weighted"]
    assert sorted(words_of("T1-weighted")) == ["t1", "weighted"]
    assert sorted(words_of("1.5 cm.")) == ["1.5", "cm"]
