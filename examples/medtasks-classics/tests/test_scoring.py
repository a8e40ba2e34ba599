"""Answers are read as documented, and LLaVA-Med's metrics are those of its scripts."""

from __future__ import annotations

import pytest

from medtasks_classics.scoring import ClosedFilter, Exact, Recall, closed_answer, words_of

YES_NO = ("yes", "no")


@pytest.mark.parametrize(
    ("response", "words", "answer"),
    [
        ("Yes", YES_NO, "yes"),
        ("No.", YES_NO, "no"),
        ("Yes, there is an effusion.", YES_NO, "yes"),
        ("The answer is no", YES_NO, "no"),
        ("<think>yes?</think>No", YES_NO, "no"),
        ("Normal", YES_NO, "normal"),
        ("yes and no", YES_NO, "yes and no"),
        ("No, the left one", (), "no, the left one"),
        ("CT.", (), "ct"),
        ("不是。", (), "不是"),
        ("", YES_NO, ""),
    ],
)
def test_a_closed_answer_is_read(response: str, words: tuple[str, ...], answer: str) -> None:
    assert closed_answer(response, words) == answer
    assert ClosedFilter().apply([[response]], [{"guesses": list(words)}]) == [answer]


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
