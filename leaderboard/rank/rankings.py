"""Ranks of models by one score, with intervals, and groups that do not differ significantly."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from medtasks.catalog.spec import load_spec
from medtasks.metrics.base import Array, totals
from medtasks.metrics.registry import get_metric
from medtasks.scoring.columns import Mask, without_value
from medtasks.stats import paired
from medtasks.stats.bootstrap import Score, cluster_totals, joint_resamples
from medtasks.stats.cautions import few_clusters
from medtasks.stats.ranks import compact_letters, rank_intervals, with_tied_ranks
from medtasks.stats.student import detectable_difference

from ..schema.model_rankings import Pair, Ranked, Ranking
from ..schema.score_tables import BoardColumn
from .pairs import pair_of, with_holm

SEED = 0
RESAMPLES = 1000
LEVEL = 0.05
"""Two models differ significantly if Holm's p-value is at most this."""
RankBounds = tuple[int, int]
"""The best and the worst rank that a model may have."""
_NOTHING_SHARED = (
    "no item has a value from both; the difference is between scores over different items"
)


@dataclass(frozen=True)
class _ModelTable:
    """One model's statistics ``(items, width)`` of the ranked metric, and its score.

    ``counted`` are the rows with a value; the other rows of ``zeroed`` are 0, so that sums ignore
    them.
    """

    statistics: Array
    counted: Mask
    zeroed: Array
    value: float


def rank_models(
    column: BoardColumn,
    tables: Mapping[str, Array],
    clusters: Sequence[str],
    *,
    signature: str,
    unranked: Mapping[str, str] | None = None,
    resamples: int = RESAMPLES,
) -> Ranking:
    """Ranks with intervals, all pairs, and the compact letter display.

    Args:
        column: the score to rank by.
        tables: by model the metric's statistics ``(items, width)``. Rows without a value
            (`medtasks.scoring.columns.without_value`) do not count, and models with only such
            rows are not ranked.
        clusters: the cluster of each item.
        signature: the signature of the score.
        unranked: why further models have no rank.
        resamples: of the bootstrap that gives the intervals of ranks.
    """
    codes = np.unique(clusters, return_inverse=True)[1]
    models = _models_with_value(tables, column.metric)
    reasons = {model: "no item counts" for model in tables if model not in models}
    reasons.update(unranked or {})

    order = _best_first(models, column)
    pairs = _all_pairs(order, models, column.metric, codes)
    # items that count for no model, and their clusters, are not resampled
    counted = _counted_for_any(models.values(), len(clusters))
    counted_codes = codes[counted]
    resampled = [models[model].zeroed[counted] for model in order]
    bounds = _rank_bounds(column, resampled, counted_codes, resamples)
    cluster_count = len(np.unique(counted_codes))
    return Ranking(
        column=column,
        items=int(np.count_nonzero(counted)),
        clusters=cluster_count,
        cluster=load_spec(column.task).benchmark.cluster,
        signature=signature,
        ranked=_ranked_models(column, order, models, bounds, pairs),
        pairs=pairs,
        detectable=_detectable_difference(pairs),
        warning=_ranking_warning(cluster_count, pairs),
        unranked=dict(sorted(reasons.items())),
    )


def _models_with_value(tables: Mapping[str, Array], metric: str) -> dict[str, _ModelTable]:
    """The tables of the models whose score is defined, by model."""
    models: dict[str, _ModelTable] = {}
    for model in sorted(tables):
        table = _model_table(tables[model], metric)
        if math.isfinite(table.value):
            models[model] = table
    return models


def _best_first(models: Mapping[str, _ModelTable], column: BoardColumn) -> list[str]:
    """The models in the order of their scores; models with equal scores by name."""
    sign = _sign(column)
    return sorted(models, key=lambda model: (-sign * models[model].value, model))


def _sign(column: BoardColumn) -> int:
    """The factor that makes higher scores better."""
    return 1 if column.higher_is_better else -1


def _counted_for_any(tables: Iterable[_ModelTable], items: int) -> Mask:
    """A mask ``(items,)`` of the items that count for at least one model."""
    counted = np.zeros(items, dtype=bool)
    for table in tables:
        counted |= table.counted
    return counted


def _rank_bounds(
    column: BoardColumn, tables: Sequence[Array], codes: npt.NDArray[np.intp], resamples: int
) -> list[RankBounds | None]:
    """The interval of each model's rank, by resampling clusters jointly for all models."""
    score = get_metric(column.metric).score
    sums = [(cluster_totals(table, codes), score) for table in tables]
    resampled_scores = joint_resamples(sums, resamples=resamples, seed=SEED)
    return rank_intervals(resampled_scores, higher_is_better=column.higher_is_better)


