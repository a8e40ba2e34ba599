"""BLEU against its formula, written out here once more, and against sacrebleu."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_texts import almost_plain, texts
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from medtasks.metrics.bleu import Bleu, tokenize_13a

pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=5)


def formula(rows: list[tuple[str, str]]) -> float:
    """Papineni et al. 2002, equations 1-3, N = 4, uniform weights, one reference."""
    matched, possible, ours, theirs = [0] * 4, [0] * 4, 0, 0
    for prediction, reference in rows:
        p, r = tokenize_13a(prediction), tokenize_13a(reference)
        ours, theirs = ours + len(p), theirs + len(r)
        for n in range(1, 5):
            left = [tuple(p[i : i + n]) for i in range(len(p) - n + 1)]
            right = [tuple(r[i : i + n]) for i in range(len(r) - n + 1)]
            matched[n - 1] += sum(min(left.count(gram), right.count(gram)) for gram in set(left))
            possible[n - 1] += len(left)
    if 0 in matched:
        return 0.0
    precision = math.prod(m / t for m, t in zip(matched, possible, strict=True)) ** 0.25
    return precision * min(1.0, math.exp(1 - theirs / ours))


def corpus(rows: list[tuple[str, str]]) -> float:
    return float(Bleu().score(np.sum([Bleu().statistics(*row) for row in rows], axis=0)))


@given(pairs)
def test_is_the_formula(rows: list[tuple[str, str]]) -> None:
    assert corpus(rows) == pytest.approx(formula(rows), abs=1e-12)


@settings(max_examples=500)
@given(almost_plain)
def test_tokens_are_sacrebleus_for_plain_and_other_text(text: str) -> None:
    assert tokenize_13a(text) == Tokenizer13a()(text).split()


@given(pairs)
def test_is_sacrebleu_without_smoothing(rows: list[tuple[str, str]]) -> None:
    rows = [(prediction.rstrip(), reference.rstrip()) for prediction, reference in rows]
    predictions, references = zip(*rows, strict=True)
    expected = sacrebleu.BLEU(smooth_method="none").corpus_score(predictions, [references]).score
    assert corpus(rows) == pytest.approx(expected / 100, abs=1e-12)


def test_hand_worked() -> None:
    # 5 of 6 unigrams, 3 of 5 bigrams, 2 of 4 trigrams, 1 of 3 fourgrams; six tokens for six
    expected = (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25
    assert corpus([("one small red polyp is here", "one small red polyp was here")]) == pytest.approx(expected)


def test_short_prediction_pays_the_brevity_penalty() -> None:
    assert corpus([("a b c d", "a b c d e f")]) == pytest.approx(math.exp(1 - 6 / 4))


def test_no_match_of_an_order_is_zero_by_definition() -> None:
    assert corpus([("a polyp", "a polyp")]) == 0.0


def test_trailing_hyphen_and_line_break_follow_evaluate_not_sacrebleu() -> None:
    assert Bleu().statistics("polyp-\n", "polyp")[2] == 1


def test_score_takes_any_leading_shape() -> None:
    rows = [Bleu().statistics("a b c d e", "a b c d x"), Bleu().statistics("a b", "c d")]
    grid = np.array([[rows[0], rows[1]], [rows[1], rows[0]]])
    assert Bleu().score(grid).tolist() == [
        [corpus([("a b c d e", "a b c d x")]), 0.0],
        [0.0, Bleu().score(rows[0])],
    ]
