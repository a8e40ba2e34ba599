"""Corpus BLEU without smoothing on 13a tokens: what HF ``evaluate`` calls ``bleu``."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from medtasks.metrics._ngrams import Pairs, matched_ngrams, tokens_of
from medtasks.metrics.base import Array, BatchMetric, package_version, sign

MAX_ORDER = 4

# ASCII words, without a dash after a digit, with at most one mark after each: their 13a tokens are the words and the
# marks, and sacrebleu's tokenizer takes ten times as long.
WORD = "[A-Za-z0-9]+(?:(?<![0-9])-[A-Za-z0-9]+)*"
PLAIN = re.compile(rf"{WORD}[,;:.]?(?: {WORD}[,;:.]?)*")
PLAIN_TOKEN = re.compile(rf"{WORD}|[,;:.]")


class Bleu(BatchMetric):
    """Corpus BLEU (0..1): four orders, 13a tokens, case kept, no smoothing, one reference (Papineni et al. 2002).

    Statistics (width 10) are sacrebleu's: prediction length, reference length, four matched and four possible n-gram
    counts. Without smoothing the score is 0 if an order has no match in the whole corpus, so BLEU of a single short
    sample says little.

    One deliberate difference from ``sacrebleu.BLEU``: like HF ``evaluate``, it does not strip trailing white space
    before tokenization (this matters only for texts that end in a hyphen and a line break).
    """

    name = "bleu"
    width = 2 + 2 * MAX_ORDER

    @property
    def signature(self) -> str:
        """Tokenizer, case, smoothing, order and the library's version."""
        return sign(
            self.name,
            tok="13a",
            case="mixed",
            smooth="none",
            order=MAX_ORDER,
            sacrebleu=package_version("sacrebleu"),
        )

    def table(self, pairs: Pairs) -> Array:
        """``(prediction length, reference length, 4 × matched, 4 × possible)`` in tokens and n-grams."""
        counts = matched_ngrams(*tokens_of(pairs, tokenize_13a), max_order=MAX_ORDER)
        return np.hstack([counts[:, 0, :2], counts[:, :, 2], counts[:, :, 0]]).astype(np.float64)

    def score(self, totals: Array) -> Array:
        """Brevity penalty times the geometric mean of the four precisions, ``(..., 10) -> (...)``."""
        totals = np.asarray(totals, dtype=np.float64)
        matched, possible = totals[..., 2 : 2 + MAX_ORDER], totals[..., 2 + MAX_ORDER :]
        scored = np.asarray((matched > 0).all(axis=-1))  # an order without a match makes the product 0
        precisions = np.divide(matched, possible, out=np.ones(matched.shape), where=scored[..., None])
        log_mean = np.zeros(scored.shape)
        for order in range(MAX_ORDER):  # a loop fixes the order of summation for every leading shape
            log_mean = log_mean + np.log(precisions[..., order]) / MAX_ORDER
        ratio = np.divide(totals[..., 1], totals[..., 0], out=np.ones(scored.shape), where=scored)
        penalty = np.exp(np.minimum(0.0, 1.0 - ratio))
        result: Array = np.where(scored, penalty * np.exp(log_mean), 0.0)
        return result


def tokenize_13a(text: str) -> list[str]:
    """The mteval-v13a tokens of a text, as sacrebleu's tokenizer finds them."""
    if PLAIN.fullmatch(text):
        return PLAIN_TOKEN.findall(text)
    tokens: list[str] = _tokenizer()(text).split()
    return tokens


@cache
def _tokenizer() -> Any:
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a()
