"""Counts of the letters that answers to multiple-choice questions chose."""

from __future__ import annotations

from collections import Counter
from string import ascii_uppercase

from medtasks.catalog.benchmark import FAILED, Benchmark
from medtasks.metrics.aggregate import totals
from medtasks.metrics.base import Array, MeanMetric
from medtasks.metrics.variants import POSITIONS, preference_of_letter
from medtasks.runs.column import Column, Rows
from medtasks.runs.scores import Letters, RotatedLetters
from medtasks.runs.table import ItemTable
from medtasks.stats.bootstrap import cluster_totals


def letter_counts(table: ItemTable, rows: Rows, benchmark: Benchmark, accuracy: Column | None) -> Letters | None:
    """Letter counts of the multiple-choice items; None if there are none."""
    if not benchmark.options or accuracy is None:
        return None
    gold: Counter[str] = Counter()
    chosen: Counter[str] = Counter()
    wrong = missed = 0
    null = benchmark.null_option
    found = Counter(map(table.answers.__getitem__, rows[accuracy.present[rows]].tolist()))
    for (target, letter, status), count in found.items():
        if status != FAILED:
            gold[target] += count
            chosen[letter if status == "ok" else f"[{status}]"] += count
            wrong += count * (letter == null and target != null)
            missed += count * (status == "ok" and letter != null and target == null)
    if not gold:
        return None
    return Letters(
        gold={letter: gold[letter] for letter in benchmark.options},
        chosen={
            **{letter: chosen[letter] for letter in benchmark.options},
            **{key: count for key, count in sorted(chosen.items()) if key not in benchmark.options},
        },
        null_chosen_when_wrong=None if null is None else wrong,
        null_missed_when_right=None if null is None else missed,
    )


def rotated_letter_counts(
    table: ItemTable, rows: Rows, benchmark: Benchmark, column: Column
) -> tuple[RotatedLetters | None, list[Array]]:
    """Letter counts of rotated questions, also of those without a selected option; None without a response.

    The second value has the cluster totals of each letter's preference, a mean, for its interval.
    """
    answered = [table.statuses[row] for row in rows.tolist() if FAILED not in table.statuses[row]]
    statuses = Counter(status for each in answered for status in each if status != "ok")
    if not answered:
        return None, []
    rows = rows[column.present[rows] & column.known[rows]]
    statistics, share = column.statistics[rows], MeanMetric().score
    chosen, shown, gold = totals(statistics).reshape(3, POSITIONS).tolist()
    names = {place: name for place, name in enumerate(benchmark.options or ascii_uppercase) if shown[place]}
    letters = {name: preference_of_letter(statistics, place) for place, name in names.items()}
    counts = RotatedLetters(
        gold={name: int(gold[place]) for place, name in names.items()},
        chosen={
            **{name: int(chosen[place]) for place, name in names.items()},
            **{f"[{status}]": count for status, count in sorted(statuses.items())},
        },
        preference={name: (float(share(totals(one))), None, None) for name, one in letters.items()},
    )
    return counts, [cluster_totals(one, table.codes[rows]) for one in letters.values()]
