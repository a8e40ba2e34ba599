"""BLEU with sacrebleu's values, from n-gram counts of many pairs at once."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from medtasks.metrics.base import Array, Installed, Pairs, package_version, sign, tokens_of
from medtasks.metrics.facts import NOT_IN_SUMMARY, MetricFacts
from medtasks.metrics.ngrams import matched_ngrams

BLEU_ORDER = 4
SACREBLEU = package_version("sacrebleu")

# ASCII words, without a dash after a digit, with at most one mark after each: their 13a tokens are
# the words and the marks, and sacrebleu's tokenizer takes ten times as long.
WORD = "[A-Za-z0-9]+(?:(?<![0-9])-[A-Za-z0-9]+)*"
PLAIN = re.compile(rf"{WORD}[,;:.]?(?: {WORD}[,;:.]?)*")
PLAIN_TOKEN = re.compile(rf"{WORD}|[,;:.]")


class Bleu(Installed):
    """Corpus BLEU (0..1): four orders, 13a tokens, case kept, no smoothing, one reference (Papineni
    et al. 2002).

    Statistics (width 10) are sacrebleu's: prediction length, reference length, four matched and
    four possible n-gram counts. The score is 0 if an order has no match in the whole corpus. Like
    HF ``evaluate``, and unlike sacrebleu, it does not strip trailing white space before
    tokenization.
    """

    name = "bleu"
    facts = MetricFacts(headline=NOT_IN_SUMMARY, cited=("papineni2002bleu", "post2018call"))
    width = 2 + 2 * BLEU_ORDER
    signature = sign(
        name, tok="13a", case="mixed", smooth="none", order=BLEU_ORDER, sacrebleu=SACREBLEU
    )

    def table(self, pairs: Pairs) -> Array:
        """``(prediction length, reference length, 4 × matched, 4 × possible)`` in tokens and
        n-grams.
        """
        counts = matched_ngrams(*tokens_of(pairs, tokenize_13a), max_order=BLEU_ORDER)
        return np.hstack([counts[:, 0, :2], counts[:, :, 2], counts[:, :, 0]]).astype(np.float64)

    def score(self, totals: Array) -> Array:
        """Brevity penalty times the geometric mean of the four precisions."""
        totals = np.asarray(totals, dtype=np.float64)
        matched, possible = totals[..., 2 : 2 + BLEU_ORDER], totals[..., 2 + BLEU_ORDER :]
        # an order without a match makes the product 0
        scored = np.asarray((matched > 0).all(axis=-1))
        precisions = np.divide(
            matched, possible, out=np.ones(matched.shape), where=scored[..., None]
        )
        log_mean = np.zeros(scored.shape)
        for order in range(BLEU_ORDER):  # a loop fixes the order of summation for every shape
            log_mean = log_mean + np.log(precisions[..., order]) / BLEU_ORDER
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
    """sacrebleu's 13a tokenizer."""
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a()


METRICS = (Bleu(),)
