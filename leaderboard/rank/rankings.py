"""Ranks of models by one score, with intervals, and groups that do not differ significantly."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from medtasks.metrics.base import Array, totals
from medtasks.metrics.registry import get_metric
from medtasks.runs.table import without_value
from medtasks.stats.bootstrap import joint_resamples
from medtasks.stats.paired import (
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
    score = get_metric(column.metric).score
    counted = {model: ~without_value(tables[model]) for model in sorted(tables)}
    # zeros in the rows that do not count, so that sums ignore them
    zeroed = {
        model: tables[model] if rows.all() else np.where(rows[:, None], tables[model], 0.0)
        for model, rows in counted.items()
    }
    values = {model: float(score(totals(table))) for model, table in zeroed.items()}
    unscored = {model: "no item counts" for model, value in values.items() if not math.isfinite(value)}
    sign = 1 if column.higher_is_better else -1
    order = sorted(values.keys() - unscored.keys(), key=lambda model: (-sign * values[model], model))
    # items that count for no model, and their clusters, are not resampled
    kept = np.any([counted[model] for model in order], axis=0) if order else np.zeros(len(clusters), dtype=bool)
    inside = [clusters[row] for row in np.flatnonzero(kept).tolist()]
    drawn = joint_resamples([(zeroed[model][kept], score) for model in order], inside, resamples=resamples, seed=SEED)
    bounds = rank_intervals(drawn, higher_is_better=column.higher_is_better)

    # every pair, over the items that count for both; most pairs have all items in common
    number = {name: code for code, name in enumerate(sorted({*clusters}))}
    codes = np.array([number[name] for name in clusters], dtype=np.int64)
    own = {model: clustered_score(tables[model][counted[model]], codes[counted[model]], score) for model in order}
    found = []
    for first, second in combinations(order, 2):
        both = counted[first] & counted[second]
        sides = (
            own[model]
            if np.array_equal(both, counted[model])
            else clustered_score(tables[model][both], codes[both], score)
            for model in (first, second)
        )
        difference = paired_difference(*sides)
        if not (difference.items and math.isfinite(difference.difference)):
            difference = PairedDifference(
                first=values[first],
                second=values[second],
                difference=values[first] - values[second],
                items=0,
                clusters=0,
                reason="no item has a value from both; the difference is between scores over different items",
            )
        found.append(pair_of(first, second, column.metric, (tables[first], tables[second]), difference))
    pairs = with_holm(found)
    differ = [(one.first, one.second) for one in pairs if one.p_holm is not None and one.p_holm <= LEVEL]
    letters = compact_letters(differ, order)
    # pairs that never differ have no standard error
    errors = [(one.standard_error, one.clusters) for one in pairs if one.standard_error]
    known = [least for one in errors if (least := detectable_difference(*one)) is not None]
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


def pair_of(first: str, second: str, metric: str, tables: tuple[Array, Array], found: PairedDifference) -> Pair:
    """The pair for the difference ``found`` between two models with these statistics ``(items, width)`` of the same
    items; Holm's correction comes later.

    Of verdicts it counts the items that only one model has right, unless an item was asked several times.
    """
    wins = losses = None
    if metric in VERDICTS and found.items:
        both = ~(without_value(tables[0]) | without_value(tables[1]))
        one, other = (table[both] for table in tables)
        if all((table[:, 1] == 1).all() and np.isin(table[:, 0], (0, 1)).all() for table in (one, other)):
            wins, losses = int((one[:, 0] > other[:, 0]).sum()), int((one[:, 0] < other[:, 0]).sum())
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
