"""Ranks of models by one score, with intervals, and groups that do not differ significantly."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from medtasks.metrics.base import Array
from medtasks.stats import compact_letters, detectable_difference, few_clusters, rank_intervals

from .board import BoardColumn, Pair, Ranked, Ranking
from .pairs import CONFIDENCE, LEVEL, ModelTable, ModelTables, compare_models


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

    Args:
        column: the score to rank by, and its direction.
        tables: the metric's statistics ``(items, width)`` by model; rows without a value
            (`medtasks.results.table.without_value`) do not count, and models with only such rows are not ranked.
        clusters: the cluster of each item.
        cluster: what a cluster is, in one word.
        signature: the signature of the scores.
        unranked: comparable models without a rank, and why.
        resamples: number of resamples.

    Raises:
        UsageError: the tables do not have the shape of the items and the metric.
    """
    every_model = ModelTables(column.metric, clusters, [ModelTable(model, tables[model]) for model in sorted(tables)])
    values = {one.model: every_model.value(one) for one in every_model.tables}
    unscored = {model: "no item counts" for model, value in values.items() if not math.isfinite(value)}
    sign = 1 if column.higher_is_better else -1
    order = sorted(values.keys() - unscored.keys(), key=lambda model: (-sign * values[model], model))
    ranked = ModelTables(column.metric, clusters, [ModelTable(model, tables[model]) for model in order]).counting()
    compared = compare_models(ranked, resamples=resamples)
    bounds = rank_intervals(compared.resampled, higher_is_better=column.higher_is_better, confidence=CONFIDENCE)
    letters = compact_letters(_different(compared.pairs), order)
    # pairs that never differ have no standard error
    seen = [detectable_difference(one.standard_error, one.clusters) for one in compared.found if one.standard_error]
    known = [one for one in seen if one is not None]
    return Ranking(
        column=column,
        items=len(ranked.clusters),
        clusters=len({*ranked.clusters}),
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
        pairs=compared.pairs,
        detectable=statistics.median(known) if known else None,
        warning=few_clusters(len({*ranked.clusters}), len(compared.pairs)) if compared.pairs else None,
        unranked=dict(sorted({**unscored, **(unranked or {})}.items())),
    )


def _different(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    return [(pair.first, pair.second) for pair in pairs if pair.p_holm is not None and pair.p_holm <= LEVEL]
