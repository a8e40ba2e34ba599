"""Scores of runs as cells of a board's tables."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

from medtasks.catalog.board_layout import Column
from medtasks.runs.signature import changed_signature
from medtasks.scoring.scores import MetricScore

from ..schema.score_tables import BoardColumn, Cell
from ..verify.coverage import is_incomplete
from ..verify.scored_run import ScoredRun


@dataclass(frozen=True)
class FilledCell:
    """A model's cell in a column; ``runs`` are the keys of the runs that it is of."""

    model: str
    column: BoardColumn
    cell: Cell
    runs: tuple[str, ...]


def cell_of(run: ScoredRun, column: BoardColumn) -> Cell | None:
    """A run's score in a column; None without one, or if the metric applies to no item."""
    score = score_of(run, column)
    if score is None or not score.samples:
        return None
    low, high = score.interval or (None, None)
    signature = run.entries[column.task].signatures[column.metric]
    is_judged = score.judged is not None
    return Cell(
        value=score.value,
        low=low,
        high=high,
        interval_method=score.interval_method,
        items=score.samples,
        answered=score.answered,
        judged=score.judged,
        judge=run.public.judged_by.get(column.task, "") if is_judged else "",
        bounds=score.bounds,
        incomplete=is_incomplete(score),
        reason=score.reason,
        signature=part_signature(signature, column.breakdown, column.group),
    )


def score_of(run: ScoredRun, column: Column | BoardColumn) -> MetricScore | None:
    """A run's score in a column, whatever it applies to; None without one."""
    return scores_beside(run, column).get(column.metric)


def scores_beside(run: ScoredRun, column: Column | BoardColumn) -> Mapping[str, MetricScore]:
    """A run's scores by metric over the items that a column is about; empty without any."""
    scores = run.scores.get(column.task)
    if scores is not None and column.breakdown is not None:
        groups = scores.breakdowns.get(column.breakdown, {})
        scores = groups.get(column.group or "")
    return {} if scores is None else scores.metrics


@functools.lru_cache(maxsize=4096)
def part_signature(signature: str, breakdown: str | None, group: str | None) -> str:
    """The signature of the score of one group of a breakdown; the whole score's without one."""
    if breakdown is None:
        return signature
    return changed_signature(signature, part=f"{breakdown}={group}")
