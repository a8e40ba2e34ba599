"""Checks of board layouts: tasks, metrics and breakdowns exist, and names can be part of file names."""

from __future__ import annotations

import re
from collections.abc import Iterator

from medtasks.benchmarks.card import Card, Column
from medtasks.errors import MedtasksError
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.metrics.item_metrics import SIGNED
from medtasks.rubrics.rubric import load_rubric
from medtasks.spec import leaf_tasks, load_spec

HEADLINE = "headline"
"""The name of the table of headline scores, which no other table may have."""

_NAME = re.compile(r"[a-z0-9]{1,30}(-[a-z0-9]{1,30}){0,11}")


def metrics_of(task: str) -> tuple[str, ...]:
    """The metrics of a task or group: computed, learned, judged and pooled ones, kinds of error."""
    names: list[str] = []
    for leaf in leaf_tasks(task):
        metadata = load_spec(leaf).metadata
        judged = [name for rubric in metadata.rubrics for name in load_rubric(rubric).metrics]
        names += [*load_spec(leaf).scores, *metadata.learned, *judged, *(kind.name for kind in metadata.errors)]
    return tuple(dict.fromkeys((*names, *load_spec(task).metadata.pooled)))


def card_columns(card: Card) -> Iterator[Column]:
    """Every column of the layout, headline first."""
    yield from card.headline
    for table in card.tables:
        yield from table.columns
    for plot in card.plots:
        yield from (*plot.columns, *plot.against)


def check_card(card: Card) -> None:
    """Refuse a board layout that cannot be shown, by a :class:`MedtasksError` with what was expected."""
    for problem in _problems(card):
        raise MedtasksError(f"board layout of {card.benchmark}: {problem}.")


def _problems(card: Card) -> Iterator[str]:
    if not card.headline:
        yield "it has no headline column, expected at least one"
    yield from _bad_names("table", [HEADLINE, *(table.name for table in card.tables)])
    yield from _bad_names("plot", [plot.name for plot in card.plots])
    known: dict[str, tuple[str, ...]] = {}
    for column in card_columns(card):
        if column.task not in known:
            try:
                leaves = [load_spec(leaf) for leaf in leaf_tasks(column.task)]
                confident = any(leaf.metadata.confidence is not None for leaf in leaves)
                known[column.task] = (*metrics_of(column.task), *(CONFIDENCE_NAMES if confident else ()))
            except MedtasksError as error:
                yield str(error).rstrip(".")
                return
        yield from _bad_column(column, known[column.task])
    if parts := [column for column in card.headline if column.breakdown is not None]:
        yield f"headline column {parts[0].label!r} is a breakdown, expected all items because models are ranked by it"
    yield from _signed(card)
    for plot in card.plots:
        if len(plot.against) != (len(plot.columns) if plot.kind == "paired" else 0):
            yield f"plot {plot.name!r} ({plot.kind}) has {len(plot.columns)} columns and {len(plot.against)} `against`"


def _signed(card: Card) -> Iterator[str]:
    """Scores that are best at 0 where models are ranked."""
    places = {"the headline": card.headline}
    places |= {f"plot {plot.name!r} (heatmap)": plot.columns for plot in card.plots if plot.kind == "heatmap"}
    for place, columns in places.items():
        for column in columns:
            if column.metric in SIGNED:
                yield f"{place} has {column.metric!r}, which is best at 0 and cannot rank models; move it to a table"


def _bad_names(kind: str, names: list[str]) -> Iterator[str]:
    for name in names:
        if not _NAME.fullmatch(name):
            yield f"{kind} name {name!r} is invalid, expected lower-case letters and digits joined by hyphens"
        if names.count(name) > 1:
            yield f"{kind} name {name!r} is duplicated or reserved ({HEADLINE!r}), expected unique names"


def _bad_column(column: Column, metrics: tuple[str, ...]) -> Iterator[str]:
    place = f"column {column.label!r} of {column.task}"
    if column.metric not in metrics:
        yield f"{place}: metric {column.metric!r} is unknown, expected one of {', '.join(metrics)}"
    breakdowns = load_spec(column.task).metadata.breakdowns
    if column.breakdown is not None and column.breakdown not in breakdowns:
        yield f"{place}: breakdown {column.breakdown!r} is unknown, expected one of {', '.join(breakdowns) or '(none)'}"
    if (column.breakdown is None) != (column.group is None):
        yield f"{place}: has only one of breakdown and group, expected both or neither"
