"""BLEU, chrF and ROUGE: the values of sacrebleu and rouge-score, from n-gram counts of many pairs
at once.

Clipped n-gram matches are counted by sorting integers instead of counting tuples. An n-gram is
encoded as one integer, from the code of its first n-1 symbols and its last symbol, prefixed with
the number of the pair and suffixed with the side that it is on. Sorted, those of one pair and
n-gram are one run of integers, and the smaller count of its two sides is the clipped match. The
counts are exact.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import (
    Array,
    Installed,
    MeanMetric,
    Pairs,
    mean_table,
    package_version,
    sign,
    tokens_of,
)
from medtasks.metrics.facts import MetricFacts

Integers: TypeAlias = npt.NDArray[np.int64]
LARGEST_KEY = 2**63 - 1


def matched_ngrams(
    predictions: Sequence[Sequence[Hashable]],
    references: Sequence[Sequence[Hashable]],
    max_order: int,
) -> Integers:
    """Counts ``(pairs, max_order, 3)``: n-grams of the prediction, of the reference, and clipped
    matches.

    Each side has one sequence of symbols (a string, or a list of words) per pair.
    """
    pairs = len(predictions)
    counts = np.zeros((pairs, max_order, 3), dtype=np.int64)
    sides = (predictions, references)
    lengths = np.array([[len(text) for text in side] for side in sides], dtype=np.int64).reshape(
        2, pairs
    )
    for order in range(max_order):
        counts[:, order, :2] = np.maximum(lengths - order, 0).T
    if not lengths.sum():
        return counts

    symbols, size = _symbols(sides)
    alphabet = size
    ends = np.cumsum(lengths.ravel())
    text = np.repeat(np.arange(2 * pairs), lengths.ravel())  # texts are numbered predictions first
    after = ends[text] - np.arange(len(symbols))  # symbols from here to the end of the text
    side, pair = np.divmod(text, pairs)
    start = np.arange(len(symbols))
    codes = symbols
    for order in range(max_order):
        if order:
            longer = after[start] > order
            start, codes = start[longer], codes[longer]
            codes, size = codes * alphabet + symbols[start + order], size * alphabet
        if (
            size * max(pairs * 2, alphabet) > LARGEST_KEY
        ):  # neither these keys nor the next codes fit
            values, codes = np.unique(codes, return_inverse=True)  # renumbered from 0 without gaps
            size, codes = len(values), codes.astype(np.int64, copy=False)
        if not len(start):  # no text is so long
            break
        keys = np.sort((pair[start] * size + codes) * 2 + side[start])
        grams = keys >> 1
        begins = np.concatenate([[0], np.flatnonzero(grams[1:] != grams[:-1]) + 1])
        in_references = np.add.reduceat(keys & 1, begins)
        in_predictions = np.diff(begins, append=len(keys)) - in_references
        matches = np.concatenate([[0], np.cumsum(np.minimum(in_predictions, in_references))])
        of_pair = np.searchsorted(grams[begins], np.arange(pairs + 1) * size)
        counts[:, order, 2] = np.diff(matches[of_pair])
    return counts


def _symbols(sides: Sequence[Sequence[Sequence[Hashable]]]) -> tuple[Integers, int]:
    """All texts end to end as small integers, and how many different symbols there are."""
    if isinstance(sides[0][0], str):  # a character is a number already
        characters = "".join(str(text) for side in sides for text in side).encode(
            "utf-32-le", "surrogatepass"
        )
        codes = np.frombuffer(characters, dtype=np.uint32)
        place = np.cumsum(np.bincount(codes) > 0) - 1
        return place[codes], int(place[-1]) + 1
    row = [*chain.from_iterable(chain.from_iterable(sides))]
    numbers = {symbol: number for number, symbol in enumerate(dict.fromkeys(row))}
    return np.fromiter(map(numbers.__getitem__, row), np.int64, len(row)), len(numbers)


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
    facts = MetricFacts(cited=("papineni2002bleu", "post2018call"))
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
        scored = np.asarray(
            (matched > 0).all(axis=-1)
        )  # an order without a match makes the product 0
        precisions = np.divide(
            matched, possible, out=np.ones(matched.shape), where=scored[..., None]
        )
        log_mean = np.zeros(scored.shape)
        for order in range(
            BLEU_ORDER
        ):  # a loop fixes the order of summation for every leading shape
            log_mean = log_mean + np.log(precisions[..., order]) / BLEU_ORDER
        ratio = np.divide(totals[..., 1], totals[..., 0], out=np.ones(scored.shape), where=scored)
        penalty = np.exp(np.minimum(0.0, 1.0 - ratio))
        result: Array = np.where(scored, penalty * np.exp(log_mean), 0.0)
        return result


def tokenize_13a(text: str) -> list[str]:
    """The mteval-v13a tokens of a text, as sacrebleu's tokenizer finds them."""
    if PLAIN.fullmatch(text):
        return PLAIN_TOKEN.findall(text)
    tokens: list[str] = _sacrebleu()[0](text).split()
    return tokens


