"""How scores and ranks change without the questions whose gold answers people found wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from medtasks.catalog.spec import load_spec, load_specs
from medtasks.core.text import counted
from medtasks.metrics.registry import get_metric
from medtasks.runs.signature import changed_signature
from medtasks.scoring.columns import Rows
from medtasks.scoring.item_table import ItemTable
from medtasks.scoring.metric_scores import score_group
from medtasks.scoring.scores import COVERAGE, MetricScore

from ..rank.common_items import on_common_items
from ..rank.comparability import ComparabilityGroups
from ..rank.rankings import rank_models
from ..schema.model_rankings import Ranking
from ..schema.score_tables import BoardColumn, BoardTable, Cell
from ..verify.entries import Entry
from ..verify.scored_run import ScoredRun
from .cells import FilledCell, cell_of
from .column_ranking import column_ranking
from .floors import NO_FLOORS
from .tables import made_table

WITHOUT_WRONG_GOLDS = "without-wrong-golds"
_ALL, _KEPT = "all questions", "without them"
"""Remarks of the columns."""
_TITLE = "Without questions whose gold answer people found wrong"

WrongGolds = Collection[tuple[str, str]]
"""Questions by task and sample id."""


def wrong_gold_tables(
    columns: Sequence[BoardColumn],
    groups: ComparabilityGroups,
    wrong_golds: WrongGolds,
    gold_notes: Sequence[str] = (),
) -> list[BoardTable]:
    """The table with each headline score and its rank, with all questions and without the wrong
    ones; none if no score has such a question.

    Items are left out whole: all variants of a question, all rounds of a stream. Intervals and
    clusters are as everywhere. The table's note ends with ``gold_notes``, a sentence for each kind
    of verdicts that are not used.
    """
    cells: list[FilledCell] = []
    counts: list[str] = []
    for column in columns:
        whole = column_ranking(groups, column)
        runs = _ranked_runs(groups, column, whole)
        kept: dict[str, Entry] = {}
        removed = 0
        for model, run in runs.items():
            kept[model] = _kept_entry(run, column, wrong_golds)
            whole_count = len(run.entries[column.task].items)
            removed = max(removed, whole_count - len(kept[model].items))
        if not removed or whole is None:
            continue
        counts.append(f"{column.label}: {removed:,} of {counted(whole.items, 'item')}")
        cells += _cells(column, whole, runs, kept)
    if not cells:
        return []
    note = (
        "A sensitivity analysis: no ranking uses it. Left out are items with a question whose gold "
        f"answer most people who checked it found wrong. {'; '.join(counts)}."
    )
    if gold_notes:
        note += f" Of the verdicts: {'; '.join(gold_notes)}."
    return [made_table(WITHOUT_WRONG_GOLDS, _TITLE, note, cells)]


def _ranked_runs(
    groups: ComparabilityGroups, column: BoardColumn, ranking: Ranking | None
) -> dict[str, ScoredRun]:
    """The runs of the ranked models, best first; none in a column of a breakdown's group."""
    if ranking is None or column.breakdown is not None:
        return {}
    runs = groups.of(column.task, column.metric).ranked
    return {ranked.model: runs[ranked.model] for ranked in ranking.ranked}


def _cells(
    column: BoardColumn,
    whole: Ranking,
    runs: Mapping[str, ScoredRun],
    kept: Mapping[str, Entry],
) -> Iterator[FilledCell]:
    """The scores and ranks of the models, in the order of the whole ranking."""
    tables, clusters = on_common_items(kept, column.metric)
    signature = changed_signature(whole.signature, without="wrong-golds")
    reduced = rank_models(column, tables, clusters, signature=signature)
    cell_columns = (
        _named(column, "all", _ALL),
        _named(column, "kept", _KEPT),
        _rank_column(column, "all", _ALL),
        _rank_column(column, "kept", _KEPT),
    )
    for model, entry in kept.items():
        run_key = (runs[model].public.key,)
        whole_score = cell_of(runs[model], column)
        assert whole_score is not None  # the model is ranked
        cells = (
            whole_score,
            _score_cell(entry, column, signature),
            _rank_cell(whole, model),
            _rank_cell(reduced, model),
        )
        for cell_column, cell in zip(cell_columns, cells, strict=True):
            yield FilledCell(model, cell_column, cell, run_key)


def _named(column: BoardColumn, suffix: str, remark: str) -> BoardColumn:
    """The column, named by the questions that it is over."""
    update = {"key": f"{column.key}.{suffix}", "remark": remark, **NO_FLOORS}
    return column.model_copy(update=update)


