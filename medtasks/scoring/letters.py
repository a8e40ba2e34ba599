"""Which letters were correct and which were chosen, in a group of multiple-choice answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain
from string import ascii_uppercase
from typing import NamedTuple, TypeAlias

from medtasks.catalog.statuses import FAILED
from medtasks.metrics.base import Array, MeanMetric, totals
from medtasks.metrics.variants import PREFERENCE, letter_counts, preference_of_letter
from medtasks.scoring.columns import MetricColumn, Rows
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.scores import Letters
from medtasks.stats.bootstrap import Clusters
from medtasks.stats.intervals import Bounds, ClusteredItems, score_interval

_MEAN = MeanMetric().score
_DIFFERENCE_OF_SHARES: Bounds = (-1.0, 1.0)

_Preference: TypeAlias = tuple[float, float | None, float | None]
"""A preference for a letter, and the ends of its interval, None if there is none."""


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
    """The correct and the chosen letters of rotated questions, and the preference for each letter.

    Responses without a selected option are counted by status. None if no question has a response
    to all of its rotations.
    """
    answered = [table.statuses[row] for row in rows.tolist() if FAILED not in table.statuses[row]]
    if not answered:
        return None
    column = table.column(PREFERENCE)
    known_rows = rows[column.present[rows] & column.known[rows]]
    statistics = column.statistics[known_rows]
    clusters = table.codes[known_rows]
    times_chosen, times_expected, times_correct = letter_counts(totals(statistics))
    gold: dict[str, int] = {}
    chosen: dict[str, int] = {}
    preference: dict[str, _Preference] = {}
    for position, letter in enumerate(table.benchmark.options or ascii_uppercase):
        if times_expected[position] == 0:  # no question has the letter
            continue
        gold[letter] = int(times_correct[position])
        chosen[letter] = int(times_chosen[position])
        preference[letter] = _preference(statistics, position, clusters)
    chosen |= _counts_without_option(answered)
    return Letters(gold=gold, chosen=chosen, preference=preference)


def _preference(statistics: Array, position: int, clusters: Clusters) -> _Preference:
    """How much larger the share of answers with a letter is than expected, and its interval."""
    surpluses = preference_of_letter(statistics, position)
    items = ClusteredItems.of(surpluses, clusters)
    interval = score_interval(_MEAN, items, _DIFFERENCE_OF_SHARES)
    return float(_MEAN(totals(surpluses))), interval.low, interval.high


def _counts_without_option(statuses_of_questions: Sequence[Sequence[str]]) -> dict[str, int]:
    """How many responses select no option, by status in brackets, sorted."""
    counts = Counter(chain.from_iterable(statuses_of_questions))
    del counts["ok"]
    return {f"[{status}]": count for status, count in sorted(counts.items())}
