"""Rankings with their uncertainty: intervals of ranks, and the compact letter display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, product
from string import ascii_lowercase

import numpy as np

from medtasks.metrics.base import Array
from medtasks.stats.bootstrap import TAILS


def rank_intervals(scores: Array, *, higher_is_better: bool = True) -> list[tuple[int, int] | None]:
    """The best and the worst rank of each model when all are scored in the same resamples.

    In a resample, models of equal score share all of their places: the first counts for the best
    rank and the last for the worst. The bounds are percentiles of these, rounded outwards to ranks
    that occurred (Goldstein and Spiegelhalter 1996). Among models of nearly equal true score they
    are too short to be a confidence set of the true rank (Xie, Singh and Zhang 2009);
    `with_tied_ranks` widens them.

    ``scores`` ``(models, resamples)`` are those of `joint_resamples`. A model without a finite
    score in every resample is not ranked (None) and takes no place.
    """
    is_ranked = np.asarray(np.isfinite(scores).all(axis=1))
    signed = scores if higher_is_better else -scores
    ranked_scores = signed[is_ranked]
    intervals: list[tuple[int, int] | None] = []
    for number, model_scores in enumerate(signed):
        if not is_ranked[number]:
            intervals.append(None)
            continue
        first_places = 1 + np.count_nonzero(ranked_scores > model_scores, axis=0)
        last_places = np.count_nonzero(ranked_scores >= model_scores, axis=0)
        best = np.quantile(first_places, TAILS[0], method="lower")
        worst = np.quantile(last_places, 1 - TAILS[0], method="higher")
        intervals.append((int(best), int(worst)))
    return intervals


def with_tied_ranks(
    bounds: Sequence[tuple[int, int] | None],
    order: Sequence[str],
    different: Iterable[tuple[str, str]],
) -> list[tuple[int, int] | None]:
    """The intervals, widened to all ranks that a model may have by the pairwise tests.

    A model's true rank lies behind those that are significantly better and before those that are
    significantly worse. With tests that keep 5 % together, as by Holm's method, all of these ranges
    hold at once with a confidence of 95 % (Klein, Wright and Wieczorek 2020 do the same from joint
    intervals). ``order`` are the models, best first, with their ``bounds``; of a pair in
    ``different`` the better one comes first.
    """
    better, worse = Counter[str](), Counter[str]()
    for ahead, behind in different:
        better[behind] += 1
        worse[ahead] += 1
    widened: list[tuple[int, int] | None] = []
    ranked = sum(bound is not None for bound in bounds)
    for name, bound in zip(order, bounds, strict=True):
        if bound is None:
            widened.append(None)
            continue
        best, worst = bound
        widened.append((min(best, 1 + better[name]), max(worst, ranked - worse[name])))
    return widened


def compact_letters(
    different: Iterable[tuple[str, str]], order: Sequence[str]
) -> dict[str, tuple[str, ...]]:
    """Letters for each model: two models share one if and only if they are not significantly
    different.

    The compact letter display of Piepho 2004. His insert-and-absorb algorithm may need
    exponentially many intermediate letters, so letters are grown instead, as in Gramm et al. 2007:
    from the first two models without a common letter, by every model, best first, that does not
    differ from a holder. Then letters whose every pair shares another letter are dropped, starting
    with the last. ``order`` are the models, best first; after "z" comes "aa".
    """
    place = {name: number for number, name in enumerate(order)}
    near = [set(range(len(order))) - {number} for number in range(len(order))]
    for first, second in different:
        near[place[first]].discard(place[second])
        near[place[second]].discard(place[first])
    groups = _without_covered(_grown_groups(near), len(order))
    letters: dict[str, list[str]] = {name: [] for name in order}
    for group, letter in zip(groups, _letters(), strict=False):
        for number in group:
            letters[order[number]].append(letter)
    return {name: tuple(letters[name]) for name in order}


def _grown_groups(near: Sequence[set[int]]) -> list[list[int]]:
    """Groups of models that do not differ from each other, and have every such pair in common.

    ``near`` has for each model those that do not differ from it; one without any is a group of its
    own.
    """
    uncovered = [set(neighbours) for neighbours in near]  # pairs without a group yet
    groups = [[number] for number, neighbours in enumerate(near) if not neighbours]
    for first in range(len(near)):
        while uncovered[first]:
            second = min(uncovered[first])
            group = [first, second]
            candidates = near[first] & near[second]
            while candidates:
                group.append(min(candidates))
                candidates &= near[group[-1]]
            for number in group:
                uncovered[number].difference_update(group)
            groups.append(sorted(group))
    return groups


def _without_covered(groups: Iterable[list[int]], models: int) -> list[list[int]]:
    """The groups in order, without those whose every pair is in another group that is kept; the
    last are dropped first.
    """
    shared = np.zeros((models, models), dtype=np.int64)  # groups in common
    for group in groups:
        shared[np.ix_(group, group)] += 1
    kept = []
    for group in sorted(groups, reverse=True):
        pairs = np.ix_(group, group)
        if (shared[pairs] > 1).all():
            shared[pairs] -= 1
        else:
            kept.append(group)
    return kept[::-1]


def _letters() -> Iterator[str]:
    """``a`` to ``z``, then ``aa``, ``ab`` and so on."""
    for length in count(1):
        for letters in product(ascii_lowercase, repeat=length):
            yield "".join(letters)


def normalised_ranks(
    values: Sequence[float | None], *, higher_is_better: bool = True
) -> list[float | None]:
    """``(rank - 1) / (M - 1)`` among the M values that are not None: 0 the best, 1 the last, ties
    averaged.

    As in a published heat map (arXiv 2506.09958). A lone value has 0; None stays None.
    """
    ranked = [value for value in values if value is not None]
    sign = 1 if higher_is_better else -1
    last = max(len(ranked) - 1, 1)
    ranks: list[float | None] = []
    for value in values:
        if value is None:
            ranks.append(None)
            continue
        better = sum(sign * rival > sign * value for rival in ranked)
        ties = ranked.count(value) - 1
        ranks.append((better + ties / 2) / last)
    return ranks
