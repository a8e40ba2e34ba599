"""Clipped n-gram matches of many text pairs at once, by sorting integers instead of counting tuples.

An n-gram is encoded as one integer, from the code of its first n-1 symbols and its last symbol, prefixed with the
number of the pair and suffixed with the side that it is on. Sorted, those of one pair and n-gram are one run of
integers, and the smaller count of its two sides is the clipped match. The counts are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Integers: TypeAlias = npt.NDArray[np.int64]
Pairs: TypeAlias = "tuple[tuple[str, str], ...]"
"""Texts, (prediction, reference) each."""
LARGEST_KEY = 2**63 - 1


def tokens_of(
    pairs: Pairs, tokenize: Callable[[str], Sequence[str]]
) -> tuple[list[Sequence[str]], list[Sequence[str]]]:
    """Tokens of the predictions and of the references; each distinct text is tokenized once."""
    tokens = {text: tokenize(text) for text in dict.fromkeys(text for pair in pairs for text in pair)}
    return [tokens[prediction] for prediction, _ in pairs], [tokens[reference] for _, reference in pairs]


def matched_ngrams(
    predictions: Sequence[Sequence[Hashable]], references: Sequence[Sequence[Hashable]], max_order: int
) -> Integers:
    """Counts of every pair and order: n-grams of the prediction, of the reference, and clipped matches.

    Args:
        predictions: one sequence of symbols (a string, or a list of words) per pair.
        references: one per prediction, in the same order.
        max_order: the longest n-gram, at least 1.

    Returns:
        int64 of shape ``(pairs, max_order, 3)``.
    """
    pairs = len(predictions)
    counts = np.zeros((pairs, max_order, 3), dtype=np.int64)
    sides = (predictions, references)
    lengths = np.array([[len(text) for text in side] for side in sides], dtype=np.int64).reshape(2, pairs)
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
        if size * max(pairs * 2, alphabet) > LARGEST_KEY:  # neither these keys nor the next codes fit
            size, codes = _dense(codes)
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
        characters = "".join(str(text) for side in sides for text in side).encode("utf-32-le", "surrogatepass")
        codes = np.frombuffer(characters, dtype=np.uint32)
        place = np.cumsum(np.bincount(codes) > 0) - 1
        return place[codes], int(place[-1]) + 1
    row = [*chain.from_iterable(chain.from_iterable(sides))]
    numbers = {symbol: number for number, symbol in enumerate(dict.fromkeys(row))}
    return np.fromiter(map(numbers.__getitem__, row), np.int64, len(row)), len(numbers)


def _dense(codes: Integers) -> tuple[int, Integers]:
    """The same n-grams, renumbered from 0 without gaps."""
    values, dense = np.unique(codes, return_inverse=True)
    return len(values), dense.astype(np.int64, copy=False)
