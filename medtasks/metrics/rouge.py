"""ROUGE-1, ROUGE-2 and ROUGE-L as the ``rouge-score`` package defines them (F1, no stemming)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import lru_cache

import numpy as np

from medtasks.metrics._ngrams import Integers, Pairs, matched_ngrams, tokens_of
from medtasks.metrics.base import Array, BatchMetric, MeanMetric, mean_table, sign

WORD = re.compile("[a-z0-9]+")
FOLLOWED = "0.1.2"
"""The version of rouge-score that gives the same values; it need not be installed."""


class Rouge(BatchMetric, MeanMetric):
    """Mean ROUGE F1 (0..1), Lin 2004, as ``rouge-score`` computes it without its Porter stemmer.

    The mean is exact. HF ``evaluate`` reports the median of 1,000 bootstrap means instead, which is random in the
    fourth digit. Tokens are runs of ``[a-z0-9]`` in the lower-cased text; a side without a token scores 0.

    Args:
        name: ``rouge1``, ``rouge2`` or ``rougeL``.

    >>> Rouge("rouge1").statistics("two pink polyps", "two polyps").tolist()
    [0.8, 1.0]
    """

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def signature(self) -> str:
        """Name, F1, stemming and the version of rouge-score that is followed."""
        return sign(f"{self.name}|f1", stem="no", rouge_score=FOLLOWED)

    def table(self, pairs: Pairs) -> Array:
        """``(F1, 1)``."""
        if self.name == "rougeL":
            rows = [(len(one), len(other), lcs_length(other, one)) for one, other in zip(*_tokens(pairs), strict=True)]
            counts = np.array(rows, dtype=np.int64)
        else:
            counts = _matches(pairs)[:, int(self.name[-1]) - 1]
        precision = counts[:, 2] / np.maximum(counts[:, 0], 1)
        recall = counts[:, 2] / np.maximum(counts[:, 1], 1)
        total = precision + recall  # the order of operations is rouge-score's, so that F1 is rounded as there
        return mean_table(np.divide(2 * precision * recall, total, out=np.zeros(len(counts)), where=total > 0))


@lru_cache(maxsize=1)  # ROUGE-1 and ROUGE-2 of the same pairs
def _matches(pairs: Pairs) -> Integers:
    return matched_ngrams(*_tokens(pairs), max_order=2)


@lru_cache(maxsize=1)
def _tokens(pairs: Pairs) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    return tokens_of(pairs, lambda text: WORD.findall(text.lower()))


def lcs_length(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence of two token lists.

    Bit-parallel (Hyyrö 2004): a Python integer holds one row of the dynamic-programming table, with a zero bit wherever
    the length grows, so a token of ``right`` costs one addition and a few logical operations.

    >>> lcs_length("a b c d".split(), "b x d".split())
    2
    """
    places: dict[Hashable, int] = {}
    for index, token in enumerate(left):
        places[token] = places.get(token, 0) | 1 << index
    full = (1 << len(left)) - 1
    row = full
    for token in right:
        if hit := row & places.get(token, 0):
            row = ((row + hit) | (row - hit)) & full
    return len(left) - row.bit_count()
