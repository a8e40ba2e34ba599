"""Target S2: 1,000 cluster-bootstrap resamples of every corpus metric, and rankings of many models.

On rows shaped like Kvasir-VQA-x1's test set (``kvasir_rows.generate``). The slow side scores
each resample anew from its texts, with our own batched scorer (which is quicker than the published
recipe); it is timed on a few resamples and scaled to 1,000. Both sides see the same resamples, and
their scores must agree before any time is printed.

    python performance/resampling.py [--rows N] [--resamples N] [--anew N] [--models N] [--seed S]
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from dataclasses import dataclass

import numpy as np
from kvasir_rows import Row, generate
from medtasks.leaderboard.rank.rankings import rank_models
from medtasks.leaderboard.schema.score_tables import BoardColumn

from medtasks.metrics.base import Array, corpus_score
from medtasks.metrics.registry import LEXICAL, get_metric, lexical_statistics
from medtasks.stats.bootstrap import cluster_totals, joint_resamples

TOLERANCE = 1e-9
SEED = 0
TARGET_RATIO, TARGET_SECONDS = 50, 5


def drawn_rows(clusters: list[str], resamples: int) -> list[list[int]]:
    """The row numbers of each resample, a cluster's as often as it is drawn; the draws are
    `joint_resamples`'s.
    """
    names = sorted(set(clusters))
    members: dict[str, list[int]] = {name: [] for name in names}
    for row, name in enumerate(clusters):
        members[name].append(row)
    generator = np.random.Generator(np.random.PCG64(SEED))
    counts = generator.multinomial(len(names), np.full(len(names), 1 / len(names)), size=resamples)
    resampled = []
    for cluster_counts in counts.tolist():
        rows: list[int] = []
        for name, count in zip(names, cluster_counts, strict=True):
            rows += members[name] * count
        resampled.append(rows)
    return resampled


def scored_anew(rows: list[Row], chosen: list[int]) -> dict[str, float]:
    """Every metric's corpus score of the chosen rows, from their texts."""
    tables = lexical_statistics([(rows[row].prediction, rows[row].reference) for row in chosen])
    return {name: corpus_score(get_metric(name), table) for name, table in tables.items()}


def timed_ranking(
    metric: str, tables: dict[str, Array], clusters: list[str], resamples: int
) -> float:
    """Seconds of a whole ranking: ranks with intervals, every pair with its test, Holm, letters."""
    facts = {"task": "kvasir_vqa_x1", "metric": metric, "label": metric, "unit": "fraction"}
    column = BoardColumn(key=metric, higher_is_better=True, **facts)
    begin = time.perf_counter()
    ranking = rank_models(column, tables, clusters, signature=metric, resamples=resamples)
    seconds = time.perf_counter() - begin
    count = len(tables)
    if len(ranking.ranked) != count or len(ranking.pairs) != count * (count - 1) // 2:
        sys.exit(f"{metric}: {len(ranking.ranked)} of {count} models are ranked")
    return seconds


def models_like(table: Array, count: int, seed: int) -> dict[str, Array]:
    """Tables of other models: a share of the items answered as well as another item was."""
    draw = np.random.default_rng(seed)
    tables = {}
    for number in range(count):
        changed = draw.random(len(table)) < 0.02 + 0.02 * number
        shuffled = table[draw.permutation(len(table))]
        tables[f"model{number:03d}"] = np.where(changed[:, None], shuffled, table)
    return tables


def verdicts(rows: int, count: int, seed: int) -> dict[str, Array]:
    """Right and wrong answers of models that are right in 40 to 60 % of the rows."""
    draw = np.random.default_rng(seed)
    ease = draw.random(rows)
    models = {}
    for number in range(count):
        is_right = (ease + draw.random(rows)) / 2 < 0.45 + 0.1 * number / count
        models[f"model{number:03d}"] = np.column_stack([is_right, np.ones(rows)]).astype(np.float64)
    return models


@dataclass(frozen=True)
class Timed:
    """Scores ``(metrics, resamples)`` of the same resamples, and the seconds they took: in one
    call, one metric after another, and scored anew.
    """

    scores: Array
    together: float
    alone: float
    anew: float
    difference: float


