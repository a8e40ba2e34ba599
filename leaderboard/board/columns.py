"""Columns of a board's tables, with the floors that their scores have to exceed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from medtasks.catalog.board_layout import ALL_GROUPS, Column
from medtasks.catalog.spec import load_spec
from medtasks.metrics.registry import facts_of, get_metric, unit_of

from ..rank.comparability import ComparabilityGroups
from ..schema.numbers import column_key
from ..schema.score_tables import BoardColumn
from ..verify.coverage import is_incomplete
from ..verify.scored_run import ScoredRun
from .cells import score_of, scores_beside
from .floors import best_blind, held_floors


def board_columns(
    columns: Iterable[Column],
    runs: Sequence[ScoredRun] = (),
    groups: ComparabilityGroups | None = None,
) -> tuple[BoardColumn, ...]:
    """The columns, each once, with one column for each group in the runs in place of `ALL_GROUPS`.

    Floors are taken from the runs, and with ``groups`` from the blind ones that are otherwise
    comparable.
    """
    by_key: dict[str, BoardColumn] = {}
    for layout_column in columns:
        for column in _group_columns(layout_column, runs):
            key = column_key(column)
            if key not in by_key:
                by_key[key] = _board_column(column, key, runs, groups)
    return tuple(by_key.values())


def _group_columns(column: Column, runs: Iterable[ScoredRun]) -> list[Column]:
    """A column for each group in the runs, sorted, if the column is for all groups."""
    if column.breakdown is None or column.group != ALL_GROUPS:
        return [column]
    groups: set[str] = set()
    for run in runs:
        entry = run.entries.get(column.task)
        if entry is not None:
            groups.update(entry.scores.breakdowns.get(column.breakdown, {}))
    return [replace(column, label=key.replace("_", " "), group=key) for key in sorted(groups)]


def _board_column(
    column: Column, key: str, runs: Sequence[ScoredRun], groups: ComparabilityGroups | None
) -> BoardColumn:
    """The column of a board that a layout's column becomes, named ``key``."""
    return BoardColumn(
        key=key,
        task=column.task,
        metric=column.metric,
        label=column.label,
        breakdown=column.breakdown,
        group=column.group,
        remark=column.remark,
        unit=unit_of(column.metric),
        higher_is_better=get_metric(column.metric).higher_is_better,
        signed=facts_of(column.metric).is_signed,
        **_floor_fields(runs, column, groups),
    )


def _floor_fields(
    runs: Sequence[ScoredRun], column: Column, groups: ComparabilityGroups | None
) -> dict[str, Any]:
    """The column's fields about guessing, constant answers and blind runs."""
    fields: dict[str, Any] = {}
    if facts_of(column.metric).has_floors:
        scores = [score_of(run, column) for run in runs]
        fields = held_floors(score for score in scores if score is not None)
        fields.setdefault("chance", held_chance(runs, column))
    if groups is not None and not facts_of(column.metric).is_signed:
        complete = []
        for run in groups.blind_runs(column.task, column.metric):
            score = score_of(run, column)
            if score is not None and not is_incomplete(score):
                complete.append((run.public.model, score))
        fields |= best_blind(complete, higher_is_better=get_metric(column.metric).higher_is_better)
    return fields


def held_chance(runs: Iterable[ScoredRun], column: Column) -> float | None:
    """The accuracy of uniform guessing at a column's items: of the run with the most of them.

    Without a run, it follows from the benchmark's options; None if it has none.
    """
    chances = []
    for run in runs:
        for score in scores_beside(run, column).values():
            if score.chance is not None:
                chances.append((score.known, score.chance))
    if chances:
        return max(chances)[1]
    options = load_spec(column.task).benchmark.options
    return 1 / len(options) if options else None
