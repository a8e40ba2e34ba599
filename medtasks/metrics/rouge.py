"""ROUGE with rouge-score's values, from n-gram counts of many pairs at once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np

from medtasks.metrics.base import Array, MeanMetric, Pairs, mean_table, sign, tokens_of
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.ngrams import Integers, matched_ngrams

TOKEN = re.compile("[a-z0-9]+")


class Rouge(MeanMetric):
    """Mean ROUGE F1 (0..1), Lin 2004, as ``rouge-score`` computes it without its Porter stemmer:
    ``rouge1``, ``rouge2`` or ``rougeL``. HF ``evaluate`` reports the median of 1,000 bootstrap
    means instead.

    Tokens are runs of ``[a-z0-9]`` in the lower-cased text; a side without a token scores 0.

    >>> Rouge("rouge1").statistics("two pink polyps", "two polyps").tolist()
    [0.8, 1.0]
    """

    def __init__(self, name: str) -> None:
        """``name`` is ``rouge1``, ``rouge2`` or ``rougeL``."""
        self.name = name
        # equal texts without a to z and digits score 0, answers of one word score 0 in ROUGE-2
        self.facts = MetricFacts(
            headline=31 if name == "rougeL" else NOT_IN_SUMMARY,
            reference_score=None if name == "rouge2" else 1.0,
            cited=("lin2004rouge",),
        )
        # rouge-score 0.1.2 gives the same values
        self.signature = sign(f"{name}|f1", stem="no", rouge_score="0.1.2")

    def table(self, pairs: Pairs) -> Array:
        """``(F1, 1)`` of each pair."""
        counts = self._counts(pairs)
        precision = counts[:, 2] / np.maximum(counts[:, 0], 1)
        recall = counts[:, 2] / np.maximum(counts[:, 1], 1)
        # the order of operations is rouge-score's, so that F1 is rounded as there
        total = precision + recall
        f1 = np.divide(2 * precision * recall, total, out=np.zeros(len(counts)), where=total > 0)
        return mean_table(f1)

    def _counts(self, pairs: Pairs) -> Integers:
        """Counts ``(pairs, 3)`` of what is compared: in the prediction, in the reference, in
        both.
        """
        if self.name == "rougeL":
            return _common_subsequences(pairs)
        order = int(self.name[-1])
        return _matches(pairs)[:, order - 1]


def _common_subsequences(pairs: Pairs) -> Integers:
    """Counts ``(pairs, 3)``: the tokens of the prediction, of the reference, and the length of
    their longest common subsequence.
    """
    counts = []
    for prediction, reference in zip(*_tokens(pairs), strict=True):
        common = lcs_length(reference, prediction)
        counts.append((len(prediction), len(reference), common))
    return np.array(counts, dtype=np.int64)


@lru_cache(maxsize=1)  # ROUGE-1 and ROUGE-2 of the same pairs
def _matches(pairs: Pairs) -> Integers:
    """The matched n-grams of tokens."""
    return matched_ngrams(*_tokens(pairs), max_order=2)


@lru_cache(maxsize=1)
def _tokens(pairs: Pairs) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    return tokens_of(pairs, lambda text: TOKEN.findall(text.lower()))


def lcs_length(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence of two token lists.

    Bit-parallel (Hyyrö 2004): a Python integer holds one row of the dynamic-programming table, with
    a zero bit wherever the length grows.

    >>> lcs_length("a b c d".split(), "b x d".split())
    2
    """
    places: dict[Hashable, int] = {}
    for index, token in enumerate(left):
        places[token] = places.get(token, 0) | 1 << index
    full = (1 << len(left)) - 1
    row = full
    for token in right:
        hit = row & places.get(token, 0)
        if hit:
            row = ((row + hit) | (row - hit)) & full
    return len(left) - row.bit_count()


METRICS = (Rouge("rouge1"), Rouge("rouge2"), Rouge("rougeL"))
