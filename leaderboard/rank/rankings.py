"""Ranks of models by one score, with intervals, and groups that do not differ significantly; how
scores go with size, means by type of model, ranks under each prompt, and what the media add: each
model's score minus that of its blind run.

Chen et al. 2024 (MMStar) call that difference multi-modal gain. Here it is paired, with a
cluster-jackknife interval.
"""

from __future__ import annotations

import math
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.metrics.base import Array, totals
from medtasks.metrics.item_metrics import ErrorRate
from medtasks.metrics.registry import get_metric
from medtasks.runs.signature import changed_signature
from medtasks.scoring.comparisons import compare_statistics
from medtasks.scoring.item_table import Mask, without_value
from medtasks.stats import paired
from medtasks.stats.bootstrap import cluster_totals, joint_resamples
from medtasks.stats.ranks import compact_letters, rank_intervals, with_tied_ranks

from ..board.floors import NO_FLOORS
from ..board.rows import Filled, cell_of, made_table
from ..schema import board as schema
from ..verify.scored_run import ScoredRun
from .comparability import ComparabilityGroups

SEED = 0
RESAMPLES = 1000
LEVEL = 0.05
"""Two models differ significantly if Holm's p-value is at most this."""
VERDICTS = ("accuracy", "exact_match", "judged_strict")
"""Metrics that score an answer as right or wrong."""

FEWEST = 4
"""Least number of models with a known size for a correlation."""
TYPES = ("closed", "general", "medical")
GAINS = "media-gain"
GAINS_TITLE = "What the media add"
_GAINS_NOTE = (
    "Score of the run minus score of the same model's blind run (prompts without media), on the same items. 0: the "
    "media change nothing. Lines are 95 % intervals of the paired difference."
)
_PROMPT = re.compile(r"prompt_([0-9]+)")
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([MBT])\b", re.IGNORECASE)
_BILLIONS = {"M": 0.001, "B": 1.0, "T": 1000.0}


def rank_models(
    column: schema.BoardColumn,
    tables: Mapping[str, Array],
    clusters: Sequence[str],
    *,
    signature: str,
    unranked: Mapping[str, str] | None = None,
    resamples: int = RESAMPLES,
) -> schema.Ranking:
    """Ranks with intervals, all pairs, and the compact letter display.

    ``tables`` has by model the metric's statistics ``(items, width)``; rows without a value
    (`medtasks.scoring.item_table.without_value`) do not count, and models with only such rows are not
    ranked. ``clusters`` has the cluster of each item, ``unranked`` why further models have no rank.
    """
    score = get_metric(column.metric).score
    counted = {model: ~without_value(tables[model]) for model in sorted(tables)}
    # zeros in the rows that do not count, so that sums ignore them
    zeroed = {model: np.where(rows[:, None], tables[model], 0.0) for model, rows in counted.items()}
    values = {model: float(score(totals(table))) for model, table in zeroed.items()}
    unscored = {
        model: "no item counts" for model, value in values.items() if not math.isfinite(value)
    }
    sign = 1 if column.higher_is_better else -1
    order = sorted(
        values.keys() - unscored.keys(), key=lambda model: (-sign * values[model], model)
    )
    # items that count for no model, and their clusters, are not resampled
    kept = (
        np.any([counted[model] for model in order], axis=0)
        if order
        else np.zeros(len(clusters), dtype=bool)
    )
    codes = np.unique(clusters, return_inverse=True)[1]
    inside = len(np.unique(codes[kept]))
    sums = [(cluster_totals(zeroed[model][kept], codes[kept]), score) for model in order]
    drawn = joint_resamples(sums, resamples=resamples, seed=SEED)
    bounds = rank_intervals(drawn, higher_is_better=column.higher_is_better)

    # every pair, over the items that count for both; most pairs have all items in common
    def over(rows: Mask, model: str) -> paired.ClusteredScore:
        return paired.clustered_score(tables[model][rows], codes[rows], score)

    own = {model: over(counted[model], model) for model in order}
    found = []
    for first, second in combinations(order, 2):
        both, one, other = counted[first] & counted[second], values[first], values[second]
        whole = {model: np.array_equal(both, counted[model]) for model in (first, second)}
        sides = (own[model] if whole[model] else over(both, model) for model in whole)
        difference = paired.paired_difference(*sides)
        if not (difference.items and math.isfinite(difference.difference)):
            why = "no item has a value from both; the difference is between scores over different items"
            ends: dict[str, Any] = {"first": one, "second": other, "difference": one - other}
            difference = paired.PairedDifference(**ends, items=0, clusters=0, reason=why)
        found.append(
            pair_of(first, second, column.metric, (tables[first], tables[second]), difference)
        )
    pairs = with_holm(found)
    differ = [
        (one.first, one.second) for one in pairs if one.p_holm is not None and one.p_holm <= LEVEL
    ]
    letters = compact_letters(differ, order)
    bounds = with_tied_ranks(bounds, order, differ)
    # pairs that never differ have no standard error
    errors = [(one.standard_error, one.clusters) for one in pairs if one.standard_error]
    known = [least for one in errors if (least := paired.detectable_difference(*one)) is not None]
    better = {
        model: sum(sign * values[other] > sign * values[model] for other in order)
        for model in order
    }
    ranked = []
    for model, bound in zip(order, bounds, strict=True):
        best, worst = bound or (None, None)
        place = 1 + better[model]
        ranked.append(
            schema.Ranked(model=model, rank=place, best=best, worst=worst, letters=letters[model])
        )
    return schema.Ranking(
        column=column,
        items=int(np.count_nonzero(kept)),
        clusters=inside,
        cluster=load_spec(column.task).benchmark.cluster,
        signature=signature,
        ranked=tuple(ranked),
        pairs=pairs,
        detectable=statistics.median(known) if known else None,
        warning=_ranking_warning(inside, pairs),
        unranked=dict(sorted({**unscored, **(unranked or {})}.items())),
    )


