"""Confidences on a benchmark's page: their scores, accuracy by confidence, and accuracy by coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from medtasks.benchmarks.card import Column
from medtasks.metrics.confidence import BINS, CONFIDENCE_NAMES, CalibrationError
from medtasks.results.signature import format_signature, parse_signature
from medtasks.spec import load_spec

from .board import BoardColumn, BoardPlot, BoardRow, BoardTable, Cell, ModelReliability
from .columns import board_columns
from .digest import Digest, Entry
from .standings import Standings
from .tables import Tables

NAME = "confidence"
ECE = CalibrationError.name
_LABELS = dict(
    zip(
        CONFIDENCE_NAMES,
        ("confidence given", "calibration error", "Brier score", "risk-coverage area", "accuracy at 80 % coverage"),
        strict=True,
    )
)
_NOTE = (
    "Scores over the answers with a confidence, whose share is given. Calibration error (15 bins of equal width), Brier "
    "score and area under the risk-coverage curve: 0 is best. Models without probabilities are not listed."
)
_BINS_NOTE = (
    "Accuracy of the answers by confidence. A calibrated model is right as often as its confidence says, which is the "
    "dashed line. Marks grow with the share of the answers; lines are 95 % intervals."
)
_CURVE_NOTE = "Accuracy when only the most confident answers count. The curve of useless confidences is level."


class ConfidenceSection:
    """The tables and plots of one benchmark: those of the headline columns' tasks and groups, and of tasks that are
    compared with them.

    Args:
        headline: the headline columns.
        digests: the runs.
        standings: of all runs.
        tables: makes tables from them.
    """

    def __init__(
        self, headline: Sequence[BoardColumn], digests: Sequence[Digest], standings: Standings, tables: Tables
    ) -> None:
        self._standings = standings
        self._titles = self._named(headline, digests)
        self.models = tuple(
            ModelReliability(task=task, model=model, reliability=found)
            for task in self._titles
            for model, entry in self._entries(task)
            if (found := entry.scores.reliability) is not None
        )
        self.tables: list[BoardTable] = []
        self.plots: list[BoardPlot] = []
        if self.models:
            self._add_scores(tables)
        for task in dict.fromkeys(one.task for one in self.models):
            self._add_figures(task)

    def _named(self, headline: Sequence[BoardColumn], digests: Sequence[Digest]) -> dict[str, str]:
        """What distinguishes each task's columns; empty for the headline's."""
        asked = {column.task: "" for column in headline}
        held = {name for digest in digests for name, entry in digest.entries.items() if ECE in entry.scores.metrics}
        others = {
            name: f", {spec.metadata.title.rpartition(', ')[2]}"
            for name in sorted(held - asked.keys())
            if (spec := load_spec(name)).metadata.compare_with in asked
        }
        return {name: label for name, label in {**asked, **others}.items() if name in held}

    def _entries(self, task: str) -> Iterable[tuple[str, Entry]]:
        for model, digest in self._standings.of(task, ECE).ranked.items():
            yield model, digest.entries[task]

    def _add_scores(self, tables: Tables) -> None:
        asked = [
            Column(task, metric, f"{label}{title}")
            for task, title in self._titles.items()
            for metric, label in _LABELS.items()
        ]
        table = tables.table(NAME, "Confidence", board_columns(asked, lambda _task, _breakdown: ()), _NOTE)
        filled = {key for row in (*table.rows, *(one.row for one in table.apart)) for key in row.cells}
        columns = tuple(column for column in table.columns if column.key in filled)
        self.tables.append(table.model_copy(update={"columns": columns}))
        for task, title in self._titles.items():
            keys = tuple(column.key for column in columns if column.task == task)
            if keys:
                self._plot("bars", NAME, NAME, f"Confidence{title}", task, keys)

    def _add_figures(self, task: str) -> None:
        """Accuracy by confidence and by coverage, each as a table and a figure."""
        bins: dict[str, BoardColumn] = {}
        parts: dict[str, BoardColumn] = {}
        rows: dict[str, list[BoardRow]] = {"reliability": [], "coverage": []}
        for model, digest in self._standings.of(task, ECE).ranked.items():
            entry = digest.entries[task]
            found = entry.scores.reliability
            if found is None:
                continue
            signature = {**parse_signature(entry.signatures[ECE]), "metric": "accuracy"}
            by_bin, by_part = {}, {}
            for one in found.bins:
                low, high = (100 * end for end in (one.low, one.high))
                column = _column(task, f"bin-{round(one.high * BINS):02}", f"{low:.0f} to {high:.0f} %")
                ends = one.interval or (None, None)
                text = format_signature({**signature, "confidence": f"{one.low:.4f}-{one.high:.4f}"})
                by_bin[column.key] = Cell(
                    value=one.accuracy, low=ends[0], high=ends[1], items=one.answers, signature=text
                )
                bins[column.key] = column
            answers = sum(one.answers for one in found.bins)
            for place, accuracy in enumerate(found.curve, start=1):
                column = _column(task, f"coverage-{place:02}", f"{10 * place} %")
                text = format_signature({**signature, "coverage": f"{place / 10:g}"})
                by_part[column.key] = Cell(value=accuracy, items=answers, signature=text)
                parts[column.key] = column
            for kind, cells in (("reliability", by_bin), ("coverage", by_part)):
                rows[kind].append(BoardRow(model=model, cells=cells, runs=(digest.facts.key,)))
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
