"""Clipped n-gram matches of many pairs at once, exactly.

They are counted by sorting integers instead of counting tuples. An n-gram is encoded as one
integer, from the code of its first n-1 symbols and its last symbol, prefixed with the number of the
pair and suffixed with the side that it is on. Sorted, those of one pair and n-gram are one run of
integers, and the smaller count of its two sides is the clipped match.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
LARGEST_KEY = 2**63 - 1
"""The largest number in 64 bits with a sign."""


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
    texts = [*predictions, *references]
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    for order in range(max_order):
        counts[:, order, :2] = np.maximum(lengths - order, 0).reshape(2, pairs).T
    if lengths.sum():
        _fill_matches(counts, texts, lengths)
    return counts


def _fill_matches(counts: Integers, texts: Sequence[Sequence[Hashable]], lengths: Integers) -> None:
    """Write the clipped matches of all orders into ``counts[:, :, 2]``.

    ``texts`` are all predictions, then all references.
    """
    pairs, max_order, _ = counts.shape
    symbols, alphabet = _symbols(texts)
    text_of = np.repeat(np.arange(len(texts)), lengths)
    symbols_to_end = np.cumsum(lengths)[text_of] - np.arange(len(symbols))
    side, pair = np.divmod(text_of, pairs)
    grams = _Ngrams(np.arange(len(symbols)), symbols, alphabet)
    for order in range(max_order):
        if order:
            is_continued = symbols_to_end[grams.starts] > order
            grams = grams.lengthened(is_continued, symbols, order, alphabet)
        if grams.size * max(len(texts), alphabet) > LARGEST_KEY:
            # neither these keys nor the next codes fit into 64 bits
            grams = grams.renumbered()
        if not len(grams.starts):  # no text is so long
            break
        keys = (pair[grams.starts] * grams.size + grams.codes) * 2 + side[grams.starts]
        counts[:, order, 2] = _clipped_matches(keys, pairs, grams.size)


class _Ngrams(NamedTuple):
    """All n-grams of one order: the places ``(n,)`` of their first symbols, and their codes
    ``(n,)``, which are below ``size`` and equal for equal n-grams.
    """

    starts: Integers
    codes: Integers
    size: int

    def lengthened(
        self, is_continued: npt.NDArray[np.bool_], symbols: Integers, order: int, alphabet: int
    ) -> _Ngrams:
        """The n-grams of the next order: those that a symbol follows ``order`` places after their
        first one, with it.
        """
        starts = self.starts[is_continued]
        codes = self.codes[is_continued] * alphabet + symbols[starts + order]
        return _Ngrams(starts, codes, self.size * alphabet)

    def renumbered(self) -> _Ngrams:
        """The same n-grams with codes from 0 without gaps."""
        values, ranks = np.unique(self.codes, return_inverse=True)
        return _Ngrams(self.starts, ranks.astype(np.int64, copy=False), len(values))


def _clipped_matches(keys: Integers, pairs: int, size: int) -> Integers:
    """Clipped matches ``(pairs,)``: the smaller count of the two sides, summed over the n-grams.

    ``keys`` are ``(pair · size + code) · 2 + side``, with side 1 for the references.
    """
    keys = np.sort(keys)
    grams = keys >> 1
    begins = np.concatenate([[0], np.flatnonzero(grams[1:] != grams[:-1]) + 1])
    in_references = np.add.reduceat(keys & 1, begins)
    in_predictions = np.diff(begins, append=len(keys)) - in_references
    matches = np.concatenate([[0], np.cumsum(np.minimum(in_predictions, in_references))])
    first_of_pair = np.searchsorted(grams[begins], np.arange(pairs + 1) * size)
    return np.diff(matches[first_of_pair])


def _symbols(texts: Sequence[Sequence[Hashable]]) -> tuple[Integers, int]:
    """All texts end to end as small integers, and how many different symbols there are."""
    if isinstance(texts[0], str):
        # four bytes are a character's number
        characters = "".join(map(str, texts)).encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(characters, dtype=np.uint32)
        rank_of_code = np.cumsum(np.bincount(codes) > 0) - 1
        return rank_of_code[codes], int(rank_of_code[-1]) + 1
    symbols = [*chain.from_iterable(texts)]
    numbers = {symbol: number for number, symbol in enumerate(dict.fromkeys(symbols))}
    return np.fromiter(map(numbers.__getitem__, symbols), np.int64, len(symbols)), len(numbers)
