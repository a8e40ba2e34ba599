"""chrF (character n-grams) and chrF++ (with word n-grams), as sacrebleu defines them."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from medtasks.metrics._ngrams import Integers, Pairs, matched_ngrams, tokens_of
from medtasks.metrics.base import Array, BatchMetric, package_version, sign

CHAR_ORDER = 6
BETA = 2


class Chrf(BatchMetric):
    """Corpus chrF (0..100), Popović 2015 and 2017: character orders 1–6, beta 2, white space and case as in sacrebleu.

    Statistics are sacrebleu's: for every order the n-gram counts of prediction and reference and the matches,
    ``3 × (6 + word_order)`` numbers. The first 18 of ``chrf++`` are those of ``chrf``. Orders that either side lacks
    are left out of the average (sacrebleu's effective order); if none is left, the score is 0.

    The column "CHRF++" of arXiv 2506.09958, table 6, was computed with word order 0, so it is comparable with ``chrf``.

    Args:
        name: ``chrf`` or ``chrf++``.
        word_order: highest word n-gram order, 0 for chrF and 2 for chrF++.
    """

    def __init__(self, name: str, word_order: int) -> None:
        self.name = name
        self.word_order = word_order
        self.width = 3 * (CHAR_ORDER + word_order)

    @property
    def signature(self) -> str:
        """Orders, beta, case, white space, smoothing and the library's version."""
        return sign(
            self.name,
            nc=CHAR_ORDER,
            nw=self.word_order,
            beta=BETA,
            case="mixed",
            space="no",
            eff="yes",
            sacrebleu=package_version("sacrebleu"),
        )

    def table(self, pairs: Pairs) -> Array:
        """``(prediction count, reference count, matches)`` for every order, character orders first."""
        characters = _sacrebleu_rows(_characters(pairs))
        if not self.word_order:
            return characters
        return np.hstack(
            [characters, _sacrebleu_rows(matched_ngrams(*tokens_of(pairs, _words), max_order=self.word_order))]
        )

    def score(self, totals: Array) -> Array:
        """F2 of the mean precision and mean recall over the effective orders, ``(..., width) -> (...)``."""
        totals = np.asarray(totals, dtype=np.float64)
        shape = totals.shape[:-1]
        precision, recall, orders = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for order in range(CHAR_ORDER + self.word_order):
            predicted, expected, matched = (totals[..., 3 * order + column] for column in range(3))
            present = (predicted > 0) & (expected > 0)
            precision = precision + np.divide(matched, predicted, out=np.zeros(shape), where=present)
            recall = recall + np.divide(matched, expected, out=np.zeros(shape), where=present)
            orders = orders + present
        precision = np.divide(precision, orders, out=np.zeros(shape), where=orders > 0)
        recall = np.divide(recall, orders, out=np.zeros(shape), where=orders > 0)
        denominator = BETA**2 * precision + recall
        numerator = (1 + BETA**2) * precision * recall
        return 100 * np.divide(numerator, denominator, out=np.zeros(shape), where=denominator > 0)


@lru_cache(maxsize=1)  # chrF and chrF++ of the same pairs
def _characters(pairs: Pairs) -> Integers:
    squeezed = {text: "".join(text.split()) for pair in pairs for text in pair}
    return matched_ngrams([squeezed[one] for one, _ in pairs], [squeezed[other] for _, other in pairs], CHAR_ORDER)


def _sacrebleu_rows(counts: Integers) -> Array:
    """sacrebleu's rows: the prediction count of an order is 0 if the reference has no such n-gram."""
    predicted = np.where(counts[:, :, 1] > 0, counts[:, :, 0], 0)
    rows = np.stack([predicted, counts[:, :, 1], counts[:, :, 2]], axis=-1)
    return rows.reshape(len(counts), -1).astype(np.float64)


def _words(text: str) -> list[str]:
    """The words of chrF++: split at white space, one punctuation mark split off a word's end or start."""
    words: list[str] = _sacrebleu()._remove_punctuation(text)
    return words


@cache
def _sacrebleu() -> Any:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(char_order=CHAR_ORDER, word_order=2, beta=BETA)
