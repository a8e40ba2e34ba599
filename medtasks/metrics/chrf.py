"""chrF (character n-grams) and chrF++ (with word n-grams), as sacrebleu defines them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from medtasks.metrics.base import Array, package_version, sign

__all__ = ["Chrf"]

CHAR_ORDER = 6
BETA = 2


class Chrf:
    """Corpus chrF (0..100), Popović 2015 and 2017: character orders 1–6, beta 2, white space and case as
    sacrebleu.

    Statistics are sacrebleu's: for every order the n-gram counts of prediction and reference and the matches,
    ``3 × (6 + word_order)`` numbers. The first 18 of ``chrf++`` are those of ``chrf``, so one extraction
    serves both. Orders which either side lacks are left out of the average (sacrebleu's effective order);
    where none is left, as for an empty prediction, sacrebleu's score is 0.

    The column "CHRF++" of Kvasir-VQA-x1's table 6 was made with word order 0, hence compares with ``chrf``.

    Args:
        name: ``chrf`` or ``chrf++``.
        word_order: highest word n-gram order, 0 for chrF and 2 for chrF++.
    """

    higher_is_better = True

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

    def unavailable(self) -> str | None:
        """None: chrF needs nothing beyond the installed packages."""
        return None

    def statistics(self, prediction: str, reference: str) -> Array:
        """``(prediction count, reference count, matches)`` for every order, character orders first."""
        # sacrebleu's own significance tests enter through this method; its scores come from the same lists
        rows = _counter(self.word_order)._extract_corpus_statistics([prediction], [[reference]])
        return np.asarray(rows[0], dtype=np.float64)

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


def chrf_words(text: str) -> list[str]:
    """The words of chrF++: split at white space, one punctuation mark cut off a word's end or start."""
    words: list[str] = _counter(2)._remove_punctuation(text)
    return words


@cache
def _counter(word_order: int) -> Any:
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(char_order=CHAR_ORDER, word_order=word_order, beta=BETA)
