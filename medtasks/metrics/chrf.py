"""chrF and chrF++ with sacrebleu's values, from n-gram counts of many pairs at once."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np

from medtasks.metrics.base import Array, Installed, Pairs, package_version, sign, tokens_of
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.ngrams import Integers, matched_ngrams

CHAR_ORDER = 6
BETA = 2


class Chrf(Installed):
    """Corpus chrF (0..100), Popović 2015 and 2017: character orders 1–6, beta 2, white space and
    case as in sacrebleu.

    Statistics are sacrebleu's: for every order the n-gram counts of prediction and reference and
    the matches, ``3 × (6 + word_order)`` numbers. Orders that either side lacks are left out of the
    average (sacrebleu's effective order); if none is left, the score is 0.
    """

    def __init__(self, name: str, word_order: int) -> None:
        """``word_order`` is the highest word n-gram order: 0 for chrF, 2 for chrF++."""
        self.name = name
        self.facts = MetricFacts(
            unit="points",
            headline=NOT_IN_SUMMARY if word_order else 32,
            cited=("popovic2015chrf", "post2018call"),
        )
        self.word_order = word_order
        self.width = 3 * (CHAR_ORDER + word_order)
        self.signature = sign(
            name,
            nc=CHAR_ORDER,
            nw=word_order,
            beta=BETA,
            case="mixed",
            space="no",
            eff="yes",
            sacrebleu=package_version("sacrebleu"),
        )

    def table(self, pairs: Pairs) -> Array:
        """``(prediction count, reference count, matches)`` for every order, character orders
        first.
        """
        counts = _characters(pairs)
        if self.word_order:
            words = matched_ngrams(*tokens_of(pairs, _words), max_order=self.word_order)
            counts = np.hstack([counts, words])
        # in sacrebleu's rows the prediction count of an order is 0 if the reference has no such
        # n-gram
        predicted = np.where(counts[:, :, 1] > 0, counts[:, :, 0], 0)
        rows = np.stack([predicted, counts[:, :, 1], counts[:, :, 2]], axis=-1)
        return rows.reshape(len(counts), -1).astype(np.float64)

    def score(self, totals: Array) -> Array:
        """F2 of the mean precision and mean recall over the effective orders, ``(..., width) ->
        (...)``.
        """
        totals = np.asarray(totals, dtype=np.float64)
        shape = totals.shape[:-1]
        precision = np.zeros(shape)
        recall = np.zeros(shape)
        orders = np.zeros(shape)
        for order in range(CHAR_ORDER + self.word_order):
            predicted = totals[..., 3 * order]
            expected = totals[..., 3 * order + 1]
            matched = totals[..., 3 * order + 2]
            present = (predicted > 0) & (expected > 0)
            precision = precision + np.divide(
                matched, predicted, out=np.zeros(shape), where=present
            )
            recall = recall + np.divide(matched, expected, out=np.zeros(shape), where=present)
            orders = orders + present
        precision = np.divide(precision, orders, out=np.zeros(shape), where=orders > 0)
        recall = np.divide(recall, orders, out=np.zeros(shape), where=orders > 0)
        denominator = BETA**2 * precision + recall
        numerator = (1 + BETA**2) * precision * recall
        return 100 * np.divide(numerator, denominator, out=np.zeros(shape), where=denominator > 0)


@lru_cache(maxsize=1)  # chrF and chrF++ of the same pairs
def _characters(pairs: Pairs) -> Integers:
    """The matched n-grams of characters, without white space."""
    return matched_ngrams(*tokens_of(pairs, _without_space), max_order=CHAR_ORDER)


def _without_space(text: str) -> str:
    """The characters of a text that are compared."""
    return "".join(text.split())


def _words(text: str) -> list[str]:
    """sacrebleu's words: split at white space, and a punctuation mark off a word's ends."""
    words: list[str] = _library()._remove_punctuation(text)
    return words


@cache
def _library() -> Any:
    """sacrebleu's chrF++."""
    from sacrebleu.metrics.chrf import CHRF

    return CHRF(word_order=2)


METRICS = (Chrf("chrf", word_order=0), Chrf("chrf++", word_order=2))
