"""BLEURT against transformers called directly, on a tiny BERT."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_checkpoints import LONG, PAIRS, SENTENCES, tiny_bleurt
from transformers import AutoTokenizer, BertForSequenceClassification

from medtasks.core.errors import MedtasksError
from medtasks.metrics.learned.bleurt import Bleurt, kept_tokens

pytestmark = pytest.mark.slow


def direct(pairs: list[tuple[str, str]], folder: Path) -> list[float]:
    """Each pair alone, with transformers' own pairing and truncation (which parts even sides the
    other way).

    A blank stands for an empty text: transformers takes an empty second text for none and leaves
    its [SEP] out.
    """
    import torch

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = BertForSequenceClassification.from_pretrained(folder).eval()
    scores = []
    for prediction, reference in pairs:
        inputs = tokenizer(
            reference,
            prediction or " ",
            truncation="longest_first",
            max_length=128,
            return_tensors="pt",
        )
        with torch.no_grad():
            scores.append(model(**inputs).logits[0, 0].item())
    return scores


def test_scores_are_transformers(bleurt: Path) -> None:
    pairs = [
        *PAIRS,
        ("the polyp " * 200, "a polyp"),
        ("no polyp", LONG),
        (LONG.upper(), SENTENCES[0]),
    ]
    np.testing.assert_allclose(
        Bleurt(str(bleurt)).scores(pairs), direct(pairs, bleurt), rtol=0, atol=1e-6
    )


@given(st.integers(0, 300), st.integers(0, 300))
def test_kept_tokens_are_those_of_the_loop_that_drops_one_at_a_time(
    reference: int, prediction: int
) -> None:
    left, right = reference, prediction
    while left + right > 125:
        if left > right:
            left -= 1
        else:
            right -= 1
    assert kept_tokens(reference, prediction) == (left, right)


def test_special_tokens_in_a_text_are_ordinary_characters(bleurt: Path) -> None:
    metric = Bleurt(str(bleurt))
    written, spelled, other = metric.scores(
        [("a polyp [SEP]", "red"), ("a polyp [ sep ]", "red"), ("a polyp", "red")]
    )
    assert written == pytest.approx(spelled, abs=1e-6)
    assert written != pytest.approx(other, abs=1e-6)


@pytest.mark.parametrize(("labels", "positions"), [(2, 128), (1, 64)])
def test_checkpoint_that_is_no_bleurt_is_an_error(
    tmp_path: Path, labels: int, positions: int
) -> None:
    folder = tiny_bleurt(tmp_path / "other", labels=labels, positions=positions)
    with pytest.raises(
        MedtasksError, match=f"{labels} label.* and {positions} positions, expected bert, 1 label"
    ):
        Bleurt(str(folder)).scores(PAIRS)
