"""Confidences on a benchmark's page: their scores, accuracy by confidence, and accuracy by coverage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from medtasks.catalog.board_layout import Column
from medtasks.catalog.spec import load_spec
from medtasks.metrics.confidence import BINS, CONFIDENCE_NAMES, ECE
from medtasks.runs.scores import Reliability
from medtasks.runs.signature import format_signature, parse_signature

from ..rank.comparability import ComparabilityGroups
from ..verify.scored_run import ScoredRun
from .board import BoardColumn, BoardPlot, BoardTable, Cell, ModelReliability
from .rows import Tables, board_columns, made_table

_KINDS: tuple[Any, ...] = ("bars", "reliability", "coverage")
_LABELS = dict(
    zip(
        CONFIDENCE_NAMES,
        ("confidence given", "calibration error", "Brier score", "risk-coverage area", "accuracy at 80 % coverage"),
        strict=True,
    )
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


def confidence_section(
    headline: Sequence[BoardColumn], runs: Sequence[ScoredRun], groups: ComparabilityGroups, tables: Tables
) -> tuple[list[BoardTable], list[BoardPlot], tuple[ModelReliability, ...]]:
    """The tables and plots of one benchmark's confidences, and the models' accuracy by confidence: for the first
    headline column with confidences, and for the tasks that are compared with its own."""
    known: list[ModelReliability] = []
    made: list[BoardTable] = []
    plots: list[BoardPlot] = []
    for task, what in _titles(headline, runs).items():
        found = {
            model: (run, reliability)
            for model, run in groups.of(task, ECE).ranked.items()
            if (reliability := run.entries[task].scores.reliability) is not None
        }
        if not found:
            continue
        known += [ModelReliability(task=task, model=model, reliability=one) for model, (_, one) in found.items()]
        columns = board_columns([Column(task, metric, label) for metric, label in _LABELS.items()])
        name = f"-{task}" if what else ""
        section = [tables.table(f"confidence{name}", f"Confidence{what}", columns, _NOTE)]
        section += _curves(task, name, what, found)
        made += section
        for kind, table in zip(_KINDS, section, strict=True):
            keys = tuple(column.key for column in table.columns)
            plots.append(BoardPlot(name=table.name, title=table.title, kind=kind, table=table.name, columns=keys))
    return made, plots, tuple(known)


def _titles(headline: Sequence[BoardColumn], runs: Sequence[ScoredRun]) -> dict[str, str]:
    """What distinguishes each task, empty for that of a headline column: the first with confidences."""
    held = {name for run in runs for name, entry in run.entries.items() if ECE in entry.scores.metrics}
    for column in headline:
        twins = {
            name: f": {spec.metadata.title.rpartition(', ')[2]}"
            for name in sorted(held)
            if (spec := load_spec(name)).metadata.compare_with == column.task
        }
        if twins or column.task in held:
            return {**({column.task: ""} if column.task in held else {}), **twins}
    return {}


def _curves(
    task: str, name: str, what: str, found: Mapping[str, tuple[ScoredRun, Reliability]]
) -> tuple[BoardTable, BoardTable]:
    """Accuracy by confidence, and by coverage."""
    bins: dict[str, BoardColumn] = {}
    parts: dict[str, BoardColumn] = {}
    by_bin: dict[str, dict[str, Cell]] = {}
    by_part: dict[str, dict[str, Cell]] = {}
    for model, (run, reliability) in found.items():
        signature = {**parse_signature(run.entries[task].signatures[ECE]), "metric": "accuracy"}
        by_bin[model], by_part[model] = {}, {}
        for one in reliability.bins:
            label = f"{100 * one.low:.0f} to {100 * one.high:.0f} %"
            column = _column(task, f"bin-{round(one.high * BINS):02}", label, signed=True)
            bins[column.key] = column
            low, high = (None, None) if one.interval is None else (end - one.confidence for end in one.interval)
            text = format_signature({**signature, "minus": "confidence", "bin": f"{one.low:.4f}-{one.high:.4f}"})
            by_bin[model][column.key] = Cell(
                value=one.accuracy - one.confidence, low=low, high=high, items=one.answers, signature=text
            )
        answers = sum(one.answers for one in reliability.bins)
        for place, accuracy in enumerate(reliability.curve, start=1):
            column = _column(task, f"coverage-{place:02}", f"{10 * place} %")
            parts[column.key] = column
            text = format_signature({**signature, "coverage": f"{place / 10:g}"})
            by_part[model][column.key] = Cell(value=accuracy, items=answers, signature=text)
    by_bin = {model: {key: cells.get(key, _EMPTY) for key in sorted(bins)} for model, cells in by_bin.items()}
    runs = {model: (run.public.key,) for model, (run, _) in found.items()}
    columns, places = ([one[key] for key in sorted(one)] for one in (bins, parts))
    return (
        made_table(f"reliability{name}", f"Accuracy by confidence{what}", _BINS_NOTE, columns, by_bin, runs),
        made_table(f"coverage{name}", f"Accuracy by coverage{what}", _CURVE_NOTE, places, by_part, runs),
    )


def _column(task: str, what: str, label: str, signed: bool = False) -> BoardColumn:
    accuracy: dict[str, Any] = {"metric": "accuracy", "unit": "fraction", "higher_is_better": True}
    return BoardColumn(key=f"{task}.accuracy.{what}", task=task, label=label, signed=signed, **accuracy)
