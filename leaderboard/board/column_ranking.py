"""The ranking of the comparable models by one column."""

from __future__ import annotations

from medtasks.scoring.scores import coverage_text

from ..rank.common_items import on_common_items
from ..rank.comparability import ComparabilityGroups
from ..rank.rankings import rank_models
from ..schema.model_rankings import Ranking
from ..schema.score_tables import BoardColumn
from ..verify.coverage import is_incomplete
from ..verify.entries import Entry


def column_ranking(groups: ComparabilityGroups, column: BoardColumn) -> Ranking | None:
    """The ranking of all comparable models by a column.

    None without comparable models, or if the column is signed. Models without a score, or with one
    over too few responses or verdicts, are listed without a rank.
    """
    group = groups.of(column.task, column.metric)
    if column.signed or not (group.ranked or group.waiting):
        return None
    entries: dict[str, Entry] = {}
    unranked: dict[str, str] = {}
    for model, run in group.waiting.items():
        score = run.entries[column.task].scores.metrics[column.metric]
        unranked[model] = score.reason or "no value"
    for model, run in group.ranked.items():
        entry = run.entries[column.task]
        score = entry.scores.metrics[column.metric]
        if is_incomplete(score):
            coverage = coverage_text(score.samples, score.answered, score.judged)
            unranked[model] = f"incomplete: {coverage}"
        else:
            entries[model] = entry
    tables, clusters = on_common_items(entries, column.metric) if entries else ({}, ())
    return rank_models(column, tables, clusters, signature=group.signature, unranked=unranked)
