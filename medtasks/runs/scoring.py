"""Scores of items: sums over the rows of a table, with cluster-bootstrap intervals, breakdowns, letters, confidence.

Tasks, groups and breakdowns are scored by the same function, from rows of one table: a group's score is computed from
the summed statistics of all its items, never averaged over its tasks. An item is a sample, or the rounds of a stream.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from string import ascii_uppercase
from typing import Any, TypeAlias

import numpy as np

from medtasks.catalog.benchmark import FAILED, Benchmark
from medtasks.core.errors import MedtasksError
from medtasks.metrics.base import Array, MeanMetric, Metric, check_finite, segment_sums, totals
from medtasks.metrics.confidence import BIN_OF, BINS, ECE, GIVEN, PERCENT, accuracy_at, cases, reasons
from medtasks.metrics.registry import get_metric
from medtasks.metrics.variants import POSITIONS, PREFERENCE, preference_of_letter
from medtasks.runs.samples import Sample
from medtasks.runs.scores import COVERAGE, Scores
from medtasks.runs.table import AWAITING, PENDING, Column, ItemTable, Rows, RunTables, item_table, reduced_to, stacked
from medtasks.runs.table import FAILED as NO_RESPONSE
from medtasks.stats.bootstrap import Score, cluster_totals, clustered_standard_error, joint_intervals
from medtasks.stats.paired import student_interval

RESAMPLES = 1000
SEED = 0
_MEAN = MeanMetric().score


def score_samples(
    samples: Sequence[Sample],
    benchmark: Benchmark,
    breakdowns: Sequence[str] = (),
    pooled: Sequence[str] = (),
    *,
    resamples: int = RESAMPLES,
    threshold: float = COVERAGE,
) -> Scores:
    """Scores of ``samples`` in any order, overall and for each named breakdown of ``benchmark``.

    ``pooled`` names further metrics that only make sense over several tasks; the rest is as in :func:`score_tables`.

    Raises:
        MedtasksError: there are no samples, the samples of one task have different metrics, or a breakdown is unknown.
    """
    table = item_table(samples, benchmark, breakdowns, pooled)
    return score_tables({"": table}, resamples=resamples, threshold=threshold)[""]


def scores_of(
    tables: RunTables, groups: Mapping[str, Sequence[str]], *, threshold: float = COVERAGE
) -> tuple[dict[str, Scores], dict[str, Scores]]:
    """Scores of every task, and of every group pooled over all samples of its tasks."""
    every = {**dict.fromkeys(tables.tasks, ()), **groups}
    scores = score_tables({name: tables.of(name, members) for name, members in every.items()}, threshold=threshold)
    return {name: scores[name] for name in tables.tasks}, {name: scores[name] for name in groups}


def score_tables(
    tables: Mapping[str, ItemTable], *, resamples: int = RESAMPLES, threshold: float = COVERAGE
) -> dict[str, Scores]:
    """Scores of each table, overall and by breakdown.

    Intervals are 95 % percentile intervals of a cluster bootstrap over images, patients or videos
    (:func:`joint_intervals`); tables, metrics and groups with the same number of clusters share one set of draws. A
    judged score is marked incomplete if the share of items with a verdict is below ``threshold``; one that still awaits
    its judge has no value.
    """
    drawn: list[_Drawn] = []
    scores = {name: _TableScores(table, threshold, drawn).fields() for name, table in tables.items()}
    intervals = joint_intervals([(sums, score) for *_, sums, score in drawn], resamples=resamples, seed=SEED)
    for (fields, letter, *_), one in zip(drawn, intervals, strict=True):
        if letter:
            fields[letter] = fields[letter], one.low, one.high
        else:
            fields |= {"interval": None if one.low is None else (one.low, one.high), "reason": one.reason}
    return {name: Scores.model_validate(fields) for name, fields in scores.items()}


def standard_errors(tables: RunTables, groups: Mapping[str, Sequence[str]]) -> dict[str, dict[str, float | None]]:
    """Clustered standard errors by task and group, for the mean-type metrics whose items all have a value."""
    found: dict[str, dict[str, float | None]] = {}
    for name, members in {**dict.fromkeys(tables.tasks, ()), **groups}.items():
        table = tables.of(name, members)
        for metric in table.metrics:
            column = table.column(metric)
            rows = np.flatnonzero(column.present)
            errors = found.setdefault(name, {})
            if column.statistics.shape[1] == 2 and column.known[rows].all() and column.applies[rows].any():
                errors[metric] = clustered_standard_error(column.statistics[rows], table.codes[rows])
    return found


_Drawn: TypeAlias = tuple[dict[str, Any], str, Array, Score]
"""Where an interval belongs (the fields of a value, or a letter's entry), and the cluster totals and the score that it
is drawn from."""


class _TableScores:
    """The fields of the `Scores` of one table: overall (group 0), and of each group of each breakdown.

    To ``drawn`` it appends what the interval of each value is drawn from. ``_rows`` are the complete items of all
    groups, one group after the other, each in the order of clusters, and ``_group`` is the group of each; ``_parts`` is
    the part of an item that counts in a group.
    """

    def __init__(self, table: ItemTable, threshold: float, drawn: list[_Drawn]) -> None:
        self._table, self._threshold, self._drawn = table, threshold, drawn
        used = (name for name in ("accuracy", PREFERENCE, ECE, GIVEN) if name in table.metrics)
        self._columns = {name: table.column(name) for name in used}  # a group's are made on each access
        by_name = {name: table.rows_by_group(name) for name in table.breakdowns}
        self._keys = [("", ""), *((name, key) for name, groups in by_name.items() for key in groups)]
        self._parts = [key if name and name == table.benchmark.parts else "" for name, key in self._keys]
        self._members = [np.arange(len(table.items)), *(by_name[name][key] for name, key in self._keys[1:])]
        complete = [rows[table.complete[rows]] for rows in self._members]
        self._scored = [rows[np.argsort(table.codes[rows], kind="stable")] for rows in complete]
        self._rows = np.concatenate(self._scored)
        self._count = len(self._scored)
        self._group = np.repeat(np.arange(self._count), [len(rows) for rows in self._scored])

    def fields(self) -> dict[str, Any]:
        table = self._table
        metrics = {name: self._metric(name) for name in table.metrics}
        groups = []
        for number, (rows, scored) in enumerate(zip(self._members, self._scored, strict=True)):
            listed = rows.tolist()
            statuses = Counter(chain.from_iterable(map(table.statuses.__getitem__, listed)))
            letters = self._rotated_letters if PREFERENCE in self._columns else self._letters
            groups.append(
                {
                    "samples": sum(len(table.samples[row]) for row in listed),
                    "items": len(scored),
                    "clusters": len(np.unique(table.codes[rows])),
                    "status": dict(sorted(statuses.items())),
                    "metrics": {name: scores[number] for name, scores in metrics.items()},
                    "incomplete": len(rows) - len(scored),
                    "letters": letters(scored),
                }
            )
        breakdowns: dict[str, dict[str, Any]] = {name: {} for name in table.breakdowns}
        for (name, key), fields in zip(self._keys[1:], groups[1:], strict=True):
            breakdowns[name][key] = fields
        return {**groups[0], "breakdowns": breakdowns, "reliability": self._reliability()}

    # --- one metric ---

    def _metric(self, name: str) -> list[dict[str, Any]]:
        """The `MetricScore` of each group, in one call of the metric."""
        metric, group = get_metric(name), self._group
        whole = self._table.columns[name]
        reduced = [self._table.reduced.get((name, part)) for part in self._parts]
        if any(one is not None for one in reduced):
            column = stacked([reduced_to(whole, part, rows) for part, rows in zip(reduced, self._scored, strict=True)])
        else:
            column = whole.take(self._rows)
        scores = self._unscored(metric, column)
        valued = [number for number, score in enumerate(scores) if score["reason"] is None]
        if not valued:
            return scores
        known = column.applies & column.known & np.isin(group, valued)
        rows, statistics = self._rows, column.statistics
        if not known.all():  # if all are, a copy would only cost memory: tens of megabytes in large runs
            rows, statistics, group = rows[known], statistics[known], group[known]
        del column
        check_finite(statistics)
        begins = np.flatnonzero(np.diff(group, prepend=-1) | np.diff(self._table.codes[rows], prepend=-1))
        sums = np.split(segment_sums(statistics, begins), _begins(group[begins])[1:])
        values = _scores(metric, segment_sums(statistics, _begins(group))).tolist()
        for number, value, table in zip(valued, values, sums, strict=True):
            score = scores[number]
            if math.isnan(value):
                score["reason"] = "it is undefined for so few clusters"
                continue
            score["value"] = value
            if name == "accuracy":
                chance = _chance([self._table.options[row] for row in rows[group == number]])
                score |= {"chance": chance, "margin_over_chance": None if chance is None else value - chance}
            if whole.repeats is not None and reduced[number] is None:
                items = self._scored[number]
                runs = whole.repeats[items[whole.applies[items]]]
                spread = _scores(metric, totals(runs.reshape(len(runs), -1)).reshape(runs.shape[1:])).tolist()
                score["repeats"] = {"values": spread, **student_interval(spread)}
            self._drawn.append((score, "", table, metric.score))
        return scores

    def _unscored(self, metric: Metric, column: Column) -> list[dict[str, Any]]:
        """The fields of each group's score without value and interval; ``reason`` is set if there is no value."""
        applies, group, state, threshold = column.applies, self._group, column.state, self._threshold
        masks = (applies, state >= PENDING, state == AWAITING, column.known, state == NO_RESPONSE)
        counts = [np.bincount(group[applies & mask], minlength=self._count).tolist() for mask in masks]
        unavailable = functools.cache(metric.unavailable)  # looks for files
        scores: list[dict[str, Any]] = []
        for number, (items, pending, awaiting, known, failed) in enumerate(zip(*counts, strict=True)):
            judges = [] if column.judge is None else column.judges_of(np.flatnonzero(applies & (group == number)))
            answered = items - failed
            absent = answered - pending - known
            reason = None
            if not items:
                reason = "it applies to no item here"
            elif not answered:
                reason = f"none of {items} items is answered"
            elif absent:
                reason = unavailable() or "the run that made these samples could not compute it"
                reason = f"{absent} of {answered} samples lack it: {reason}" if absent < answered else reason
            elif awaiting and known < threshold * answered:
                reason = f"{awaiting} of {items} items await a judge"
            elif not known:
                reason = f"none of {items} items has a verdict"
            scores.append(
                {
                    "value": None,
                    "interval": None,
                    "samples": items,
                    "signature": "|".join([metric.signature, *(f"judge:{judge}" for judge in judges)]),
                    "reason": reason,
                    "answered": answered if failed else None,
                    "judged": known if pending or judges else None,
                    "incomplete": reason is None and known < threshold * items,
                }
            )
        open_groups = [n for n, one in enumerate(scores) if one["answered"] is not None or one["judged"] is not None]
        if open_groups:
            rows = np.flatnonzero(applies & np.isin(group, open_groups))
            groups = group[rows]
            low, high = column.bounds(rows)
            # no bounds if an item has no range
            inside = ~np.isin(groups, groups[np.isnan(low).any(axis=1) | np.isnan(high).any(axis=1)])
            begins = _begins(groups[inside])
            sides = (_scores(metric, segment_sums(side[inside], begins)).tolist() for side in (low, high))
            for number, worst, best in zip(np.unique(groups[inside]).tolist(), *sides, strict=True):
                scores[number]["bounds"] = worst, best
        return scores

    # --- letters and confidence ---

    def _letters(self, rows: Rows) -> dict[str, Any] | None:
        table, accuracy = self._table, self._columns.get("accuracy")
        options, null = table.benchmark.options, table.benchmark.null_option
        if not options or accuracy is None:
            return None
        gold: Counter[str] = Counter()
        chosen: Counter[str] = Counter()
        wrong = missed = 0
        asked = rows[accuracy.present[rows]].tolist()
        answers = Counter((table.target[row], table.chosen[row], table.statuses[row][0]) for row in asked)
        for (target, letter, status), count in answers.items():
            if status != FAILED:
                gold[target] += count
                chosen[letter if status == "ok" else f"[{status}]"] += count
                wrong += count * (letter == null and target != null)
                missed += count * (status == "ok" and letter != null and target == null)
        if not gold:
            return None
        others = {key: count for key, count in sorted(chosen.items()) if key not in options}
        return {
            "gold": {letter: gold[letter] for letter in options},
            "chosen": {**{letter: chosen[letter] for letter in options}, **others},
            "null_chosen_when_wrong": None if null is None else wrong,
            "null_missed_when_right": None if null is None else missed,
        }

    def _rotated_letters(self, rows: Rows) -> dict[str, Any] | None:
        """The `Letters` of rotated questions, also without a selected option; None without a response."""
        table, column = self._table, self._columns[PREFERENCE]
        answered = [table.statuses[row] for row in rows.tolist() if FAILED not in table.statuses[row]]
        if not answered:
            return None
        statuses = Counter(status for each in answered for status in each if status != "ok")
        rows = rows[column.present[rows] & column.known[rows]]
        statistics = column.statistics[rows]
        chosen, shown, gold = totals(statistics).reshape(3, POSITIONS).tolist()
        letters = table.benchmark.options or ascii_uppercase
        names = {place: name for place, name in enumerate(letters) if shown[place]}
        preference: dict[str, float] = {}
        for place, name in names.items():
            pairs = preference_of_letter(statistics, place)
            preference[name] = float(_MEAN(totals(pairs)))
            self._drawn.append((preference, name, cluster_totals(pairs, table.codes[rows]), _MEAN))
        return {
            "gold": {name: int(gold[place]) for place, name in names.items()},
            "chosen": {name: int(chosen[place]) for place, name in names.items()}
            | {f"[{status}]": count for status, count in sorted(statuses.items())},
            "preference": preference,
        }

    def _reliability(self) -> dict[str, Any] | None:
        """Accuracy by confidence; None without any confidence."""
        table, column, given = self._table, self._columns.get(ECE), self._columns.get(GIVEN)
        if column is None or given is None:
            return None
        rows = np.flatnonzero(column.known & table.complete)
        if not len(rows):
            return None
        counts, right = cases(column.statistics[rows])
        bins = []
        for place in range(BINS):
            chosen = place == BIN_OF
            pairs = np.stack([right[:, chosen].sum(axis=1), counts[:, chosen].sum(axis=1)], axis=-1)
            if answers := int(pairs[:, 1].sum()):
                fields = {
                    "low": place / BINS,
                    "high": (place + 1) / BINS,
                    "answers": answers,
                    "confidence": float((counts[:, chosen] @ PERCENT[chosen]).sum()) / 100 / answers,
                    "accuracy": float(_MEAN(totals(pairs))),
                }
                bins.append(fields)
                self._drawn.append((fields, "", cluster_totals(pairs, table.codes[rows]), _MEAN))
        every = totals(column.statistics[rows])
        known = np.flatnonzero(given.known & table.complete)
        return {
            "without": reasons(totals(given.statistics[known]).tolist()),
            "bins": bins,
            "curve": [float(accuracy_at(every, tenths / 10)) for tenths in range(1, 11)],
        }


def _begins(group: Rows) -> Rows:
    return np.flatnonzero(np.diff(group, prepend=-1))


def _scores(metric: Metric, sums: Array) -> Array:
    scores = np.asarray(metric.score(sums))
    if scores.shape != sums.shape[:-1]:
        raise MedtasksError(
            f"metric {metric.name}: `score` returns shape {scores.shape} for sums of shape {sums.shape}, expected "
            f"{sums.shape[:-1]}; make it work on the last axis."
        )
    return scores


def _chance(options: Sequence[int]) -> float | None:
    """The accuracy of uniform guessing, the mean of 1/options; None if an item cannot be guessed."""
    numbers, counts = np.unique(options, return_counts=True)
    if numbers[0] == 0:
        return None
    if len(numbers) == 1:  # divided once, so that 1/5 is not 0.2 with an error of rounding
        return 1 / int(numbers[0])
    return math.fsum((counts / numbers).tolist()) / len(options)
