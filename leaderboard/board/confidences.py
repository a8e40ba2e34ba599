"""Tables and plots of a benchmark's confidences, and the accuracy by confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from medtasks.catalog.board_layout import Column
from medtasks.catalog.spec import load_spec
from medtasks.metrics.confidence import BINS, CONFIDENCE_NAMES, ECE
from medtasks.metrics.registry import label_of
from medtasks.runs.signature import changed_signature
from medtasks.scoring.scores import Reliability, ReliabilityBin

from ..schema.plot_data import BoardPlot, ModelReliability
from ..schema.score_tables import BoardColumn, BoardTable, Cell
from ..verify.scored_run import ScoredRun
from .cells import FilledCell
from .columns import board_columns
from .table_source import TableSource
from .tables import made_table

_NOTE = (
    "Scores over the answers with a confidence, whose share is given. Calibration error (15 bins "
    "of equal width), Brier score and area under the risk-coverage curve: 0 is best. "
    "Models without confidences are not listed."
)
_BINS_NOTE = (
    "A calibrated model is right as often as its confidence says, which is the dashed line. Marks "
    "grow with the share of the answers; lines are 95 % intervals. The table has accuracy minus "
    "mean confidence: below 0 a model is too sure."
)
_CURVE_NOTE = (
    "Accuracy when only the most confident answers count. "
    "The curve of useless confidences is level."
)
_EMPTY = Cell(value=None, items=0, reason="no answer with this confidence", signature="")


@dataclass
class ConfidenceSection:
    """What a benchmark's board shows of confidences."""

    tables: list[BoardTable] = field(default_factory=list)
    plots: list[BoardPlot] = field(default_factory=list)
    reliability: list[ModelReliability] = field(default_factory=list)


@dataclass(frozen=True)
class _ModelCurve:
    """A model's accuracy by confidence in one task, in ``run``."""

    model: str
    run: ScoredRun
    reliability: Reliability

    def signature(self, task: str) -> str:
        return self.run.entries[task].signatures[ECE]

    @property
    def runs(self) -> tuple[str, ...]:
        return (self.run.public.key,)

    @property
    def answers(self) -> int:
        """The number of answers with a confidence."""
        return sum(part.answers for part in self.reliability.bins)


def confidence_section(headline: Sequence[BoardColumn], source: TableSource) -> ConfidenceSection:
    """The tables and plots of one benchmark's confidences, and the models' accuracy by confidence.

    They are of the first headline column with confidences, and of the tasks that are compared with
    its own.
    """
    section = ConfidenceSection()
    for task, title in _tasks_with_confidences(headline, source.runs).items():
        curves = []
        for model, run in source.groups.of(task, ECE).ranked.items():
            reliability = run.entries[task].scores.reliability
            if reliability is not None:
                curves.append(_ModelCurve(model, run, reliability))
        if curves:
            _add_task(section, task, title, curves, source)
    return section


def _tasks_with_confidences(
    headline: Sequence[BoardColumn], runs: Sequence[ScoredRun]
) -> dict[str, str]:
    """The tasks whose confidences are shown, with the titles that tell them apart."""
    with_confidences: set[str] = set()
    for run in runs:
        for name, entry in run.entries.items():
            if ECE in entry.scores.metrics:
                with_confidences.add(name)
    specs = {name: load_spec(name).metadata for name in sorted(with_confidences)}
    for column in headline:
        tasks: dict[str, str] = {}
        if column.task in with_confidences:
            tasks[column.task] = ""
        for name, spec in specs.items():
            if spec.compare_with == column.task:
                tasks[name] = spec.title.rpartition(", ")[2]
        if tasks:
            return tasks
    return {}


def _add_task(
    section: ConfidenceSection,
    task: str,
    title: str,
    curves: Sequence[_ModelCurve],
    source: TableSource,
) -> None:
    """Add the tables and plots of one task, and its models' accuracy by confidence."""
    for curve in curves:
        section.reliability.append(
            ModelReliability(task=task, model=curve.model, reliability=curve.reliability)
        )
    suffix = f"-{task}" if title else ""
    subject = f": {title}" if title else ""
    columns = board_columns(Column(task, metric, label_of(metric)) for metric in CONFIDENCE_NAMES)
    scores = source.table(f"confidence{suffix}", f"Confidence{subject}", columns, _NOTE)
    by_bin = made_table(
        f"reliability{suffix}",
        f"Accuracy by confidence{subject}",
        _BINS_NOTE,
        _bin_cells(task, curves),
    )
    by_coverage = made_table(
        f"coverage{suffix}",
        f"Accuracy by coverage{subject}",
        _CURVE_NOTE,
        _coverage_cells(task, curves),
    )
    section.tables += [scores, by_bin, by_coverage]
    section.plots += [
        _plot_of("bars", scores),
        _plot_of("reliability", by_bin),
        _plot_of("coverage", by_coverage),
    ]


def _plot_of(kind: Literal["bars", "reliability", "coverage"], table: BoardTable) -> BoardPlot:
    """The plot of all columns of a table."""
    keys = tuple(column.key for column in table.columns)
    return BoardPlot(name=table.name, title=table.title, kind=kind, table=table.name, columns=keys)


def _accuracy_column(task: str, key: str, label: str, *, signed: bool) -> BoardColumn:
    return BoardColumn(
        key=f"{task}.accuracy.{key}",
        task=task,
        label=label,
        metric="accuracy",
        unit="fraction",
        higher_is_better=True,
        signed=signed,
    )


def _bin_cells(task: str, curves: Sequence[_ModelCurve]) -> list[FilledCell]:
    """Accuracy minus confidence of each model in each bin that any model has answers in."""
    labels: dict[float, str] = {}
    for curve in curves:
        for part in curve.reliability.bins:
            labels[part.high] = f"{100 * part.low:.0f} to {100 * part.high:.0f} %"
    columns: dict[float, BoardColumn] = {}
    for high, label in sorted(labels.items()):
        key = f"bin-{round(high * BINS):02}"
        columns[high] = _accuracy_column(task, key, label, signed=True)
    cells = []
    for curve in curves:
        signature = curve.signature(task)
        parts = {part.high: part for part in curve.reliability.bins}
        for high, column in columns.items():
            cell = _bin_cell(parts[high], signature) if high in parts else _EMPTY
            cells.append(FilledCell(curve.model, column, cell, curve.runs))
    return cells


def _bin_cell(part: ReliabilityBin, signature: str) -> Cell:
    """Accuracy minus confidence of the answers in one bin, with its interval."""
    low = high = None
    if part.interval is not None:
        low = part.interval[0] - part.confidence
        high = part.interval[1] - part.confidence
    bounds = f"{part.low:.4f}-{part.high:.4f}"
    return Cell(
        value=part.accuracy - part.confidence,
        low=low,
        high=high,
        items=part.answers,
        signature=changed_signature(signature, metric="accuracy", minus="confidence", bin=bounds),
    )


def _coverage_cells(task: str, curves: Sequence[_ModelCurve]) -> list[FilledCell]:
    """Each model's accuracy over its most confident 10 % of the answers, 20 %, … 100 %."""
    cells = []
    for curve in curves:
        signature = curve.signature(task)
        for tenth, accuracy in enumerate(curve.reliability.curve, start=1):
            column = _accuracy_column(task, f"coverage-{tenth:02}", f"{10 * tenth} %", signed=False)
            cell = Cell(
                value=accuracy,
                items=curve.answers,
                signature=changed_signature(
                    signature, metric="accuracy", coverage=f"{tenth / 10:g}"
                ),
            )
            cells.append(FilledCell(curve.model, column, cell, curve.runs))
    return cells
