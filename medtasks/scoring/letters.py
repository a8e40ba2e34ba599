"""Which letters were correct and which were chosen, in a group of multiple-choice answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from string import ascii_uppercase
from typing import NamedTuple

from medtasks.catalog.statuses import FAILED
from medtasks.metrics.base import MeanMetric, totals
from medtasks.metrics.variants import POSITIONS, PREFERENCE, preference_of_letter
from medtasks.scoring.columns import MetricColumn, Rows
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.scores import Letters
from medtasks.stats.intervals import Bounds, ClusteredItems, score_interval

_MEAN = MeanMetric().score
_DIFFERENCE_OF_SHARES: Bounds = (-1.0, 1.0)


def letters_of(table: ItemTable, rows: Rows, accuracy: MetricColumn | None) -> Letters | None:
    """The letters of these rows, which were asked in one order; None without options or without an
    answer.
    """
    options, null_option = table.benchmark.options, table.benchmark.null_option
    if not options or accuracy is None:
        return None
    gold: Counter[str] = Counter()
    chosen: Counter[str] = Counter()
    null_chosen_when_wrong = null_missed_when_right = 0
    answers = _answer_counts(table, rows[accuracy.present[rows]])
    for answer, count in answers.items():
        if answer.status == FAILED:
            continue
        is_read = answer.status == "ok"
        gold[answer.target] += count
        chosen[answer.letter if is_read else f"[{answer.status}]"] += count
        is_null_right = answer.target == null_option
        if answer.letter == null_option and not is_null_right:
            null_chosen_when_wrong += count
        if is_read and answer.letter != null_option and is_null_right:
            null_missed_when_right += count
    if not gold:
        return None
    has_null_option = null_option is not None
    return Letters(
        gold={letter: gold[letter] for letter in options},
        chosen=_options_first(chosen, options),
        null_chosen_when_wrong=null_chosen_when_wrong if has_null_option else None,
        null_missed_when_right=null_missed_when_right if has_null_option else None,
    )


class _Answer(NamedTuple):
    """The right letter of a question, the chosen one, and the status of the response."""

    target: str
    letter: str
    status: str


def _answer_counts(table: ItemTable, rows: Rows) -> Counter[_Answer]:
    """How often each combination of target, chosen letter and status occurs."""
    return Counter(
        _Answer(table.target[row], table.chosen[row], table.statuses[row][0])
        for row in rows.tolist()
    )


def _options_first(chosen: Counter[str], options: Sequence[str]) -> dict[str, int]:
    """The counts of all options, then those of anything else, sorted."""
    counts = {letter: chosen[letter] for letter in options}
    for key in sorted(chosen):
        if key not in counts:
            counts[key] = chosen[key]
    return counts


def rotated_letters_of(table: ItemTable, rows: Rows) -> Letters | None:
    """The letters of rotated questions, also without a selected option; None without a response."""
    answered = [table.statuses[row] for row in rows.tolist() if FAILED not in table.statuses[row]]
    if not answered:
        return None
    column = table.column(PREFERENCE)
    rows = rows[column.present[rows] & column.known[rows]]
    statistics = column.statistics[rows]
    chosen, times_shown, gold = totals(statistics).reshape(3, POSITIONS).tolist()
    gold_counts: dict[str, int] = {}
    chosen_counts: dict[str, int] = {}
    preference: dict[str, tuple[float, float | None, float | None]] = {}
    for place, letter in enumerate(table.benchmark.options or ascii_uppercase):
        if not times_shown[place]:
            continue
        gold_counts[letter] = int(gold[place])
        chosen_counts[letter] = int(chosen[place])
        pairs = preference_of_letter(statistics, place)
        items = ClusteredItems.of(pairs, table.codes[rows])
        interval = score_interval(_MEAN, items, _DIFFERENCE_OF_SHARES)
        preference[letter] = (float(_MEAN(totals(pairs))), interval.low, interval.high)
    statuses = Counter(chain.from_iterable(answered))
    del statuses["ok"]
    for status, count in sorted(statuses.items()):
        chosen_counts[f"[{status}]"] = count
    return Letters(gold=gold_counts, chosen=chosen_counts, preference=preference)