def _rank_column(column: BoardColumn, suffix: str, remark: str) -> BoardColumn:
    """The column of the ranks by a score."""
    update = {
        "key": f"{column.key}.rank-{suffix}",
        "metric": f"{column.metric}.rank",
        "label": f"Rank by {column.label}",
        "unit": "rank",
        "higher_is_better": False,
        "remark": remark,
        **NO_FLOORS,
    }
    return column.model_copy(update=update)


def _rank_cell(ranking: Ranking, model: str) -> Cell:
    """A model's rank with its interval, or the reason why it has none."""
    signature = changed_signature(ranking.signature, of="ranks")
    for ranked in ranking.ranked:
        if ranked.model == model:
            return Cell(
                value=ranked.rank,
                low=ranked.best,
                high=ranked.worst,
                items=ranking.items,
                signature=signature,
            )
    reason = ranking.unranked.get(model, "not ranked")
    return Cell(value=None, items=ranking.items, reason=reason, signature=signature)


def _score_cell(entry: Entry, column: BoardColumn, signature: str) -> Cell:
    """A model's score over the items that are kept."""
    score = entry.scores.metrics[column.metric]
    low, high = score.interval or (None, None)
    return Cell(
        value=score.value,
        low=low,
        high=high,
        interval_method=score.interval_method,
        items=score.samples,
        answered=score.answered,
        judged=score.judged,
        bounds=score.bounds,
        incomplete=score.incomplete,
        reason=score.reason,
        signature=signature,
    )


def _kept_entry(run: ScoredRun, column: BoardColumn, wrong_golds: WrongGolds) -> Entry:
    """The run's entry without the items that have a wrong gold answer, in one metric."""
    entry = run.entries[column.task]
    table = entry.table
    wrong_of_task = _wrong_by_task(wrong_golds)
    kept_rows: list[int] = []
    for row, task in enumerate(table.tasks):
        wrong_ids = wrong_of_task.get(asked_as(task), set())
        if wrong_ids.isdisjoint((table.items[row], *table.samples[row])):
            kept_rows.append(row)
    kept = _rows_of(table, column.metric, np.array(kept_rows, dtype=np.int64))
    score = _score_of(kept, column.metric, _threshold(run))
    update = {
        "items": int(np.count_nonzero(kept.complete)),
        "metrics": {column.metric: score},
        "breakdowns": {},
    }
    return replace(entry, table=kept, scores=entry.scores.model_copy(update=update), timelines=())


def _threshold(run: ScoredRun) -> float:
    """The share of items that needs a verdict, as the run's scores were computed."""
    return max((facts.threshold for facts in run.manifest.judge.values()), default=COVERAGE)


def _score_of(table: ItemTable, metric: str, threshold: float) -> MetricScore:
    """The score of a table's complete items, as `medtasks.scoring.group_scores` computes it."""
    complete = np.flatnonzero(table.complete)
    by_cluster = complete[np.argsort(table.codes[complete], kind="stable")]
    column = table.column(metric).take(by_cluster)
    kind = get_metric(metric)
    return score_group(kind, column, table.codes[by_cluster], threshold, kind.unavailable)


def _wrong_by_task(wrong_golds: WrongGolds) -> dict[str, set[str]]:
    """The ids of samples and of their questions by the task that asks each question once."""
    ids: dict[str, set[str]] = {}
    for task, sample_id in wrong_golds:
        of_task = ids.setdefault(asked_as(task), set())
        of_task.add(sample_id)
        if asked_as(task) != task:
            of_task.add(sample_id.rpartition("~")[0] or sample_id)
    return ids


def asked_as(task: str) -> str:
    """The task with the same questions that asks each of them once, or the task itself."""
    if task not in load_specs():
        return task
    metadata = load_spec(task).metadata
    if metadata.varied is not None and metadata.compare_with:
        return metadata.compare_with
    return task


def _rows_of(table: ItemTable, metric: str, rows: Rows) -> ItemTable:
    """The table of these rows with one metric, without breakdowns."""
    numbers = rows.tolist()
    return ItemTable(
        benchmark=table.benchmark,
        metrics=(metric,),
        items=tuple(table.items[row] for row in numbers),
        tasks=tuple(table.tasks[row] for row in numbers),
        clusters=tuple(table.clusters[row] for row in numbers),
        samples=tuple(table.samples[row] for row in numbers),
        complete=table.complete[rows],
        groups={},
        columns={metric: table.column(metric).take(rows)},
    )
