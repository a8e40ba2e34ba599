"""Columns and rows of a board's tables: each model's comparable scores, then those not comparable,
with the reasons; and the tables and plots of confidences.
"""

from __future__ import annotations

import functools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from medtasks.catalog.benchmark import ALL_GROUPS, Column
from medtasks.catalog.spec import load_spec
from medtasks.metrics.confidence import BINS, CONFIDENCE_NAMES, ECE
from medtasks.metrics.item_metrics import SIGNED
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.runs.signature import changed_signature, has_unknown_prompts
from medtasks.scoring.scores import MetricScore, Reliability
from medtasks.scoring.verification import unverified_note

from ..rank.comparability import ComparabilityGroups, coverage_notes
from ..schema.board import BoardColumn, BoardPlot, BoardRow, BoardTable, Cell, ModelReliability
from ..schema.numbers import column_key
from ..verify.coverage import is_incomplete
from ..verify.scored_run import ScoredRun
from .floors import best_blind, held_floors

Filled: TypeAlias = "tuple[str, BoardColumn, Cell, tuple[str, ...]]"
"""A model's cell in a column, and the keys of the runs that it is of."""

_SHARED = ("task", "metric", "label", "breakdown", "group", "remark")
_VARYING = re.compile(
    r"\b[0-9a-f]{8}…|[\d,]+ of [\d,]+(?= documents)|[\d,]+ samples? instead of [\d,]+"
)

_LABELS = (
    "confidence given",
    "calibration error",
    "Brier score",
    "risk-coverage area",
    "accuracy at 80 % coverage",
)
_NOTE = (
    "Scores over the answers with a confidence, whose share is given. Calibration error (15 bins of equal width), Brier"
    " score and area under the risk-coverage curve: 0 is best. Models without confidences are not listed."
)
_BINS_NOTE = (
    "A calibrated model is right as often as its confidence says, which is the dashed line. Marks grow with the share"
    " of the answers; lines are 95 % intervals. The table has accuracy minus mean confidence: below 0 a model is too"
    " sure."
)
_CURVE_NOTE = "Accuracy when only the most confident answers count. The curve of useless confidences is level."
_EMPTY = Cell(value=None, items=0, reason="no answer with this confidence", signature="")


def board_columns(
    columns: Iterable[Column],
    runs: Sequence[ScoredRun] = (),
    groups: ComparabilityGroups | None = None,
) -> tuple[BoardColumn, ...]:
    """The columns, each once, with ``ALL_GROUPS`` replaced by one column for each group in the
    runs, sorted.

    Floors are taken from the runs, and with ``groups`` from the blind ones that are otherwise
    comparable.
    """
    found: dict[str, BoardColumn] = {}
    for column in columns:
        each = [column]
        if column.breakdown is not None and column.group == ALL_GROUPS:
            held = [
                run.entries[column.task].scores.breakdowns
                for run in runs
                if column.task in run.entries
            ]
            keys = sorted(
                {key for breakdowns in held for key in breakdowns.get(column.breakdown, {})}
            )
            each = [replace(column, label=key.replace("_", " "), group=key) for key in keys]
        for one in each:
            if (key := column_key(one)) not in found:
                found[key] = BoardColumn(
                    **{name: getattr(one, name) for name in _SHARED},
                    key=key,
                    unit=unit_of(one.metric),
                    higher_is_better=get_metric(one.metric).higher_is_better,
                    signed=one.metric in SIGNED,
                    **_floor_fields(runs, one, groups),
                )
    return tuple(found.values())


