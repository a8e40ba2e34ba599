"""Pooled scores: the same as rescoring the pooled samples, in any order, and never of nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from medtasks.errors import DataError, UsageError
from medtasks.metrics import aggregate, get_metric, lexical_statistics, totals

PREDICTIONS = [f"the polyp {i % 5} is in the upper-{'left' if i % 3 else 'right'} part" for i in range(40)]
REFERENCES = [f"the polyp {i % 4} lies in the upper-{'left' if i % 2 else 'right'} part" for i in range(40)]


def test_groups_equal_a_recomputation_of_their_samples() -> None:
    keys = [f"level {i % 3}" for i in range(40)]
    statistics = lexical_statistics(PREDICTIONS, REFERENCES, ["chrf"])[0]["chrf"]
    found = aggregate(get_metric("chrf"), statistics, keys)
    assert list(found.groups) == ["level 0", "level 1", "level 2"]
    for group in range(3):
        expected = sacrebleu.CHRF().corpus_score(PREDICTIONS[group::3], [REFERENCES[group::3]]).score
        assert found.groups[f"level {group}"].score == pytest.approx(expected, abs=1e-11)
        assert found.groups[f"level {group}"].samples == len(PREDICTIONS[group::3])
    assert found.overall.score == pytest.approx(sacrebleu.CHRF().corpus_score(PREDICTIONS, [REFERENCES]).score)


def test_a_sample_counts_once_in_each_class_it_names() -> None:
    statistics = np.array([[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]])
    found = aggregate(get_metric("accuracy"), statistics, [["size", "size", "color"], ["size"], []])
    assert {key: (group.score, group.samples) for key, group in found.groups.items()} == {
        "color": (1.0, 1),
        "size": (0.5, 2),
    }
    assert found.overall.samples == 3


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order(values: list[float], draw: random.Random) -> None:
    table = np.array([[value, 1.0] for value in values])
    shuffled = list(table)
    draw.shuffle(shuffled)
    assert totals(np.array(shuffled)).tobytes() == totals(table).tobytes()


def test_sums_are_correctly_rounded() -> None:
    assert totals(np.array([[1e16], [1.0], [-1e16], [0.5]])).tolist() == [1.5]


def test_no_samples_are_an_error_not_zero() -> None:
    with pytest.raises(UsageError, match="no sample"):
        aggregate(get_metric("bleu"), np.zeros((0, 10)))


def test_shapes_are_checked() -> None:
    with pytest.raises(UsageError, match=r"shape \(1, 2\), expected \(n, 10\)"):
        aggregate(get_metric("bleu"), np.zeros((1, 2)))
    with pytest.raises(UsageError, match="2 group entries for 1 samples"):
        aggregate(get_metric("accuracy"), np.zeros((1, 2)), ["a", "b"])


def test_a_statistic_that_is_not_a_number_is_named() -> None:
    with pytest.raises(DataError, match="statistic 0 of sample 1 is nan"):
        aggregate(get_metric("accuracy"), np.array([[1.0, 1.0], [np.nan, 1.0]]))