@cache
def _sacrebleu() -> tuple[Any, Any]:
    """Its 13a tokenizer, and its chrF++, which splits texts at white space and a punctuation mark
    off a word's ends.
    """
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

    return Tokenizer13a(), CHRF(word_order=2)


CHAR_ORDER = 6
BETA = 2


class Chrf(Installed):
    """Corpus chrF (0..100), Popović 2015 and 2017: character orders 1–6, beta 2, white space and
    case as in sacrebleu.

    Statistics are sacrebleu's: for every order the n-gram counts of prediction and reference and
    the matches, ``3 × (6 + word_order)`` numbers. Orders that either side lacks are left out of the
    average (sacrebleu's effective order); if none is left, the score is 0. ``word_order`` is the
    highest word n-gram order, 0 for chrF, 2 for chrF++.
    """

    def __init__(self, name: str, word_order: int) -> None:
        self.name = name
        self.facts = MetricFacts(
            unit="points",
            headline=0 if word_order else 32,
            cited=("popovic2015chrf", "post2018call"),
        )
        self.word_order = word_order
        self.width = 3 * (CHAR_ORDER + word_order)
        orders = {"nc": CHAR_ORDER, "nw": word_order, "beta": BETA}
        self.signature = sign(
            name, **orders, case="mixed", space="no", eff="yes", sacrebleu=SACREBLEU
        )

    def table(self, pairs: Pairs) -> Array:
        """``(prediction count, reference count, matches)`` for every order, character orders
        first.
        """
        counts = _characters(pairs)
        if self.word_order:
            words = matched_ngrams(
                *tokens_of(pairs, _sacrebleu()[1]._remove_punctuation), max_order=self.word_order
            )
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
        precision, recall, orders = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for order in range(CHAR_ORDER + self.word_order):
            predicted, expected, matched = (totals[..., 3 * order + column] for column in range(3))
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
    return matched_ngrams(
        *tokens_of(pairs, lambda text: "".join(text.split())), max_order=CHAR_ORDER
    )


ROUGE_TOKEN = re.compile("[a-z0-9]+")


class Rouge(MeanMetric):
    """Mean ROUGE F1 (0..1), Lin 2004, as ``rouge-score`` computes it without its Porter stemmer:
    ``rouge1``, ``rouge2`` or ``rougeL``. HF ``evaluate`` reports the median of 1,000 bootstrap
    means instead.

    Tokens are runs of ``[a-z0-9]`` in the lower-cased text; a side without a token scores 0.

    >>> Rouge("rouge1").statistics("two pink polyps", "two polyps").tolist()
    [0.8, 1.0]
    """

    def __init__(self, name: str) -> None:
        self.name = name
        # equal texts without a to z and digits score 0, answers of one word score 0 in ROUGE-2
        self.facts = MetricFacts(
            headline=31 if name == "rougeL" else 0,
            reference_score=None if name == "rouge2" else 1.0,
            cited=("lin2004rouge",),
        )
        self.signature = sign(
            f"{name}|f1", stem="no", rouge_score="0.1.2"
        )  # which gives the same values

    def table(self, pairs: Pairs) -> Array:
        if self.name == "rougeL":
            sides = zip(*_rouge_tokens(pairs), strict=True)
            counts = np.array(
                [(len(one), len(other), lcs_length(other, one)) for one, other in sides],
                dtype=np.int64,
            )
        else:
            counts = _rouge_matches(pairs)[:, int(self.name[-1]) - 1]
        precision = counts[:, 2] / np.maximum(counts[:, 0], 1)
        recall = counts[:, 2] / np.maximum(counts[:, 1], 1)
        total = (
            precision + recall
        )  # the order of operations is rouge-score's, so that F1 is rounded as there
        return mean_table(
            np.divide(2 * precision * recall, total, out=np.zeros(len(counts)), where=total > 0)
        )


@lru_cache(maxsize=1)  # ROUGE-1 and ROUGE-2 of the same pairs
def _rouge_matches(pairs: Pairs) -> Integers:
    return matched_ngrams(*_rouge_tokens(pairs), max_order=2)


@lru_cache(maxsize=1)
def _rouge_tokens(pairs: Pairs) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    return tokens_of(pairs, lambda text: ROUGE_TOKEN.findall(text.lower()))


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
        if hit := row & places.get(token, 0):
            row = ((row + hit) | (row - hit)) & full
    return len(left) - row.bit_count()
