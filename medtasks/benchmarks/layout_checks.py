"""Checks of board layouts, ours and other packages': names, metrics, breakdowns, plots."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

from medtasks.benchmarks.layout_parts import HEADLINE, columns_of
from medtasks.catalog.board_layout import ALL_GROUPS, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.registry import plugin_of
from medtasks.catalog.rubric_files import load_rubric
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.catalog.task_package import LeftOut, TaskPackage
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.schema import unknown
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.metrics.registry import facts_of

_NAME = re.compile(r"[a-z0-9]{1,30}(-[a-z0-9]{1,30}){0,11}")

LayoutPart: TypeAlias = BoardLayout | LayoutTable | Plot | Column


class LayoutProblem(NamedTuple):
    """A part of a layout that is wrong, and what is wrong with it."""

    part: LayoutPart
    what: str


def check_layout(layout: BoardLayout) -> None:
    """Refuse a board layout that cannot be shown.

    Raises:
        MedtasksError: what was found, and what was expected.
    """
    for problem in _problems(layout):
        raise MedtasksError(f"board layout of {layout.benchmark}: {problem.what}.")


def layouts_left_out(package: TaskPackage) -> Iterator[LeftOut]:
    """The layouts of another package that cannot be shown, with file and line."""
    if package.ours:  # our tests check ours
        return
    for layout in plugin_of(package).layouts:
        left_out = why_left_out(layout, package)
        if left_out is not None:
            yield left_out


def why_left_out(layout: BoardLayout, package: TaskPackage) -> LeftOut | None:
    """The first reason why a layout of ``package`` cannot be shown; None if it can."""
    try:
        problem = next(_problems(layout), None)
    except (AttributeError, TypeError) as error:  # its fields may be anything
        problem = LayoutProblem(layout, first_line(error))
    if problem is None or not problem.what:
        return None
    name = f"board layout {layout.benchmark}"
    return LeftOut(package.owner, name, f"{problem.what}; correct it.", problem.part.place)


def metrics_of(task: str) -> tuple[str, ...]:
    """The metrics of a task or group: computed, learned, judged and pooled ones, kinds of error."""
    names: list[str] = []
    for leaf in leaf_tasks(task):
        spec = load_spec(leaf)
        names.extend(spec.scores)
        names.extend(spec.learned)
        for rubric in spec.metadata.rubrics:
            names.extend(load_rubric(rubric).metrics)
        names.extend(kind.name for kind in spec.metadata.errors)
    names.extend(load_spec(task).metadata.pooled)
    return tuple(dict.fromkeys(names))


def _problems(layout: BoardLayout) -> Iterator[LayoutProblem]:
    """What is wrong with a layout, in the order of its parts."""
    if not layout.headline:
        yield LayoutProblem(layout, "it has no headline column, expected at least one")
    yield from _name_problems("table", layout.tables, reserved=(HEADLINE,))
    yield from _name_problems("plot", layout.plots, reserved=())
    metrics_of_task: dict[str, tuple[str, ...]] = {}
    for column in columns_of(layout):
        if column.task not in metrics_of_task:
            try:
                metrics_of_task[column.task] = _metrics_with_confidence(column.task)
            except MedtasksError as error:
                # the other checks would fail in the same way
                yield LayoutProblem(column, str(error).rstrip("."))
                return
        yield from _column_problems(column, metrics_of_task[column.task])
    yield from _ranking_problems(layout)
    for plot in layout.plots:
        yield from _plot_problems(plot)


def _name_problems(
    kind: str, parts: Sequence[LayoutTable | Plot], reserved: Sequence[str]
) -> Iterator[LayoutProblem]:
    """Tables or plots whose names are invalid, duplicated or ``reserved``."""
    names = [*reserved, *(part.name for part in parts)]
    for part in parts:
        name = f"{kind} name {part.name!r} is"
        if not _NAME.fullmatch(part.name):
            expected = "expected lower-case letters and digits joined by hyphens"
            yield LayoutProblem(part, f"{name} invalid, {expected}")
        if names.count(part.name) > 1:
            expected = f"duplicated or reserved ({HEADLINE!r}), expected unique names"
            yield LayoutProblem(part, f"{name} {expected}")


def _metrics_with_confidence(task: str) -> tuple[str, ...]:
    """The metrics of a task or group, with those of confidence if a task of it asks for it."""
    metrics = metrics_of(task)
    if any(load_spec(leaf).metadata.confidence is not None for leaf in leaf_tasks(task)):
        return (*metrics, *CONFIDENCE_NAMES)
    return metrics


def _column_problems(column: Column, metrics: Sequence[str]) -> Iterator[LayoutProblem]:
    """What is wrong with a column of a task that has these ``metrics``."""
    name = f"column {column.label!r} of {column.task}"
    breakdowns = load_spec(column.task).metadata.breakdowns
    if column.metric not in metrics:
        yield LayoutProblem(column, f"{name}: {unknown('metric', column.metric, metrics)}")
    if column.breakdown is not None and column.breakdown not in breakdowns:
        problem = unknown("breakdown", column.breakdown, breakdowns)
        yield LayoutProblem(column, f"{name}: {problem}")
    if (column.breakdown is None) != (column.group is None):
        problem = "has only one of breakdown and group, expected both or neither"
        yield LayoutProblem(column, f"{name}: {problem}")


def _ranking_problems(layout: BoardLayout) -> Iterator[LayoutProblem]:
    """Headline columns and heat maps that cannot rank models."""
    for column in layout.headline:
        if column.breakdown is not None:
            expected = "expected all items because models are ranked by it"
            problem = f"headline column {column.label!r} is a breakdown, {expected}"
            yield LayoutProblem(column, problem)
    yield from _signed_columns("the headline", layout.headline)
    for plot in layout.plots:
        if plot.kind == "heatmap":
            yield from _signed_columns(f"plot {plot.name!r} (heatmap)", plot.columns)


def _signed_columns(place: str, columns: Sequence[Column]) -> Iterator[LayoutProblem]:
    """Columns of metrics that are best at 0, so that neither more nor less is better."""
    for column in columns:
        if facts_of(column.metric).is_signed:
            signed = f"{column.metric!r}, which is best at 0 and cannot rank models"
            yield LayoutProblem(column, f"{place} has {signed}; move it to a table")


def _plot_problems(plot: Plot) -> Iterator[LayoutProblem]:
    """What is wrong with the number of a plot's columns."""
    summary = f"plot {plot.name!r} ({plot.kind}) has {len(plot.columns)} columns"
    counterparts = len(plot.columns) if plot.kind == "paired" else 0
    if len(plot.against) != counterparts:
        yield LayoutProblem(plot, f"{summary} and {len(plot.against)} `against`")
    expanded = any(column.group == ALL_GROUPS for column in plot.columns)
    if plot.kind == "radar" and len(plot.columns) < 3 and not expanded:
        yield LayoutProblem(plot, f"{summary}, expected at least 3 axes")
