"""The rows of one run in the tables of samples, scores and items, as Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from medtasks.leaderboard.board.cells import part_signature
from medtasks.leaderboard.verify.scored_run import ScoredRun
from medtasks.leaderboard.view.parquet import SampleTables
from medtasks.leaderboard.view.sample_table import table_of
from medtasks.metrics.registry import get_metric, unit_of
from medtasks.python_api.columns import SAMPLES, SCORES, STATES, TYPES, repeated
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.scores import MetricScore, Scores


class OpenedRun(Protocol):
    """What the tables need of a run (`medtasks.python_api.runs.Run`)."""

    @property
    def name(self) -> str: ...

    @property
    def path(self) -> Path | None: ...
    @property
    def model(self) -> str: ...
    @property
    def scored(self) -> ScoredRun: ...
    @property
    def _record(self) -> RunRecord | None: ...


_FIELDS_OF_SCORE = {
    "value",
    "interval_method",
    "answered",
    "judged",
    "chance",
    "constant",
    "constant_answer",
    "incomplete",
    "reason",
}
"""Columns of the table of scores that are fields of the score."""


def sample_table(run: OpenedRun, task: str, stored: SampleTables) -> Any:
    """The samples of one task of a run, a row each; ``stored`` are the tables in the cache."""
    verification = run.scored.verification[task]
    if run._record is not None:
        samples = ((0, 0, sample) for sample in run._record.samples[task])
        stored_table = table_of(samples, task, verification)
    else:
        assert run.path is not None
        stored_table = pq.read_table(stored.table(run.path, run.scored.record, task).file)
    columns = repeated(len(stored_table), run=run.name, model=run.model, task=task)
    for name in stored_table.column_names:
        if name != "task" and (name in SAMPLES or name.startswith("score_")):
            columns[name] = stored_table[name]
    return pa.table(columns)


def score_table(run: OpenedRun) -> Any:
    """All scores of a run, a row for each metric of each task, group and group of a breakdown."""
    rows: list[dict[str, object]] = []
    for entry in run.scored.entries.values():
        for breakdown, group, scores in _groups(entry.scores):
            for metric, score in scores.metrics.items():
                row: dict[str, object] = {
                    "run": run.name,
                    "model": run.model,
                    "task": entry.name,
                    "breakdown": breakdown,
                    "group": group,
                    "metric": metric,
                    "unit": unit_of(metric),
                    "signature": part_signature(entry.signatures[metric], breakdown, group),
                }
                rows.append(row | _score_columns(score))
    schema = pa.schema([(name, TYPES.get(name, pa.string())) for name in SCORES])
    return pa.Table.from_pylist(rows, schema=schema)


def _groups(scores: Scores) -> Iterator[tuple[str | None, str | None, Scores]]:
    """The scores over all items, and those of each group of each breakdown."""
    yield None, None, scores
    for breakdown, groups in scores.breakdowns.items():
        for group, group_scores in groups.items():
            yield breakdown, group, group_scores


def _score_columns(score: MetricScore) -> dict[str, object]:
    """The columns of a score that do not depend on its task and group."""
    low, high = score.interval or (None, None)
    least, most = score.bounds or (None, None)
    return {
        "low": low,
        "high": high,
        "least": least,
        "most": most,
        "items": score.samples,
        **score.model_dump(include=_FIELDS_OF_SCORE),
    }


def _lists_of_rows(rows: npt.NDArray[np.float64]) -> Any:
    """An Arrow array with each row of a matrix as a list."""
    number, width = rows.shape
    ends = np.arange(number + 1, dtype=np.int32) * width
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(np.ascontiguousarray(rows).ravel()))


def item_table(run: OpenedRun, table: ItemTable, metric: str) -> Any:
    """An Arrow table with a row for each item of a task or group, in one metric."""
    size = len(table.items)
    column = table.column(metric)
    # an item without observations has no value: 0 divided by 0
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = get_metric(metric).score(column.statistics)
    values = np.asarray(scores, dtype=np.float64)
    columns: dict[str, Any] = {
        **repeated(size, run=run.name, model=run.model),
        "task": list(table.tasks),
        "item": list(table.items),
        "cluster": list(table.clusters),
        "samples": pa.array(table.samples, pa.list_(pa.string())),
        **repeated(size, metric=metric),
        "state": [STATES[code] for code in column.state.tolist()],
        "value": pa.array(values, mask=~np.isfinite(values)),
        **repeated(size, unit=unit_of(metric)),
        "statistics": _lists_of_rows(column.statistics),
    }
    for breakdown, groups in table.groups.items():
        columns[f"group_{breakdown}"] = pa.array(groups, pa.list_(pa.string()))
    return pa.table(columns)
