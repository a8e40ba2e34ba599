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

import numpy as np
from kvasir_rows import Row, generate
from medtasks.leaderboard.rank.rankings import rank_models
from medtasks.leaderboard.schema.board import BoardColumn

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
    return [
        [row for name, count in zip(names, line, strict=True) for row in members[name] * int(count)]
        for line in counts
    ]


def scored_anew(rows: list[Row], chosen: list[int]) -> dict[str, float]:
    """Every metric's corpus score of the chosen rows, from their texts."""
    texts = [[getattr(rows[row], side) for row in chosen] for side in ("prediction", "reference")]
    tables = lexical_statistics(list(zip(texts[0], texts[1], strict=True)))
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
    return {
        f"model{number:03d}": np.column_stack(
            [(ease + draw.random(rows)) / 2 < 0.45 + 0.1 * number / count, np.ones(rows)]
        ).astype(np.float64)
        for number in range(count)
    }


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
    scored_anew(
        rows, list(range(min(50, len(rows))))
    )  # dictionaries are loaded before either side is timed

    begin = time.perf_counter()
    entries = [(cluster_totals(tables[name], clusters), get_metric(name).score) for name in LEXICAL]
    drawn = joint_resamples(entries, resamples=options.resamples, seed=SEED)
    together = time.perf_counter() - begin
    begin = time.perf_counter()
    for name in LEXICAL:
        entry = cluster_totals(tables[name], clusters), get_metric(name).score
        joint_resamples([entry], resamples=options.resamples, seed=SEED)
    alone = time.perf_counter() - begin

    chosen = drawn_rows(clusters, options.resamples)[: options.anew]
    begin = time.perf_counter()
    anew = [scored_anew(rows, rows_drawn) for rows_drawn in chosen]
    once = (time.perf_counter() - begin) / len(chosen)
    worst = max(
        abs(scores[name] - drawn[place, number])
        for number, scores in enumerate(anew)
        for place, name in enumerate(LEXICAL)
    )
    if worst > TOLERANCE:
        sys.exit(f"the two sides disagree by {worst}")

    slow = once * options.resamples
    print(f"{len(rows):,} rows of {len(set(clusters))} images, {len(LEXICAL)} metrics, ", end="")
    print(
        f"{options.resamples:,} resamples; {os.cpu_count()} cores, {platform.machine()}, ", end=""
    )
    print(f"Python {platform.python_version()}, numpy {np.__version__}\n")
    print("| all metrics | s | ratio |\n|---|---:|---:|")
    print(f"| scored anew per resample ({len(chosen)} timed, scaled) | {slow:,.0f} | 1 |")
    print(f"| `joint_resamples`, one metric after another | {alone:.2f} | {slow / alone:,.0f} |")
    print(f"| `joint_resamples`, one set of draws | {together:.2f} | {slow / together:,.0f} |")
    met = alone <= TARGET_SECONDS and slow / alone >= TARGET_RATIO
    print(
        f"\nlargest difference of the two sides: {worst:.1e}; target (at least {TARGET_RATIO}×, "
        f"under ",
        end="",
    )
    print(f"{TARGET_SECONDS} s): {'met' if met else 'MISSED'}\n")

    count = options.models
    print(f"| ranking of {count} models, {count * (count - 1) // 2} pairs | s |\n|---|---:|")
    for name in ("rougeL", "chrf++", "bleu"):
        seconds = timed_ranking(
            name, models_like(tables[name], count, options.seed), clusters, options.resamples
        )
        print(f"| {name} | {seconds:.2f} |")
    answers = verdicts(len(rows), count, options.seed)
    print(f"| accuracy | {timed_ranking('accuracy', answers, clusters, options.resamples):.2f} |")
    judged = {name: table * [0.7, 1] for name, table in answers.items()}
    for number, table in enumerate(judged.values()):
        table[number::150] = np.nan  # every model lacks other verdicts
    seconds = timed_ranking("judged_accuracy", judged, clusters, options.resamples)
    print(f"| judged_accuracy, each model lacking other verdicts | {seconds:.2f} |")


if __name__ == "__main__":
    main()