def pair_of(
    first: str,
    second: str,
    metric: str,
    tables: tuple[Array, Array],
    found: paired.PairedDifference,
) -> schema.Pair:
    """The pair for the difference ``found`` between two models with these statistics ``(items,
    width)`` of the same items; Holm's correction comes later.

    Of verdicts it counts the items that only one model has right, unless an item was asked several
    times.
    """
    wins = losses = None
    if metric in VERDICTS and found.items:
        both = ~(without_value(tables[0]) | without_value(tables[1]))
        (one, times), (other, others) = (table[both].T for table in tables)
        if (times == 1).all() and (others == 1).all() and np.isin((one, other), (0, 1)).all():
            wins, losses = int((one > other).sum()), int((one < other).sum())
    shared = (
        "items",
        "clusters",
        "difference",
        "low",
        "high",
        "p_value",
        "reason",
        "standard_error",
        "cautions",
    )
    values = {name: getattr(found, name) for name in shared}
    return schema.Pair(first=first, second=second, **values, p_holm=None, wins=wins, losses=losses)


def with_holm(pairs: Sequence[schema.Pair]) -> tuple[schema.Pair, ...]:
    """The pairs with p-values corrected over all of them, and with their warnings."""
    adjusted = paired.holm([pair.p_value for pair in pairs])
    tests = sum(p is not None for p in adjusted)
    return tuple(
        pair.model_copy(
            update={
                "p_holm": p,
                "warning": paired.comparison_warning(pair.clusters, pair.cautions, tests),
            }
        )
        for pair, p in zip(pairs, adjusted, strict=True)
    )


def _ranking_warning(clusters: int, pairs: Sequence[schema.Pair]) -> str | None:
    """The warning about few clusters, else each caution with the number of pairs that it is
    about.
    """
    if not pairs:
        return None
    if few := paired.few_clusters(clusters, len(pairs)):
        return few
    counts = Counter(caution for pair in pairs for caution in pair.cautions)
    about = [
        f"{caution} (in {count} of {len(pairs)} comparisons)"
        for caution, count in sorted(counts.items())
    ]
    return "; ".join(about) or None


def billions_of(size: str | None) -> float | None:
    """Parameters in billions; of a mixture of experts all of them."""
    found = _SIZE.match(size or "")
    return float(found[1]) * _BILLIONS[found[2].upper()] if found else None