def _ranked_models(
    column: BoardColumn,
    order: Sequence[str],
    models: Mapping[str, _ModelTable],
    bounds: Sequence[RankBounds | None],
    pairs: Sequence[Pair],
) -> tuple[Ranked, ...]:
    """The models with their ranks, intervals and letters, in ``order``."""
    different = _different_models(pairs)
    letters = compact_letters(different, order)
    values = _sign(column) * np.array([models[model].value for model in order])
    tied_bounds = with_tied_ranks(bounds, order, different)
    ranked = []
    for model, value, bound in zip(order, values, tied_bounds, strict=True):
        best, worst = bound or (None, None)
        rank = 1 + int(np.count_nonzero(values > value))
        ranked.append(
            Ranked(model=model, rank=rank, best=best, worst=worst, letters=letters[model])
        )
    return tuple(ranked)


def _model_table(table: Array, metric: str) -> _ModelTable:
    """The table of a model with its mask of counted items and its score."""
    counted = ~without_value(table)
    zeroed = np.where(counted[:, None], table, 0.0)
    value = float(get_metric(metric).score(totals(zeroed)))
    return _ModelTable(table, counted, zeroed, value)


def _all_pairs(
    order: Sequence[str],
    models: Mapping[str, _ModelTable],
    metric: str,
    codes: npt.NDArray[np.intp],
) -> tuple[Pair, ...]:
    """Every pair of models, over the items that count for both, with corrected p-values.

    Args:
        order: the models, best first.
        models: their tables, which have equal items.
        metric: the name of the metric.
        codes: array ``(items,)`` of the number of each item's cluster.
    """
    score = get_metric(metric).score
    # most pairs have all counted items in common, so these scores are computed once
    scores_on_all = {}
    for model in order:
        scores_on_all[model] = _clustered_score(models[model], models[model].counted, codes, score)

    def score_on(rows: Mask, model: str) -> paired.ClusteredScore:
        if np.array_equal(rows, models[model].counted):
            return scores_on_all[model]
        return _clustered_score(models[model], rows, codes, score)

    pairs = []
    for first, second in combinations(order, 2):
        in_both = models[first].counted & models[second].counted
        difference = paired.paired_difference(score_on(in_both, first), score_on(in_both, second))
        if not difference.items or not math.isfinite(difference.difference):
            difference = _difference_without_items(models[first].value, models[second].value)
        tables = (models[first].statistics, models[second].statistics)
        pairs.append(pair_of(first, second, metric, tables, difference))
    return with_holm(pairs)


def _clustered_score(
    table: _ModelTable,
    rows: Mask,
    codes: npt.NDArray[np.intp],
    score: Score,
) -> paired.ClusteredScore:
    """A model's score over the items of the mask ``rows``, by cluster; ``codes`` number these."""
    return paired.clustered_score(table.statistics[rows], codes[rows], score)


def _difference_without_items(first: float, second: float) -> paired.PairedDifference:
    """The difference between scores over different items: without a test."""
    return paired.PairedDifference(
        first=first,
        second=second,
        difference=first - second,
        items=0,
        clusters=0,
        reason=_NOTHING_SHARED,
    )


def _different_models(pairs: Sequence[Pair]) -> list[tuple[str, str]]:
    """The pairs of models that differ significantly."""
    different = []
    for pair in pairs:
        if pair.p_holm is not None and pair.p_holm <= LEVEL:
            different.append((pair.first, pair.second))
    return different


def _detectable_difference(pairs: Sequence[Pair]) -> float | None:
    """The minimum detectable difference: the median over pairs; None without any."""
    differences = []
    for pair in pairs:
        if not pair.standard_error:  # the two models never differ
            continue
        difference = detectable_difference(pair.standard_error, pair.clusters)
        if difference is not None:
            differences.append(difference)
    return statistics.median(differences) if differences else None


def _ranking_warning(clusters: int, pairs: Sequence[Pair]) -> str | None:
    """The warning about few clusters, else each caution with the number of its pairs."""
    if not pairs:
        return None
    few = few_clusters(clusters, len(pairs))
    if few is not None:
        return few
    counts = Counter(caution for pair in pairs for caution in pair.cautions)
    warnings = []
    for caution, count in sorted(counts.items()):
        warnings.append(f"{caution} (in {count} of {len(pairs)} comparisons)")
    return "; ".join(warnings) or None
