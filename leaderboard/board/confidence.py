"""Confidences on a benchmark's page: their scores, accuracy by confidence, and accuracy by coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from medtasks.catalog.board_layout import Column
from medtasks.catalog.spec import load_spec
from medtasks.metrics.confidence import BINS, CONFIDENCE_NAMES, ECE
from medtasks.runs.signature import format_signature, parse_signature

from ..rank.comparability import ComparabilityGroups
from ..verify.scored_run import Entry, ScoredRun
from .board import BoardColumn, BoardPlot, BoardRow, BoardTable, Cell, ModelReliability
from .columns import board_columns
from .rows import Tables

NAME = "confidence"
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


class ConfidenceSection:
    """The tables and plots of one benchmark: those of the task or group of a headline column, and of tasks that are
    compared with it.

    Args:
        headline: the headline columns.
        runs: the runs.
        groups: of all runs.
        tables: makes tables from them.
    """

    def __init__(
        self, headline: Sequence[BoardColumn], runs: Sequence[ScoredRun], groups: ComparabilityGroups, tables: Tables
    ) -> None:
        self._groups = groups
        self._titles = self._named(headline, runs)
        self.models = tuple(
            ModelReliability(task=task, model=model, reliability=found)
            for task in self._titles
            for model, entry in self._entries(task)
            if (found := entry.scores.reliability) is not None
        )
        self.tables: list[BoardTable] = []
        self.plots: list[BoardPlot] = []
        for task in dict.fromkeys(one.task for one in self.models):
            self._add_scores(task, tables)
            self._add_figures(task)

    def _named(self, headline: Sequence[BoardColumn], runs: Sequence[ScoredRun]) -> dict[str, str]:
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

    def _entries(self, task: str) -> Iterable[tuple[str, Entry]]:
        for model, run in self._groups.of(task, ECE).ranked.items():
            yield model, run.entries[task]

    def _add_scores(self, task: str, tables: Tables) -> None:
        asked = [Column(task, metric, label) for metric, label in _LABELS.items()]
        name, title = self._name(NAME, task), f"Confidence{self._titles[task]}"
        table = tables.table(name, title, board_columns(asked, lambda _task, _breakdown: ()), _NOTE)
        self.tables.append(table)
        self._plot("bars", NAME, name, title, task, tuple(column.key for column in table.columns))

    def _add_figures(self, task: str) -> None:
        """Accuracy by confidence and by coverage, each as a table and a figure."""
        bins: dict[str, BoardColumn] = {}
        parts: dict[str, BoardColumn] = {}
        rows: dict[str, list[BoardRow]] = {"reliability": [], "coverage": []}
        for model, run in self._groups.of(task, ECE).ranked.items():
            entry = run.entries[task]
            found = entry.scores.reliability
            if found is None:
                continue
            signature = {**parse_signature(entry.signatures[ECE]), "metric": "accuracy"}
            by_bin, by_part = {}, {}
            for one in found.bins:
                label = f"{100 * one.low:.0f} to {100 * one.high:.0f} %"
                column = _column(task, f"bin-{round(one.high * BINS):02}", label).model_copy(update={"signed": True})
                low, high = (None, None) if one.interval is None else (end - one.confidence for end in one.interval)
                text = format_signature({**signature, "minus": "confidence", "bin": f"{one.low:.4f}-{one.high:.4f}"})
                by_bin[column.key] = Cell(
                    value=one.accuracy - one.confidence, low=low, high=high, items=one.answers, signature=text
                )
                bins[column.key] = column
            answers = sum(one.answers for one in found.bins)
            for place, accuracy in enumerate(found.curve, start=1):
                column = _column(task, f"coverage-{place:02}", f"{10 * place} %")
                text = format_signature({**signature, "coverage": f"{place / 10:g}"})
                by_part[column.key] = Cell(value=accuracy, items=answers, signature=text)
                parts[column.key] = column
            for kind, cells in (("reliability", by_bin), ("coverage", by_part)):
                rows[kind].append(BoardRow(model=model, cells=cells, runs=(run.public.key,)))
        rows["reliability"] = [
            row.model_copy(update={"cells": {key: row.cells.get(key, _EMPTY) for key in sorted(bins)}})
            for row in rows["reliability"]
        ]
        for kind, heading, columns, note in (
            ("reliability", "Accuracy by confidence", bins, _BINS_NOTE),
            ("coverage", "Accuracy by coverage", parts, _CURVE_NOTE),
        ):
            title = f"{heading}{self._titles[task]}"
            name = self._name(kind, task)
            ordered = tuple(columns[key] for key in sorted(columns))
            self.tables.append(BoardTable(name=name, title=title, note=note, columns=ordered, rows=tuple(rows[kind])))
            self._plot(kind, kind, name, title, task, tuple(column.key for column in ordered))

    def _plot(self, kind: Any, name: str, table: str, title: str, task: str, keys: tuple[str, ...]) -> None:
        self.plots.append(BoardPlot(name=self._name(name, task), title=title, kind=kind, table=table, columns=keys))

    def _name(self, kind: str, task: str) -> str:
        return f"{kind}-{task}" if self._titles[task] else kind


def _column(task: str, what: str, label: str) -> BoardColumn:
    key = f"{task}.accuracy.{what}"
    return BoardColumn(key=key, task=task, metric="accuracy", label=label, unit="fraction", higher_is_better=True)
