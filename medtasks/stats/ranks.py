"""Rankings with their uncertainty: intervals of ranks, and the compact letter display."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
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
    defined = np.asarray(np.isfinite(scores).all(axis=1))
    signed = scores if higher_is_better else -scores
    found: list[tuple[int, int] | None] = []
    for own, ranked in zip(signed, defined.tolist(), strict=True):
        if not ranked:
            found.append(None)
            continue
        first = 1 + np.count_nonzero(signed[defined] > own, axis=0)
        last = np.count_nonzero(signed[defined] >= own, axis=0)
        best = np.quantile(first, TAILS[0], method="lower")
        worst = np.quantile(last, 1 - TAILS[0], method="higher")
        found.append((int(best), int(worst)))
    return found


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
    for one, two in different:
        near[place[one]].discard(place[two])
        near[place[two]].discard(place[one])
    uncovered = [set(others) for others in near]  # without a common letter yet
    letters = [[number] for number, others in enumerate(near) if not others]
    for first in range(len(near)):
        while uncovered[first]:
            group = [first, min(uncovered[first])]
            candidates = near[group[0]] & near[group[1]]
            while candidates:
                group.append(min(candidates))
                candidates &= near[group[-1]]
            for number in group:
                uncovered[number].difference_update(group)
            letters.append(sorted(group))
    shared = np.zeros((len(order), len(order)), dtype=np.int64)  # letters in common
    for group in letters:
        shared[np.ix_(group, group)] += 1
    kept = []
    for group in sorted(letters, reverse=True):
        if (shared[np.ix_(group, group)] > 1).all():
            shared[np.ix_(group, group)] -= 1
        else:
            kept.append(group)
    labels = (
        "".join(label) for length in count(1) for label in product(ascii_lowercase, repeat=length)
    )
    named = list(zip(reversed(kept), labels, strict=False))
    return {name: tuple(label for group, label in named if place[name] in group) for name in order}


def normalised_ranks(
    values: Sequence[float | None], *, higher_is_better: bool = True
) -> list[float | None]:
    """``(rank - 1) / (M - 1)`` among the M values that are not None: 0 the best, 1 the last, ties
    averaged.

    As in a published heat map (arXiv 2506.09958). A lone value has 0; None stays None.
    """
    known = [value for value in values if value is not None]
    ranks: list[float | None] = []
    for value in values:
        if value is None:
            ranks.append(None)
            continue
        better = sum(other > value if higher_is_better else other < value for other in known)
        ranks.append((better + (known.count(value) - 1) / 2) / max(len(known) - 1, 1))
    return ranks
