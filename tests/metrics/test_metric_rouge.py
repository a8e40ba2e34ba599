"""ROUGE against rouge-score and hand-worked numbers."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from hypothesis import given
from metric_texts import texts
from rouge_score.rouge_scorer import RougeScorer

from medtasks.metrics.registry import get_metric, lexical_statistics
from medtasks.metrics.rouge import Rouge

NAMES = ("rouge1", "rouge2", "rougeL")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("rouge1", 2 * (3 / 4) * (3 / 3) / (3 / 4 + 3 / 3)),  # red, polyp, left of 4 and 3 tokens
        ("rouge2", 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)),  # "red polyp" of 3 and 2 bigrams
        ("rougeL", 2 * (3 / 4) * (3 / 3) / (3 / 4 + 3 / 3)),  # red … polyp … left
    ],
)
def test_hand_worked(name: str, expected: float) -> None:
    assert Rouge(name).statistics("Red polyp, lower left", "red polyp left").tolist() == pytest.approx([expected, 1])


@pytest.mark.parametrize(("prediction", "reference"), [("", "a polyp"), ("a polyp", ""), ("", ""), ("漢字", "漢字")])
def test_text_without_tokens_scores_zero(prediction: str, reference: str) -> None:
    assert [Rouge(name).statistics(prediction, reference).tolist() for name in NAMES] == [[0.0, 1.0]] * 3


@given(texts, texts)
def test_single_and_batch_are_rouge_score(prediction: str, reference: str) -> None:
    expected = RougeScorer(list(NAMES), use_stemmer=False).score(reference, prediction)
    batch, _ = lexical_statistics([prediction], [reference], NAMES)
    for name in NAMES:
        assert get_metric(name).statistics(prediction, reference).tolist() == [expected[name].fmeasure, 1]
        assert batch[name].tolist() == [[expected[name].fmeasure, 1]]


def test_signature_names_what_moves_the_score() -> None:
    assert Rouge("rougeL").signature == f"rougeL|f1|stem:no|rouge-score:{version('rouge-score')}"
