"""chrF and chrF++ against sacrebleu and hand-worked numbers."""

from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from metric_texts import texts

from medtasks.metrics.chrf import Chrf
from medtasks.metrics.registry import get_metric

pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=5)
BOTH = pytest.mark.parametrize(("name", "word_order"), [("chrf", 0), ("chrf++", 2)])


@BOTH
@given(rows=pairs)
def test_corpus_score_is_sacrebleu(name: str, word_order: int, rows: list[tuple[str, str]]) -> None:
    metric = get_metric(name)
    predictions, references = zip(*rows, strict=True)
    expected = sacrebleu.CHRF(word_order=word_order).corpus_score(predictions, [references]).score
    total = np.sum([metric.statistics(*row) for row in rows], axis=0)
    assert metric.score(total) == pytest.approx(expected, abs=1e-11)


@given(texts, texts)
def test_sentence_score_is_sacrebleu(prediction: str, reference: str) -> None:
    metric = get_metric("chrf++")
    expected = sacrebleu.CHRF(word_order=2).sentence_score(prediction, [reference]).score
    assert metric.score(metric.statistics(prediction, reference)) == pytest.approx(expected, abs=1e-11)


@given(texts, texts)
def test_chrf_is_the_character_part_of_chrf_plus_plus(prediction: str, reference: str) -> None:
    plain, plus = get_metric("chrf"), get_metric("chrf++")
    assert plain.statistics(prediction, reference).tolist() == plus.statistics(prediction, reference)[:18].tolist()


def test_hand_worked() -> None:
    # "abc" / "abd": 2 of 3, 1 of 2, 0 of 1 in both directions; longer orders do not exist
    mean = (2 / 3 + 1 / 2 + 0) / 3
    metric = Chrf("chrf", word_order=0)
    assert metric.score(metric.statistics("ab c", "a bd")) == pytest.approx(100 * mean)


@BOTH
def test_empty_prediction_is_zero_and_equal_text_a_hundred(name: str, word_order: int) -> None:
    metric = Chrf(name, word_order)
    assert metric.score(metric.statistics("", "two polyps")) == 0
    assert metric.score(metric.statistics("two polyps", "two polyps")) == 100


def test_signatures_tell_the_two_apart() -> None:
    assert "|nw:0|" in get_metric("chrf").signature
    assert "|nw:2|" in get_metric("chrf++").signature