def size_and_type(
    tables: Sequence[schema.BoardTable],
    published: Sequence[schema.Published],
    models: Mapping[str, schema.BoardModel],
) -> tuple[tuple[schema.SizeCorrelation, ...], tuple[schema.TypeMeans, ...]]:
    """How scores go with the models' sizes, and their means by type of model.

    Both are of headline scores (those of the first table), of the same metrics in the tasks of a
    headline group, and of the other scores of headline tasks, but not of gains; means by type also
    of kinds of error. Blind runs and those that are not comparable are left out.
    """
    headline = {
        (leaf, one.metric)
        for one in tables[0].columns
        for leaf in (one.task, *leaf_tasks(one.task))
    }
    tasks = {one.task for one in tables[0].columns}
    scored = [table for table in tables if table.name != GAINS]
    first = {column.key: table for table in reversed(scored) for column in table.columns}
    correlations: list[schema.SizeCorrelation] = []
    means: list[schema.TypeMeans] = []
    for column in {column.key: column for table in scored for column in table.columns}.values():
        if column.breakdown is not None or column.signed:
            continue
        if column.task not in tasks and (column.task, column.metric) not in headline:
            continue
        cells = {row.model: row.cells.get(column.key) for row in first[column.key].rows}
        values = [
            (models[model], cell.value)
            for model, cell in cells.items()
            if cell and cell.value is not None
        ]
        sized: dict[str, list[tuple[str | None, float]]] = defaultdict(
            list
        )  # by published table; of runs without one
        if not isinstance(get_metric(column.metric), ErrorRate):
            sized[""] = [(model.size, value) for model, value in values]
        for figure in published:
            if figure.column == column.key and figure.rankable and figure.value is not None:
                sized[figure.table].append((figure.size, figure.value))
        for name, pairs in sized.items():
            known = [
                (math.log(size), value) for text, value in pairs if (size := billions_of(text))
            ]
            if len(known) >= FEWEST and all(
                len(set(side)) > 1 for side in zip(*known, strict=True)
            ):
                r = statistics.correlation(*zip(*known, strict=True))
                correlations.append(
                    schema.SizeCorrelation(published=name, column=column, models=len(known), r=r)
                )
        by_type = {kind: [value for model, value in values if model.type == kind] for kind in TYPES}
        mean = {kind: statistics.fmean(found) for kind, found in by_type.items() if found}
        if len(mean) > 1:
            counts = {kind: len(by_type[kind]) for kind in mean}
            means.append(schema.TypeMeans(column=column, means=mean, models=counts))
    correlations.sort(key=lambda one: bool(one.published))  # those of runs first
    return tuple(correlations), tuple(means)


def prompt_ranks(
    columns: Sequence[schema.BoardColumn],
    ranking_of: Callable[[schema.BoardColumn], schema.Ranking | None],
) -> tuple[list[schema.BoardTable], schema.PromptOrder | None]:
    """The ranks under each prompt of the first task with several prompts among ``columns``, and
    what they say; none without two models.
    """
    whole = {one.key: one for one in columns if one.breakdown is None}
    prompted = [
        (int(found[1]), one) for one in whole.values() if (found := _PROMPT.fullmatch(one.metric))
    ]
    task = prompted[0][1].task if prompted else ""
    each = [
        (number, ranking)
        for number, one in prompted
        if one.task == task and (ranking := ranking_of(one))
    ]
    ranks = {number: {one.model: one.rank for one in ranking.ranked} for number, ranking in each}
    models = sorted(set.intersection(*map(set, ranks.values()))) if ranks else []
    if len(models) < 2:
        return [], None
    from scipy.stats import kendalltau  # slow to import

    over_all = ranking_of(
        next(one for one in columns if one.breakdown is None and one.task == task)
    )
    cells: list[Filled] = []
    for ranking in (*filter(None, [over_all]), *(ranking for _, ranking in each)):
        column, signature = ranking.column, changed_signature(ranking.signature, of="ranks")
        update = {"key": f"{column.key}.rank", "metric": f"{column.metric}.rank", "unit": "rank"}
        shown = column.model_copy(update={**update, **NO_FLOORS, "higher_is_better": False})
        for one in ranking.ranked:
            cell = schema.Cell(
                value=one.rank,
                low=one.best,
                high=one.worst,
                items=ranking.items,
                signature=signature,
            )
            cells.append((one.model, shown, cell, ()))
    note = "With 95 % intervals of the ranks; 1 is the best."
    table = made_table("prompt-ranks", "Rank under each prompt", note, cells)

    changes = []
    for first, second in combinations(models, 2):
        ahead = tuple(number for number, one in ranks.items() if one[first] < one[second])
        behind = tuple(number for number, one in ranks.items() if one[first] > one[second])
        if ahead and behind:
            changes.append(
                schema.OrderChange(first=first, second=second, ahead=ahead, behind=behind)
            )
    by_prompt = [[one[model] for model in models] for one in ranks.values()]
    pairs = [pair for pair in combinations(by_prompt, 2) if all(len(set(one)) > 1 for one in pair)]
    known = [float(kendalltau(*pair).statistic) for pair in pairs]  # tau-b
    tau, lowest = (sum(known) / len(known), min(known)) if known else (None, None)
    every = math.comb(len(models), 2)
    order = schema.PromptOrder(
        task=task,
        prompts=len(ranks),
        pairs=every,
        changes=tuple(changes),
        tau=tau,
        lowest_tau=lowest,
    )
    return [table], order


