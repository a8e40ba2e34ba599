"""Checks of board layouts: tasks, metrics and breakdowns exist, and names can be part of file names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from medtasks.catalog.board_layout import ALL_GROUPS, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.packages import LeftOut, TaskPackage
from medtasks.catalog.registry import plugin_of
from medtasks.catalog.rubric import load_rubric
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.schema import unknown
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.metrics.item_metrics import SIGNED

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


def columns_of(layout: BoardLayout) -> Iterator[Column]:
    """Every column of the layout, headline first."""
    yield from layout.headline
    for table in layout.tables:
        yield from table.columns
    for plot in layout.plots:
        yield from (*plot.columns, *plot.against)


def check_layout(layout: BoardLayout) -> None:
    """Refuse a board layout that cannot be shown, by a :class:`MedtasksError` with what was expected."""
    for _, problem in _problems(layout):
        raise MedtasksError(f"board layout of {layout.benchmark}: {problem}.")


def layout_left_out(layout: BoardLayout, package: TaskPackage) -> LeftOut | None:
    """Why a package's layout cannot be shown, with file and line; None if it can."""
    part, problem = f"board layout {layout.benchmark}", None
    try:
        problem = next(_problems(layout), None)
    except (AttributeError, TypeError) as error:  # its fields may be anything
        problem = layout, first_line(error)
    if problem is None:
        return None
    return LeftOut(package.owner, part, f"board layout of {layout.benchmark}: {problem[1]}.", *problem[0].place)


def layouts_left_out(package: TaskPackage) -> Iterator[LeftOut]:
    """The layouts of another package that cannot be shown; our tests check ours."""
    for layout in () if package.ours else plugin_of(package).layouts:
        if (left_out := layout_left_out(layout, package)) is not None:
            yield left_out


_Problem: TypeAlias = tuple[BoardLayout | LayoutTable | Plot | Column, str]
"""The part of a layout that is wrong, and what is wrong with it."""


def _problems(layout: BoardLayout) -> Iterator[_Problem]:
    if not layout.headline:
        yield layout, "it has no headline column, expected at least one"
    yield from _bad_names("table", layout.tables, HEADLINE)
    yield from _bad_names("plot", layout.plots)
    known: dict[str, tuple[str, ...]] = {}
    for column in columns_of(layout):
        if column.task not in known:
            try:
                leaves = [load_spec(leaf) for leaf in leaf_tasks(column.task)]
                confident = any(leaf.metadata.confidence is not None for leaf in leaves)
                known[column.task] = (*metrics_of(column.task), *(CONFIDENCE_NAMES if confident else ()))
            except MedtasksError as error:
                yield column, str(error).rstrip(".")
                return
        yield from _bad_column(column, known[column.task])
    for column in layout.headline:
        if column.breakdown is not None:
            message = (
                f"headline column {column.label!r} is a breakdown, expected all items because models are ranked by it"
            )
            yield column, message
    yield from _signed(layout)
    for plot in layout.plots:
        if len(plot.against) != (len(plot.columns) if plot.kind == "paired" else 0):
            columns = f"{len(plot.columns)} columns and {len(plot.against)} `against`"
            yield plot, f"plot {plot.name!r} ({plot.kind}) has {columns}"
        expanded = any(column.group == ALL_GROUPS for column in plot.columns)
        if plot.kind == "radar" and len(plot.columns) < 3 and not expanded:
            yield plot, f"plot {plot.name!r} (radar) has {len(plot.columns)} columns, expected at least 3 axes"


def _signed(layout: BoardLayout) -> Iterator[_Problem]:
    """Scores that are best at 0 where models are ranked."""
    places = {"the headline": layout.headline}
    places |= {f"plot {plot.name!r} (heatmap)": plot.columns for plot in layout.plots if plot.kind == "heatmap"}
    for place, columns in places.items():
        for column in columns:
            if column.metric in SIGNED:
                message = (
                    f"{place} has {column.metric!r}, which is best at 0 and cannot rank models; move it to a table"
                )
                yield column, message


def _bad_names(kind: str, parts: Sequence[LayoutTable | Plot], *reserved: str) -> Iterator[_Problem]:
    names = [*reserved, *(part.name for part in parts)]
    for part in parts:
        if not _NAME.fullmatch(part.name):
            message = f"{kind} name {part.name!r} is invalid, expected lower-case letters and digits joined by hyphens"
            yield part, message
        if names.count(part.name) > 1:
            yield part, f"{kind} name {part.name!r} is duplicated or reserved ({HEADLINE!r}), expected unique names"


def _bad_column(column: Column, metrics: tuple[str, ...]) -> Iterator[_Problem]:
    place = f"column {column.label!r} of {column.task}"
    breakdowns = load_spec(column.task).metadata.breakdowns
    if column.metric not in metrics:
        yield column, f"{place}: {unknown('metric', column.metric, metrics)}"
    if column.breakdown is not None and column.breakdown not in breakdowns:
        yield column, f"{place}: {unknown('breakdown', column.breakdown, breakdowns)}"
    if (column.breakdown is None) != (column.group is None):
        yield column, f"{place}: has only one of breakdown and group, expected both or neither"
