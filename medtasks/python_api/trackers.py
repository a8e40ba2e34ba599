"""Runs in experiment trackers (Weights & Biases, trackio, MLflow), through their own functions."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import PIL.Image
from PIL.Image import Image

from medtasks.benchmarks.layouts import all_layouts
from medtasks.core.errors import UsageError
from medtasks.python_api.runs import AnyRun, scored_of
from medtasks.scoring.logged_tables import (
    LoggedTable,
    sample_table,
    score_table,
    score_values,
    shown_of,
)
from medtasks.scoring.run_record import RunRecord

_SCORES = "medtasks_scores"
_NOT_IN_MLFLOW = re.compile(r"[^\w\-. :/]")
"""Characters that names of MLflow's metrics must not have."""
_NO_PICTURE = PIL.Image.new("L", (1, 1), 255)


class _Tracker(Protocol):
    """What `log` needs of a tracker."""

    def log_values(self, values: Mapping[str, float]) -> None: ...
    def log_table(self, name: str, table: LoggedTable) -> None: ...


def log(run: AnyRun, tracker: Any, *, pictures: bool = True) -> list[str]:
    """Log a run's scores with their intervals, and its samples, to an experiment tracker.

    Scores are numbers (``<task>/<metric>``, ``…_low``, ``…_high``, ``…_coverage``) and the table
    ``medtasks_scores``. The samples of each task are a table ``<task>_samples``, in parts of 10,000
    rows, with as much of each sample as the terms of its benchmark let others see: texts and up to
    four pictures, texts alone, or only ids, extracted options, status and scores.

    Args:
        run: a run, or the path of a directory that contains one.
        tracker: ``wandb``, ``trackio`` or ``mlflow``, the modules, which log to the run that was
            started; or a run that they return.
        pictures: log pictures where the terms allow it.

    Returns:
        What was left out, a sentence for each benchmark.

    Raises:
        UsageError: the tracker is none of these.
        MedtasksError: the run cannot be read, or its pictures are not prepared here.
    """
    logger = _tracker(tracker)
    record = scored_of(run, whole=True).record
    logger.log_values(_all_values(record))
    logger.log_table(_SCORES, score_table(record))
    notes: dict[str, None] = {}
    for task, samples in record.samples.items():
        benchmark = record.manifest.tasks[task].benchmark
        shows = shown_of(benchmark)
        if shows != "media":
            notes[_left_out(benchmark)] = None
        elif not pictures:
            shows = "text"
        for name, part in sample_table(samples, shows).parts(f"{task}_samples"):
            logger.log_table(name, part)
    return list(notes)


def _all_values(record: RunRecord) -> dict[str, float]:
    """Every score that has a value, with the ends of its interval and its coverage."""
    values: dict[str, float] = {}
    for name, scores in record.scores.items():
        for metric, score in scores.metrics.items():
            if score.value is not None:
                values[f"{name}/{metric}"] = score.value
    return values | score_values(record)


def _left_out(benchmark: str) -> str:
    """What was not logged of a benchmark's samples, and why."""
    kept = "text" if shown_of(benchmark) == "text" else "ids, extracted options, status and scores"
    layout = all_layouts().get(benchmark)
    why = "it has no board layout." if layout is None else layout.why
    return f"{benchmark}: of samples only {kept}, because {why[:1].lower()}{why[1:]}"


def _tracker(tracker: Any) -> _Tracker:
    """The tracker, recognised by the documented functions of its package.

    Raises:
        UsageError: it has other functions.
    """
    package = tracker
    if not isinstance(tracker, ModuleType):
        package = sys.modules.get(type(tracker).__module__.partition(".")[0])
    if hasattr(tracker, "log") and hasattr(package, "Table") and hasattr(package, "Image"):
        return _WandbTracker(tracker.log, package.Table, package.Image)
    if hasattr(package, "log_metrics") and hasattr(package, "log_table"):
        run_id = None if tracker is package else tracker.info.run_id
        return _MlflowTracker(package, run_id)
    name = tracker.__name__ if isinstance(tracker, ModuleType) else type(tracker).__name__
    raise UsageError(
        f"tracker is {name}, expected wandb, trackio or mlflow, or a run that they return."
    )


@dataclass(frozen=True)
class _WandbTracker:
    """W&B, and trackio, which has the same functions."""

    log: Callable[..., Any]
    table: Callable[..., Any]
    image: Callable[..., Any]

    def log_values(self, values: Mapping[str, float]) -> None:
        """Log numbers by name."""
        self.log(dict(values))

    def log_table(self, name: str, table: LoggedTable) -> None:
        """Log a table, its pictures as the tracker's own."""
        data: list[list[Any]] = []
        for row in table.rows:
            data.append([self.image(cell) if isinstance(cell, Image) else cell for cell in row])
        columns = [*table.names]
        self.log({name: self.table(columns=columns, data=data, allow_mixed_types=True)})


@dataclass(frozen=True)
class _MlflowTracker:
    """MLflow; without ``run_id``, the active run."""

    package: Any
    run_id: str | None

    def log_values(self, values: Mapping[str, float]) -> None:
        """Log numbers by name; in names, ``+`` becomes ``_plus``, other signs ``_``."""
        named: dict[str, float] = {}
        for name, value in values.items():
            named[_NOT_IN_MLFLOW.sub("_", name.replace("+", "_plus"))] = value
        self.package.log_metrics(named, run_id=self.run_id)

    def log_table(self, name: str, table: LoggedTable) -> None:
        """Log a table as the artifact ``medtasks/<name>.json``.

        MLflow refuses a column of pictures with an empty cell, so that gets one white pixel.
        """
        columns: dict[str, list[Any]] = {column: [] for column in table.names}
        for row in table.rows:
            for column, cell in zip(table.names, row, strict=True):
                columns[column].append(cell)
        for cells in columns.values():
            if any(isinstance(cell, Image) for cell in cells):
                cells[:] = [_NO_PICTURE if cell is None else cell for cell in cells]
        self.package.log_table(columns, f"medtasks/{name}.json", run_id=self.run_id)
