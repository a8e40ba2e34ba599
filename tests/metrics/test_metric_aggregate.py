"""Pooled scores: the same as rescoring the pooled samples, in any order, and never of nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.aggregate import corpus_score, totals
from medtasks.metrics.registry import get_metric, lexical_statistics

PREDICTIONS = [f"the polyp {i % 5} is in the upper-{'left' if i % 3 else 'right'} part" for i in range(40)]
REFERENCES = [f"the polyp {i % 4} lies in the upper-{'left' if i % 2 else 'right'} part" for i in range(40)]


def test_the_score_of_a_part_is_that_of_its_samples() -> None:
    statistics = lexical_statistics(PREDICTIONS, REFERENCES, ["chrf"])[0]["chrf"]
    for part in (slice(0, 40), slice(0, 40, 3), slice(1, 40, 3)):
        expected = sacrebleu.CHRF().corpus_score(PREDICTIONS[part], [REFERENCES[part]]).score
        assert corpus_score(get_metric("chrf"), statistics[part]) == pytest.approx(expected, abs=1e-11)


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
        corpus_score(get_metric("bleu"), np.zeros((0, 10)))


def test_shapes_are_checked() -> None:
    with pytest.raises(UsageError, match=r"shape \(1, 2\), expected \(n, 10\)"):
        corpus_score(get_metric("bleu"), np.zeros((1, 2)))


def test_a_statistic_that_is_not_a_number_is_named() -> None:
    with pytest.raises(DataError, match="statistic 0 of sample 1 is nan"):
        corpus_score(get_metric("accuracy"), np.array([[1.0, 1.0], [np.nan, 1.0]]))