def _floor_fields(
    runs: Sequence[ScoredRun], column: Column, groups: ComparabilityGroups | None
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if column.metric == "accuracy":
        scores = [_score_of(run, column) for run in runs]
        fields = held_floors(score for score in scores if score is not None)
        fields.setdefault("chance", held_chance(runs, column))
    if groups is not None and column.metric not in SIGNED:
        blind = [
            (run.public.model, _score_of(run, column))
            for run in groups.blind_runs(column.task, column.metric)
        ]
        complete = [
            (model, score)
            for model, score in blind
            if score is not None and not is_incomplete(score)
        ]
        fields |= best_blind(complete, higher_is_better=get_metric(column.metric).higher_is_better)
    return fields


def held_chance(runs: Iterable[ScoredRun], column: Column) -> float | None:
    """The accuracy of uniform guessing in a column, by the run with the most items, else by the
    benchmark's options.
    """
    scores = [_score_of(run, replace(column, metric="accuracy")) for run in runs]
    known = [
        (score.known, score.chance)
        for score in scores
        if score is not None and score.chance is not None
    ]
    if known:
        return max(known)[1]
    options = load_spec(column.task).benchmark.options
    return 1 / len(options) if options else None


def cell_of(run: ScoredRun, column: BoardColumn) -> Cell | None:
    """A run's score in a column; None without one, or if the metric applies to none of its
    items.
    """
    score = _score_of(run, column)
    if score is None or not score.samples:
        return None
    low, high = score.interval or (None, None)
    same = {
        name: getattr(score, name)
        for name in ("value", "interval_method", "answered", "judged", "bounds", "reason")
    }
    judge = "" if score.judged is None else run.public.judged_by.get(column.task, "")
    text = part_signature(
        run.entries[column.task].signatures[column.metric], column.breakdown, column.group
    )
    incomplete = is_incomplete(score)
    return Cell(
        low=low,
        high=high,
        items=score.samples,
        judge=judge,
        incomplete=incomplete,
        signature=text,
        **same,
    )


def _score_of(run: ScoredRun, column: Column | BoardColumn) -> MetricScore | None:
    scores = run.scores.get(column.task)
    if scores is not None and column.breakdown is not None:
        scores = scores.breakdowns.get(column.breakdown, {}).get(column.group or "")
    return None if scores is None else scores.metrics.get(column.metric)


@functools.lru_cache(maxsize=4096)
def part_signature(signature: str, breakdown: str | None, group: str | None) -> str:
    """The signature of the score of one group of a breakdown; the whole score's without a
    breakdown.
    """
    return (
        signature
        if breakdown is None
        else changed_signature(signature, part=f"{breakdown}={group}")
    )


def made_table(
    name: str,
    title: str,
    note: str,
    cells: Iterable[Filled],
    columns: Iterable[BoardColumn] = (),
    **more: Any,
) -> BoardTable:
    """A table with the ``cells``: its columns, unless given, and its rows are in the order in which
    they come.
    """
    found: dict[str, BoardColumn] = {}
    rows: dict[str, dict[str, Cell]] = defaultdict(dict)
    runs: dict[str, set[str]] = defaultdict(set)
    for model, column, cell, keys in cells:
        found[column.key] = column
        rows[model][column.key] = cell
        runs[model].update(keys)
    made = [
        BoardRow(model=model, cells=row, runs=tuple(sorted(runs[model])))
        for model, row in rows.items()
    ]
    shown = tuple(columns) or tuple(found.values())
    return BoardTable(name=name, title=title, note=note, columns=shown, rows=tuple(made), **more)


def comparable_table(
    groups: ComparabilityGroups,
    order: Mapping[str, tuple[float, ...]],
    name: str,
    title: str,
    columns: Sequence[BoardColumn],
    note: str = "",
) -> BoardTable:
    """The table of the columns, with models in this ``order``; a row may combine several runs of a
    model, one that is not comparable has one.
    """
    of = {(one.task, one.metric): groups.of(one.task, one.metric) for one in columns}
    comparable: list[Filled] = []
    apart: dict[tuple[str, str, str], tuple[ScoredRun, dict[str, Cell], dict[str, None]]] = {}
    for column in columns:
        group = of[column.task, column.metric]
        for model, run in {**group.waiting, **group.ranked}.items():
            if (cell := cell_of(run, column)) is not None:
                comparable.append((model, column, cell, (run.public.key,)))
        for run, why in group.apart:
            if (cell := cell_of(run, column)) is not None:
                key = (run.model, run.public.created, run.public.key)
                _, cells, reasons = apart.setdefault(key, (run, {}, {}))
                cells[column.key] = cell
                reasons.update(dict.fromkeys(why))
    last = (float("inf"),)
    comparable.sort(key=lambda one: (order.get(one[0], last), one[0]))
    not_comparable = [
        BoardRow(
            model=model,
            cells=cells,
            runs=(key,),
            blind=run.blind,
            reasons=tuple(_shortened(reasons)),
        )
        for (model, _, key), (run, cells, reasons) in sorted(apart.items(), key=lambda one: one[0])
    ]

    # what a reader must know of the comparable runs
    ranked = [(task, run) for (task, _), group in of.items() for run in group.ranked.values()]
    levels = {(group.level, task) for (task, _), group in of.items() if group.ranked}
    notes = [note]
    unknown = sorted(
        {task for (task, _), group in of.items() if has_unknown_prompts(group.signature)}
    )
    unusual = sorted(
        {task for (task, _), group in of.items() if not group.usual}.difference(unknown)
    )
    if unusual:
        notes.append(
            f"No run of {', '.join(unusual)} follows today's task files; these runs agree with each other."
        )
    if unknown:
        notes.append(
            f"The responses of {', '.join(unknown)} were made elsewhere, with prompts that nobody knows: these runs "
            "are comparable only if their models were asked the same."
        )
    notes += sorted({f"{text}." for task, run in ranked for text in coverage_notes(run, task)})
    if unverified := sorted(task for level, task in levels if level == 1):
        notes.append(unverified_note(unverified))
    if claimed := sorted(task for level, task in levels if level == 2):
        notes.append(
            f"Scores of {', '.join(claimed)} are claimed: they cannot be computed from responses here."
        )
    return made_table(
        name, title, " ".join(filter(None, notes)), comparable, columns, apart=tuple(not_comparable)
    )


def without_empty(table: BoardTable, printed: Collection[str] = ()) -> BoardTable:
    """The table without columns that have neither cells nor, by their keys in ``printed``,
    published figures.
    """
    filled = {key for row in table.every_row for key in row.cells}.union(printed)
    return table.model_copy(
        update={"columns": tuple(column for column in table.columns if column.key in filled)}
    )


def _shortened(reasons: Iterable[str]) -> Iterator[str]:
    """The reasons; those that differ only in hashes or counts (one per task) are combined."""
    same_text: dict[str, list[str]] = {}
    for reason in reasons:
        same_text.setdefault(_VARYING.sub("", reason), []).append(reason)
    for first, *others in same_text.values():
        yield f"{first} (and {len(others)} more of other tasks)" if others else first


def confidence_section(
    headline: Sequence[BoardColumn],
    runs: Sequence[ScoredRun],
    groups: ComparabilityGroups,
    table: Callable[[str, str, Sequence[BoardColumn], str], BoardTable],
) -> tuple[list[BoardTable], list[BoardPlot], tuple[ModelReliability, ...]]:
    """The tables and plots of one benchmark's confidences, and the models' accuracy by confidence:
    for the first headline column with confidences, and for the tasks that are compared with its
    own; ``table`` makes a table.
    """
    held = {
        name for run in runs for name, entry in run.entries.items() if ECE in entry.scores.metrics
    }
    specs = {name: load_spec(name).metadata for name in sorted(held)}
    tasks: dict[str, str] = {}
    for first in headline:
        tasks = {first.task: ""} if first.task in held else {}
        tasks |= {
            name: one.title.rpartition(", ")[2]
            for name, one in specs.items()
            if one.compare_with == first.task
        }
        if tasks:
            break
    known: list[ModelReliability] = []
    tables: list[BoardTable] = []
    plots: list[BoardPlot] = []
    for task, title in tasks.items():
        found = {
            model: (run, reliability)
            for model, run in groups.of(task, ECE).ranked.items()
            if (reliability := run.entries[task].scores.reliability) is not None
        }
        if not found:
            continue
        known += [
            ModelReliability(task=task, model=model, reliability=one)
            for model, (_, one) in found.items()
        ]
        columns = board_columns(
            [Column(task, *one) for one in zip(CONFIDENCE_NAMES, _LABELS, strict=True)]
        )
        name, what = (f"-{task}", f": {title}") if title else ("", "")
        by_bin, by_part = _curves(task, found)
        made: dict[Any, BoardTable] = {
            "bars": table(f"confidence{name}", f"Confidence{what}", columns, _NOTE),
            "reliability": made_table(
                f"reliability{name}", f"Accuracy by confidence{what}", _BINS_NOTE, by_bin
            ),
            "coverage": made_table(
                f"coverage{name}", f"Accuracy by coverage{what}", _CURVE_NOTE, by_part
            ),
        }
        for kind, one in made.items():
            keys = tuple(column.key for column in one.columns)
            plots.append(
                BoardPlot(name=one.name, title=one.title, kind=kind, table=one.name, columns=keys)
            )
        tables += made.values()
    return tables, plots, tuple(known)


def _curves(
    task: str, found: Mapping[str, tuple[ScoredRun, Reliability]]
) -> tuple[list[Filled], list[Filled]]:
    def column(key: str, label: str, *, signed: bool) -> BoardColumn:
        facts: dict[str, Any] = {
            "metric": "accuracy",
            "unit": "fraction",
            "higher_is_better": True,
            "signed": signed,
        }
        return BoardColumn(key=f"{task}.accuracy.{key}", task=task, label=label, **facts)

    ends = sorted(
        {(one.high, one.low) for _, reliability in found.values() for one in reliability.bins}
    )
    labels = {high: f"{100 * low:.0f} to {100 * high:.0f} %" for high, low in ends}
    columns = {
        high: column(f"bin-{round(high * BINS):02}", label, signed=True)
        for high, label in labels.items()
    }
    by_bin: list[Filled] = []
    by_part: list[Filled] = []
    for model, (run, reliability) in found.items():
        signature, keys = run.entries[task].signatures[ECE], (run.public.key,)
        cells = dict.fromkeys(columns, _EMPTY)
        for one in reliability.bins:
            low, high = (
                (None, None)
                if one.interval is None
                else (end - one.confidence for end in one.interval)
            )
            bounds, value = f"{one.low:.4f}-{one.high:.4f}", one.accuracy - one.confidence
            text = changed_signature(signature, metric="accuracy", minus="confidence", bin=bounds)
            cells[one.high] = Cell(
                value=value, low=low, high=high, items=one.answers, signature=text
            )
        by_bin += [(model, columns[high], cell, keys) for high, cell in cells.items()]
        answers = sum(one.answers for one in reliability.bins)
        for place, accuracy in enumerate(reliability.curve, start=1):
            text = changed_signature(signature, metric="accuracy", coverage=f"{place / 10:g}")
            cell = Cell(value=accuracy, items=answers, signature=text)
            by_part.append(
                (model, column(f"coverage-{place:02}", f"{10 * place} %", signed=False), cell, keys)
            )
    return by_bin, by_part
