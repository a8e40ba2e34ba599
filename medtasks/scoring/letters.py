"""What a group of multiple-choice answers shows beside its scores: letters chosen, and accuracy by
confidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from string import ascii_uppercase

import numpy as np

from medtasks.catalog.statuses import FAILED
from medtasks.metrics.base import Array, MeanMetric, totals
from medtasks.metrics.confidence import (
    BIN_OF,
    BINS,
    ECE,
    GIVEN,
    PERCENT,
    accuracy_at,
    cases,
    reasons,
)
from medtasks.metrics.variants import POSITIONS, PREFERENCE, preference_of_letter
from medtasks.scoring.columns import Column, Rows
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.metric_scores import interval_fields
from medtasks.scoring.scores import Letters, Reliability, ReliabilityBin
from medtasks.stats.intervals import Bounds, ClusteredItems, score_interval

_MEAN = MeanMetric().score
_SHARE: Bounds = (0.0, 1.0)
_DIFFERENCE_OF_SHARES: Bounds = (-1.0, 1.0)


def letters_of(table: ItemTable, rows: Rows, accuracy: Column | None) -> Letters | None:
    """The letters of these rows, which were asked in one order; None without options or without an
    answer.
    """
    options, null = table.benchmark.options, table.benchmark.null_option
    if not options or accuracy is None:
        return None
    gold: Counter[str] = Counter()
    chosen: Counter[str] = Counter()
    wrong = missed = 0
    asked = rows[accuracy.present[rows]].tolist()
    answers = Counter(
        (table.target[row], table.chosen[row], table.statuses[row][0]) for row in asked
    )
    for (target, letter, status), count in answers.items():
        if status != FAILED:
            gold[target] += count
            chosen[letter if status == "ok" else f"[{status}]"] += count
            wrong += count * (letter == null and target != null)
            missed += count * (status == "ok" and letter != null and target == null)
    if not gold:
        return None
    others = {key: count for key, count in sorted(chosen.items()) if key not in options}
    return Letters(
        gold={letter: gold[letter] for letter in options},
        chosen={**{letter: chosen[letter] for letter in options}, **others},
        null_chosen_when_wrong=None if null is None else wrong,
        null_missed_when_right=None if null is None else missed,
    )


def rotated_letters_of(table: ItemTable, rows: Rows) -> Letters | None:
    """The letters of rotated questions, also without a selected option; None without a response."""
    column = table.column(PREFERENCE)
    answered = [table.statuses[row] for row in rows.tolist() if FAILED not in table.statuses[row]]
    if not answered:
        return None
    statuses = Counter(status for each in answered for status in each if status != "ok")
    rows = rows[column.present[rows] & column.known[rows]]
    statistics = column.statistics[rows]
    chosen, shown, gold = totals(statistics).reshape(3, POSITIONS).tolist()
    letters = table.benchmark.options or ascii_uppercase
    names = {place: name for place, name in enumerate(letters) if shown[place]}
    preference: dict[str, tuple[float, float | None, float | None]] = {}
    for place, name in names.items():
        pairs = preference_of_letter(statistics, place)
        interval = score_interval(
            _MEAN, ClusteredItems.of(pairs, table.codes[rows]), _DIFFERENCE_OF_SHARES
        )
        preference[name] = float(_MEAN(totals(pairs))), interval.low, interval.high
    return Letters(
        gold={name: int(gold[place]) for place, name in names.items()},
        chosen={name: int(chosen[place]) for place, name in names.items()}
        | {f"[{status}]": count for status, count in sorted(statuses.items())},
        preference=preference,
    )


def reliability_of(table: ItemTable) -> Reliability | None:
    """Accuracy by confidence; None without any confidence."""
    if ECE not in table.metrics or GIVEN not in table.metrics:
        return None
    column, given = table.column(ECE), table.column(GIVEN)
    rows = np.flatnonzero(column.known & table.complete)
    if not len(rows):
        return None
    statistics = column.statistics[rows]
    every = totals(statistics)
    known = np.flatnonzero(given.known & table.complete)
    return Reliability(
        without=reasons(totals(given.statistics[known]).tolist()),
        bins=tuple(_bins(statistics, table.codes[rows])),
        curve=tuple(float(accuracy_at(every, tenths / 10)) for tenths in range(1, 11)),
    )


def _bins(statistics: Array, clusters: Rows) -> Iterator[ReliabilityBin]:
    """The bins that have an answer."""
    counts, right = cases(statistics)
    for place in range(BINS):
        percents = place == BIN_OF
        pairs = np.stack([right[:, percents].sum(axis=1), counts[:, percents].sum(axis=1)], axis=-1)
        answers = int(pairs[:, 1].sum())
        if not answers:
            continue
        interval = interval_fields(
            score_interval(_MEAN, ClusteredItems.of(pairs, clusters), _SHARE)
        )
        yield ReliabilityBin(
            low=place / BINS,
            high=(place + 1) / BINS,
            answers=answers,
            confidence=float((counts[:, percents] @ PERCENT[percents]).sum()) / 100 / answers,
            accuracy=float(_MEAN(totals(pairs))),
            interval=interval["interval"],
        )
