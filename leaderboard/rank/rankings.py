"""Ranks of models by one score, with intervals, and groups that do not differ significantly."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from medtasks.metrics.base import Array, totals
from medtasks.metrics.registry import get_metric
from medtasks.runs.table import without_value
from medtasks.stats.bootstrap import joint_resamples
from medtasks.stats.paired import (
    ClusteredScore,
    PairedDifference,
    clustered_score,
    detectable_difference,
    few_clusters,
    holm,
    paired_difference,
)
from medtasks.stats.ranks import compact_letters, rank_intervals

from ..board.board import BoardColumn, Pair, Ranked, Ranking

SEED = 0
LEVEL = 0.05
"""Two models differ significantly if Holm's p-value is at most this."""
VERDICTS = ("accuracy", "exact_match", "judged_strict")
"""Metrics that score an answer as right or wrong."""


def rank_models(
    column: BoardColumn,
    tables: Mapping[str, Array],
    clusters: Sequence[str],
    *,
    cluster: str,
    signature: str,
    unranked: Mapping[str, str] | None = None,
    resamples: int = 1000,
) -> Ranking:
    """Ranks with intervals, all pairs, and the compact letter display.

    ``tables`` has by model the metric's statistics ``(items, width)``; rows without a value
    (`medtasks.runs.table.without_value`) do not count, and models with only such rows are not ranked. ``clusters`` has
    the cluster of each item, ``cluster`` says what that is, ``unranked`` why further models have no rank.
    """
    metric = get_metric(column.metric)
    counted = {model: ~without_value(tables[model]) for model in sorted(tables)}
    # zeros in the rows that do not count, so that sums ignore them
    zeroed = {
        model: tables[model] if rows.all() else np.where(rows[:, None], tables[model], 0.0)
        for model, rows in counted.items()
    }
    values = {model: float(metric.score(totals(table))) for model, table in zeroed.items()}
    unscored = {model: "no item counts" for model, value in values.items() if not math.isfinite(value)}
    sign = 1 if column.higher_is_better else -1
    order = sorted(values.keys() - unscored.keys(), key=lambda model: (-sign * values[model], model))
    # items that count for no model, and their clusters, are not resampled
    kept = np.any([counted[model] for model in order], axis=0) if order else np.zeros(len(clusters), dtype=bool)
    inside = [clusters[row] for row in np.flatnonzero(kept).tolist()]
    drawn = joint_resamples(
        [(zeroed[model][kept], metric.score) for model in order], inside, resamples=resamples, seed=SEED
    )
    bounds = rank_intervals(drawn, higher_is_better=column.higher_is_better)
    number = {name: code for code, name in enumerate(sorted({*clusters}))}
    codes = np.array([number[name] for name in clusters], dtype=np.int64)
    pairs = _all_pairs(column.metric, {model: (tables[model], counted[model]) for model in order}, codes, values)
    letters = compact_letters(
        [(one.first, one.second) for one in pairs if one.p_holm is not None and one.p_holm <= LEVEL], order
    )
    # pairs that never differ have no standard error
    errors = [(one.standard_error, one.clusters) for one in pairs if one.standard_error]
    known = [found for one in errors if (found := detectable_difference(*one)) is not None]
    return Ranking(
        column=column,
        items=len(inside),
        clusters=len({*inside}),
        cluster=cluster,
        signature=signature,
        ranked=tuple(
            Ranked(
                model=model,
                rank=1 + sum(sign * values[other] > sign * values[model] for other in order),
                best=bound.best,
                worst=bound.worst,
                letters=letters[model],
            )
            for model, bound in zip(order, bounds, strict=True)
        ),
        pairs=pairs,
        detectable=statistics.median(known) if known else None,
        warning=few_clusters(len({*inside}), len(pairs)) if pairs else None,
        unranked=dict(sorted({**unscored, **(unranked or {})}.items())),
    )


def _all_pairs(
    metric: str,
    models: Mapping[str, tuple[Array, npt.NDArray[np.bool_]]],
    codes: npt.NDArray[np.int64],
    values: Mapping[str, float],
) -> tuple[Pair, ...]:
    """Every pair of models, compared over the items that count for both; ``models`` has statistics and which count."""
    score = get_metric(metric).score

    def side(model: str, rows: npt.NDArray[np.bool_]) -> ClusteredScore:
        whole = np.array_equal(rows, models[model][1])
        return own[model] if whole else clustered_score(models[model][0][rows], codes[rows], score)

    # most pairs have all items in common
    own = {model: clustered_score(table[rows], codes[rows], score) for model, (table, rows) in models.items()}
    pairs = []
    for first, second in combinations(models, 2):
        both = models[first][1] & models[second][1]
        found = paired_difference(side(first, both), side(second, both))
        if not (found.items and math.isfinite(found.difference)):
            found = PairedDifference(
                first=values[first],
                second=values[second],
                difference=values[first] - values[second],
                items=0,
                clusters=0,
                reason="no item has a value from both; the difference is between scores over different items",
            )
        pairs.append(pair_of(first, second, metric, (models[first][0], models[second][0]), found))
    return with_holm(pairs)


def pair_of(first: str, second: str, metric: str, tables: tuple[Array, Array], found: PairedDifference) -> Pair:
    """The pair for the difference ``found`` between two models with these statistics ``(items, width)`` of the same
    items; Holm's correction comes later."""
    wins, losses = _wins(*tables) if metric in VERDICTS and found.items else (None, None)
    shared = ("items", "clusters", "difference", "low", "high", "p_value", "reason", "standard_error")
    values = {name: getattr(found, name) for name in shared}
    return Pair(first=first, second=second, **values, p_holm=None, wins=wins, losses=losses)


def with_holm(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with p-values corrected over all of them, and with warnings about too few clusters."""
    adjusted = holm([pair.p_value for pair in pairs])
    tests = sum(p is not None for p in adjusted)
    return tuple(
        pair.model_copy(update={"p_holm": p, "warning": few_clusters(pair.clusters, tests)})
        for pair, p in zip(pairs, adjusted, strict=True)
    )


def _wins(first: Array, second: Array) -> tuple[int, int] | tuple[None, None]:
    """Items that only the first and only the second has right; None if an item was asked several times."""
    both = ~(without_value(first) | without_value(second))
    one, other = first[both], second[both]
    for table in (one, other):
        if not ((table[:, 1] == 1).all() and ((table[:, 0] == 0) | (table[:, 0] == 1)).all()):
            return None, None
    surplus = one[:, 0] - other[:, 0]
    return int((surplus > 0).sum()), int((surplus < 0).sum())
