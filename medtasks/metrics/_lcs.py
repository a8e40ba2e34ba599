"""Length of the longest common subsequence, a row of the table per machine operation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def lcs_length(left: Sequence[Hashable], right: Sequence[Hashable]) -> int:
    """Length of the longest common subsequence of two token lists.

    Bit-parallel (Hyyrö 2004): a Python integer holds one row of the dynamic-programming table, a zero bit
    wherever the length grows, so the cost is one addition and a few logical operations per token of
    ``right``.

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
