"""The board layout of every benchmark with a page of its own: its package's, or a plain one."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from medtasks.benchmarks.declared_errors import declared_rates
from medtasks.benchmarks.layout_check import HEADLINE, check_layout, columns_of, layout_left_out, metrics_of
from medtasks.benchmarks.layout_columns import error_columns, kinds_of_error
from medtasks.catalog.benchmark import Rate
from medtasks.catalog.board_layout import ALL_GROUPS, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.registry import all_benchmarks, benchmark_owner, brought_layouts, get_benchmark
from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec, load_specs
from medtasks.core.errors import MedtasksError


def all_layouts() -> dict[str, BoardLayout]:
    """The board layout of every benchmark that has a page of its own, by the benchmark's name, ours first.

    A benchmark without a layout gets a plain one with the metrics of its tasks, unless another layout of its package
    has them (a track beside the original). A layout of another package that cannot be shown is replaced by the plain
    one. Kinds of error that task files declare are added to any layout. A benchmark that cannot be shown at all is left
    out, with one sentence on standard error.
    """
    brought = brought_layouts()
    beside = {
        (benchmark_owner(layout.benchmark), name) for layout in brought.values() for name in _benchmarks_on(layout)
    }
    found: dict[str, BoardLayout] = {}
    for name in all_benchmarks():
        layout = brought.get(name)
        if layout is None and (benchmark_owner(name), name) in beside:
            continue
        try:
            found[name] = default_layout(name) if layout is None else _with_declared_errors(_checked(layout))
        except MedtasksError as error:
            print(f"medtasks: left off the leaderboard: {error}", file=sys.stderr, flush=True)
    return found


def _benchmarks_on(layout: BoardLayout) -> set[str]:
    specs = load_specs()
    return {specs[column.task].metadata.benchmark for column in columns_of(layout) if column.task in specs}


def _checked(layout: BoardLayout) -> BoardLayout:
    """The layout, or the plain one if it is another package's and cannot be shown; our tests check ours."""
    owner = benchmark_owner(layout.benchmark)
    if owner.ours:
        return layout
    left_out = layout_left_out(layout, owner)
    if left_out is None:
        return layout
    left_out.warn()
    return default_layout(layout.benchmark)


def default_layout(benchmark: str) -> BoardLayout:
    """A plain layout: the first metric of each group (of each task without a group) as headline, one table of all
    metrics for each, one table per breakdown; no samples are shown. Tasks with rotated options or paraphrased prompts
    are not in the headline, and have a figure of their own, as kinds of error have a table and a figure.

    Raises:
        MedtasksError: the benchmark has no task with a metric.
    """
    specs = _specs_of(benchmark)
    shown = [spec for spec in _outermost(specs) if metrics_of(spec.name)]
    if not shown:
        raise MedtasksError(f"benchmark {benchmark} has no task with a metric, so a leaderboard cannot show it.")
    names = _Names()
    options = bool(get_benchmark(benchmark).options)
    varied = [spec for spec in shown if any(load_spec(leaf).metadata.varied for leaf in leaf_tasks(spec.name))]
    scored = {spec.name: Column(spec.name, metrics_of(spec.name)[0], spec.metadata.title) for spec in shown}
    headline = tuple(scored[spec.name] for spec in shown if spec not in varied) or tuple(scored.values())
    tables = [
        LayoutTable(
            name=names.of(spec.name),
            title=spec.metadata.title,
            columns=tuple(Column(spec.name, metric, metric) for metric in metrics_of(spec.name)),
        )
        for spec in shown
    ]
    tables += [_by_member(spec, specs, names) for spec in shown if spec.kind == "group"]
    tables += [_by_part(spec, breakdown, names) for spec in shown for breakdown in spec.metadata.breakdowns]
    lettered = tuple(column for column in scored.values() if options and column.metric == "accuracy")
    plots = [Plot(name="headline-scores", title="Headline scores", kind="bars", columns=headline, chance=options)]
    if lettered:
        plots.append(Plot(name="letters", title="Letters chosen and correct", kind="letters", columns=lettered))
    for spec in varied:
        columns = tuple(Column(spec.name, metric, metric) for metric in metrics_of(spec.name))
        plots.append(
            Plot(name=names.of(f"{spec.name}-orders"), title=spec.metadata.title, kind="bars", columns=columns)
        )
    errors = get_benchmark(benchmark).errors
    for spec in shown:
        rates = [rate for rate in (errors.rates if errors else ()) if rate.name in spec.metadata.pooled]
        _add_errors(spec.name, (*rates, *declared_rates(spec.name)), names, tables, plots)
    layout = BoardLayout(
        benchmark=benchmark,
        headline=headline,
        tables=tuple(tables),
        plots=tuple(plots),
        why="Its package has no board layout that allows more.",
    )
    check_layout(layout)
    return layout


def _specs_of(benchmark: str) -> dict[str, TaskSpec]:
    return {name: spec for name, spec in load_specs().items() if spec.metadata.benchmark == benchmark}


def _outermost(specs: Mapping[str, TaskSpec]) -> list[TaskSpec]:
    """The tasks and groups that are in no group, by name."""
    inner = {member for spec in specs.values() for member in spec.members}
    return [spec for name, spec in sorted(specs.items()) if name not in inner]


def _add_errors(task: str, rates: Sequence[Rate], names: _Names, tables: list[LayoutTable], plots: list[Plot]) -> None:
    if rates:
        table, plot = kinds_of_error(error_columns(task, rates), name=names.of(f"{task}-errors"))
        tables.append(table)
        if plot.columns:  # correct outcomes are not drawn
            plots.append(plot)


def _with_declared_errors(layout: BoardLayout) -> BoardLayout:
    """The layout with tables and figures of declared kinds of error that it does not show."""
    names = _Names([*(table.name for table in layout.tables), *(plot.name for plot in layout.plots)])
    shown = {column.metric for column in columns_of(layout)}
    tables, plots = [*layout.tables], [*layout.plots]
    for spec in _outermost(_specs_of(layout.benchmark)):
        rates = [rate for rate in declared_rates(spec.name) if rate.name not in shown]
        _add_errors(spec.name, rates, names, tables, plots)
    return layout if len(tables) == len(layout.tables) else replace(layout, tables=tuple(tables), plots=tuple(plots))


def _by_member(spec: TaskSpec, specs: dict[str, TaskSpec], names: _Names) -> LayoutTable:
    """Each member's first metric."""
    members = [specs[name] for name in spec.members if name in specs]
    return LayoutTable(
        name=names.of(f"{spec.name}-tasks"),
        title=f"{spec.metadata.title}, by task",
        columns=tuple(Column(one.name, metrics_of(one.name)[0], one.metadata.title) for one in members),
    )


def _by_part(spec: TaskSpec, breakdown: str, names: _Names) -> LayoutTable:
    metric = metrics_of(spec.name)[0]
    return LayoutTable(
        name=names.of(f"{spec.name}-by-{breakdown}"),
        title=f"{spec.metadata.title}: {metric} by {breakdown}",
        columns=(Column(spec.name, metric, breakdown, breakdown, ALL_GROUPS),),
    )


class _Names:
    """Unique URL names derived from task names."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {HEADLINE, *taken}

    def of(self, text: str) -> str:
        words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-").split("-")
        stem = "-".join([word[:30] for word in words if word][:10]) or "table"
        number = 1
        name = stem
        while name in self._taken:
            number += 1
            name = f"{stem}-{number}"
        self._taken.add(name)
        return name
