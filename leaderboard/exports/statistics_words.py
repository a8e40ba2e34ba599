"""Intervals and tests in words, for methods sections: a text for each interval method."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from medtasks.stats.intervals import STUDENT, WILSON

from ..schema.board import Board
from .prose import Citation, Code, Sentence

_METHODS: dict[str, Sentence] = {
    WILSON: (
        "of bounded scores are Wilson's intervals for a proportion ",
        Citation("wilson1927probable"),
        " with the effective number of items in clusters and quantiles of Student's t ",
        Citation("korn1998confidence"),
        " ",
        Citation("franco2019comparative"),
    ),
    STUDENT: (
        (
            "of unbounded scores use Student's t and the standard error of a jackknife over "
            "clusters "
        ),
        Citation("efron1993introduction"),
    ),
}
"""Interval methods in words, by the name that scores have for them (`medtasks.stats.intervals`)."""
_PAIRS = (
    "Models were compared in pairs, on the items that both have, by a cluster sign-flip test: it "
    "flips the signs of the clusters' contributions to the difference. The interval of a "
    "difference contains the values that this test does not reject."
)
_TIES = (
    ", extended to the ranks of all models that do not differ significantly in the corrected "
    "tests. Models that share a letter do not differ significantly at the 5 % level "
)


def interval_words(method: str) -> Sentence:
    """An interval method in words; one without words here is named as it is.

    >>> interval_words("wilson-clustered")[0]
    "of bounded scores are Wilson's intervals for a proportion "
    >>> interval_words("bca")
    ('were computed by the method ', Code(text='bca'))
    """
    return _METHODS.get(method, ("were computed by the method ", Code(method)))


def interval_sentences(
    board: Board, clusters: Sequence[str], methods: Iterable[str]
) -> list[Sentence]:
    """How the intervals of scores were computed, by these ``methods``; ``clusters`` are what
    answers are correlated in, such as patients.
    """
    level = f"{100 * board.confidence:g} %"
    sentences: list[Sentence] = [
        (f"Intervals ({level}, in brackets) ", *interval_words(method), ".")
        for method in sorted(set(methods), reverse=True)
    ]
    if clusters:
        sentences.append((f"A cluster contains all items of one {' or '.join(clusters)}.",))
    return sentences


def comparison_sentences(board: Board) -> list[Sentence]:
    """How models were compared and ranked (`medtasks.stats.paired`, `medtasks.stats.ranks`)."""
    draws = f"{board.resamples:,} draws of whole clusters with replacement (seed {board.seed})"
    return [
        (_PAIRS,),
        (
            "P-values were corrected over all pairs of a ranking by Holm's method ",
            Citation("holm1979simple"),
            ".",
        ),
        (
            f"Intervals of ranks are percentiles over {draws} ",
            Citation("goldstein1996league"),
            _TIES,
            Citation("piepho2004algorithm"),
            ".",
        ),
    ]
