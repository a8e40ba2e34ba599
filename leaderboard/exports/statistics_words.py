"""What a methods section says of intervals and tests: a sentence for each method that scores can have."""

from __future__ import annotations

from collections.abc import Sequence

from ..board.board import Board
from .prose import Citation, Code, Sentence

PERCENTILE = "percentile"
"""Percentiles of a cluster bootstrap (`medtasks.stats.bootstrap.joint_intervals`)."""
_METHODS: dict[str, Sentence] = {
    PERCENTILE: ("percentile intervals of a cluster bootstrap ", Citation("davison1997bootstrap")),
}
"""Interval methods in words, by the name that scores have for them."""
_PAIRS = (
    "Models were compared in pairs on the items that both have, by a test that flips the signs of the clusters' "
    "contributions to the difference; the interval of a difference holds what this test does not reject."
)


def interval_words(method: str) -> Sentence:
    """An interval method in words; one without words here is named as it is.

    >>> interval_words("percentile")[0], interval_words("bca")
    ('percentile intervals of a cluster bootstrap ', ('intervals by the method ', Code(text='bca')))
    """
    return _METHODS.get(method, ("intervals by the method ", Code(method)))


def interval_sentence(board: Board, clusters: Sequence[str], method: str = PERCENTILE) -> Sentence:
    """How the intervals of scores were computed; ``clusters`` are what is resampled, such as patients."""
    units = f" (by {' or '.join(clusters)})" if clusters else ""
    drawn = f"; whole clusters{units} were drawn with replacement, {board.resamples:,} times with seed {board.seed}."
    return (f"Brackets hold {100 * board.confidence:g} % ", *interval_words(method), drawn)


def comparison_sentences() -> list[Sentence]:
    """How models were compared and ranked (`medtasks.stats.paired`, `medtasks.stats.ranks`)."""
    return [
        (_PAIRS,),
        ("P-values were corrected over all pairs of a ranking by Holm's method ", Citation("holm1979simple"), "."),
        (
            "Intervals of ranks are percentiles over the same resamples ",
            Citation("goldstein1996league"),
            "; models that share a letter do not differ significantly at the 5 % level ",
            Citation("piepho2004algorithm"),
            ".",
        ),
    ]