def timed(rows: list[Row], tables: dict[str, Array], resamples: int, anew: int) -> Timed:
    """Both sides; the slow one is timed on ``anew`` resamples and scaled."""
    clusters = [row.image for row in rows]
    begin = time.perf_counter()
    entries = [(cluster_totals(tables[name], clusters), get_metric(name).score) for name in LEXICAL]
    scores = joint_resamples(entries, resamples=resamples, seed=SEED)
    together = time.perf_counter() - begin

    begin = time.perf_counter()
    for name in LEXICAL:
        entry = cluster_totals(tables[name], clusters), get_metric(name).score
        joint_resamples([entry], resamples=resamples, seed=SEED)
    alone = time.perf_counter() - begin

    drawn = drawn_rows(clusters, resamples)[:anew]
    begin = time.perf_counter()
    scores_anew = [scored_anew(rows, chosen) for chosen in drawn]
    seconds_anew = (time.perf_counter() - begin) / len(drawn) * resamples
    difference = 0.0
    for resample, metrics in enumerate(scores_anew):
        for place, name in enumerate(LEXICAL):
            difference = max(difference, abs(metrics[name] - scores[place, resample]))
    return Timed(scores, together, alone, seconds_anew, difference)


def print_scoring(timing: Timed, anew: int) -> None:
    """The table of both sides."""
    slow, alone, together = timing.anew, timing.alone, timing.together
    print("| all metrics | s | ratio |\n|---|---:|---:|")
    print(f"| scored anew per resample ({anew} timed, scaled) | {slow:,.0f} | 1 |")
    print(f"| `joint_resamples`, one metric after another | {alone:.2f} | {slow / alone:,.0f} |")
    print(f"| `joint_resamples`, one set of draws | {together:.2f} | {slow / together:,.0f} |")
    is_met = alone <= TARGET_SECONDS and slow / alone >= TARGET_RATIO
    target = f"target (at least {TARGET_RATIO}×, under {TARGET_SECONDS} s)"
    print(
        f"\nlargest difference of the two sides: {timing.difference:.1e}; "
        f"{target}: {'met' if is_met else 'MISSED'}\n"
    )


def print_rankings(
    tables: dict[str, Array], clusters: list[str], models: int, resamples: int, seed: int
) -> None:
    """The table of rankings of so many models by several metrics."""
    pairs = models * (models - 1) // 2
    print(f"| ranking of {models} models, {pairs} pairs | s |\n|---|---:|")
    for name in ("rougeL", "chrf++", "bleu"):
        entries = models_like(tables[name], models, seed)
        print(f"| {name} | {timed_ranking(name, entries, clusters, resamples):.2f} |")
    answers = verdicts(len(clusters), models, seed)
    print(f"| accuracy | {timed_ranking('accuracy', answers, clusters, resamples):.2f} |")
    judged = {name: table * [0.7, 1] for name, table in answers.items()}
    for number, table in enumerate(judged.values()):
        table[number::150] = np.nan  # every model lacks other verdicts
    seconds = timed_ranking("judged_accuracy", judged, clusters, resamples)
    print(f"| judged_accuracy, each model lacking other verdicts | {seconds:.2f} |")


def main() -> None:
    """Check, time, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=16_022)
    parser.add_argument("--resamples", type=int, default=1000)
    parser.add_argument(
        "--anew", type=int, default=3, help="resamples that the slow side is timed on"
    )
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = generate(options.rows, options.seed)
    clusters = [row.image for row in rows]
    tables = lexical_statistics([(row.prediction, row.reference) for row in rows])
    # dictionaries are loaded before either side is timed
    scored_anew(rows, list(range(min(50, len(rows)))))
    timing = timed(rows, tables, options.resamples, options.anew)
    if timing.difference > TOLERANCE:
        sys.exit(f"the two sides disagree by {timing.difference}")
    print(
        f"{len(rows):,} rows of {len(set(clusters))} images, {len(LEXICAL)} metrics, "
        f"{options.resamples:,} resamples; {os.cpu_count()} cores, {platform.machine()}, "
        f"Python {platform.python_version()}, numpy {np.__version__}\n"
    )
    print_scoring(timing, min(options.anew, options.resamples))
    print_rankings(tables, clusters, options.models, options.resamples, options.seed)


if __name__ == "__main__":
    main()