def media_gain(
    benchmark: Benchmark,
    headline: Sequence[schema.BoardColumn],
    others: Iterable[schema.BoardColumn],
    groups: ComparabilityGroups,
) -> tuple[list[schema.BoardTable], list[schema.BoardPlot], schema.TextOnly | None]:
    """The table of a benchmark's gains, with a row for each model that has a blind run, and its
    bars: of the headline columns, and of the first one's metric in ``others``: in other tasks, and
    by the first breakdown among them. Last are the items of the first headline column that every
    blind run answers; None without a score per answer.
    """
    known = {
        one.key: one
        for one in headline
        if not one.signed and groups.blind_twins(one.task, one.metric)
    }
    if not known:
        return [], [], None
    first = next(iter(known.values()))
    alike = [one for one in others if one.metric == first.metric and one.key not in known]
    grouped = next(
        (one.breakdown for one in alike if one.task == first.task and one.breakdown is not None),
        None,
    )
    parts: dict[str, schema.BoardColumn] = {}
    for one in alike:
        if one.breakdown is None or (one.task == first.task and one.breakdown == grouped):
            parts.setdefault(one.key, one)  # a later table may call it "all classes"
    cells: list[Filled] = []
    for column in (*known.values(), *parts.values()):
        # a model that does not use the media gains 0
        update = {"key": f"{column.key}.gain", "metric": f"{column.metric}.gain", **NO_FLOORS}
        shown = column.model_copy(update=update)
        for model, (seeing, blind) in groups.blind_twins(column.task, column.metric).items():
            if (cell := _gain(benchmark, seeing, blind, column)) is not None:
                cells.append((model, shown, cell, (seeing.public.key, blind.public.key)))
    columns = {column.key: column for _, column, _, _ in cells}
    cells.sort(key=lambda one: one[0])
    table = made_table(GAINS, GAINS_TITLE, _GAINS_NOTE, cells, columns.values())
    plots = []
    for name, title, of_headline in (
        (GAINS, GAINS_TITLE, True),
        (f"{GAINS}-parts", f"{GAINS_TITLE}, in parts", False),
    ):
        if keys := tuple(
            key for key in columns if (key.removesuffix(".gain") in known) is of_headline
        ):
            plots.append(
                schema.BoardPlot(name=name, title=title, kind="bars", table=GAINS, columns=keys)
            )

    twins = groups.blind_twins(first.task, first.metric)
    entries = {model: blind.entries[first.task] for model, (_, blind) in sorted(twins.items())}
    items = next(iter(entries.values())).items
    tables = {
        model: one.statistics(first.metric) for model, one in entries.items() if one.items == items
    }
    if next(iter(tables.values())).shape[1] != 2:  # not a mean over answers
        return [table], plots, None
    counted = [~without_value(one) for one in tables.values()]
    full = np.all([one[:, 0] == one[:, 1] for one in tables.values()] + counted, axis=0)
    text_only = schema.TextOnly(
        task=first.task,
        metric=first.metric,
        models=tuple(tables),
        items=int(np.any(counted, axis=0).sum()),
        expected=None if first.chance is None else first.chance ** len(tables),
        answered=tuple(items[row] for row in np.flatnonzero(full).tolist()),
    )
    return [table], plots, text_only


def _gain(
    benchmark: Benchmark, seeing: ScoredRun, blind: ScoredRun, column: schema.BoardColumn
) -> schema.Cell | None:
    first, second = cell_of(seeing, column), cell_of(blind, column)
    if first is None or second is None:
        return None
    sides = (("", first), ("blind run: ", second))
    reasons = [f"{which}{side.reason or 'no value'}" for which, side in sides if side.value is None]
    why = [*reasons, "no item has a value from both runs"][0]
    values: dict[str, Any] = {"value": None, "items": first.items, "reason": why}
    entries = [run.entries[column.task] for run in (seeing, blind)]
    rows = np.arange(len(entries[0].items))
    if column.breakdown is not None:
        groups = entries[0].table.groups[column.breakdown][: len(rows)]
        rows = np.flatnonzero([column.group in keys for keys in groups])
    part = (
        column.group if column.breakdown == benchmark.parts else None
    )  # items are judged by parts
    one, other = (entry.statistics(column.metric, part or "")[rows] for entry in entries)
    found = (
        None
        if reasons
        else compare_statistics(column.metric, one, other, entries[0].table.codes[rows])
    )
    if found is not None:
        values = {
            "value": found.difference,
            "low": found.low,
            "high": found.high,
            "items": found.items,
        }
    incomplete, signature = (
        first.incomplete or second.incomplete,
        changed_signature(first.signature, minus="blind"),
    )
    return schema.Cell(**values, incomplete=incomplete, signature=signature)
