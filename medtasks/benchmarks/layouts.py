"""The board layout of every benchmark: its package's, or one made from its tasks."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Set
from dataclasses import replace

from medtasks.benchmarks.error_kinds import declared_rates
from medtasks.benchmarks.layout_checks import (
    check_layout,
    metrics_of,
    why_left_out,
)
from medtasks.benchmarks.layout_parts import (
    HEADLINE,
    columns_of,
    error_columns,
    groups,
    kinds_of_error,
    scores,
)
from medtasks.catalog.board_layout import NOT_STATED, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.contents import task_packages
from medtasks.catalog.registry import all_benchmarks, benchmark_owner, get_benchmark, plugin_of
from medtasks.catalog.spec import TaskSpec, inner_groups, leaf_tasks, load_spec, load_specs
from medtasks.catalog.task_package import TaskPackage
from medtasks.core.errors import MedtasksError
from medtasks.metrics.item_metrics import ErrorRate
from medtasks.metrics.registry import label_of


def all_layouts() -> dict[str, BoardLayout]:
    """The board layout of every benchmark with a page of its own, by benchmark, ours first.

    A benchmark without a layout, or with one that cannot be shown, gets a plain one, unless another
    layout of its package shows its tasks (a track beside the original). One that cannot be shown at
    all is left out, with a sentence. Metrics that no column of a layout names are in a table "Other
    metrics".
    """
    registered: dict[str, BoardLayout] = {}
    for package in task_packages():
        for layout in plugin_of(package).layouts:
            registered[layout.benchmark] = layout
    tracks = _tracks(registered.values())
    layouts: dict[str, BoardLayout] = {}
    for name in all_benchmarks():
        owner = benchmark_owner(name)
        if name not in registered and (owner, name) in tracks:
            continue
        try:
            layout = _layout_of(name, registered.get(name), owner)
            layouts[name] = _with_other_metrics(layout, own_pages=frozenset(registered))
        except MedtasksError as error:
            print(f"medtasks: left off the leaderboard: {error}", file=sys.stderr, flush=True)
    return layouts


def _tracks(layouts: Iterable[BoardLayout]) -> set[tuple[TaskPackage, str]]:
    """The benchmarks whose tasks a layout shows, with the package of that layout."""
    specs = load_specs()
    tracks: set[tuple[TaskPackage, str]] = set()
    for layout in layouts:
        owner = benchmark_owner(layout.benchmark)
        for column in columns_of(layout):
            if column.task in specs:
                tracks.add((owner, specs[column.task].metadata.benchmark))
    return tracks


def _layout_of(benchmark: str, registered: BoardLayout | None, owner: TaskPackage) -> BoardLayout:
    """The ``registered`` layout with all kinds of error, or a plain one if it cannot be shown."""
    if registered is None:
        return default_layout(benchmark)
    if not owner.ours:  # our tests check ours
        left_out = why_left_out(registered, owner)
        if left_out is not None:
            left_out.warn()
            return default_layout(benchmark)
    return _with_errors(registered)


def default_layout(benchmark: str) -> BoardLayout:
    """A plain layout, made from the benchmark's tasks.

    The first metric of each group (of each task without a group) is the headline, and a table of
    all metrics and one per breakdown follow for each. Of samples, it shows what the benchmark's
    `Publication` allows. Tasks with rotated options or paraphrased prompts are not in the headline.

    Raises:
        MedtasksError: the benchmark has no task with a metric.
    """
    specs = [spec for spec in _outermost(benchmark) if metrics_of(spec.name)]
    if not specs:
        raise MedtasksError(
            f"benchmark {benchmark} has no task with a metric, so a leaderboard cannot show it."
        )
    asked_once = [spec for spec in specs if not _is_varied(spec)]
    headline = []
    for spec in asked_once or specs:
        headline.append(Column(spec.name, metrics_of(spec.name)[0], spec.metadata.title))
    taken = {HEADLINE}
    tables: list[LayoutTable] = []
    for spec in specs:
        tables.extend(_plain_tables(spec, taken))
    described = get_benchmark(benchmark)
    chance = bool(described.options)
    plot = Plot("headline-scores", "Headline scores", "bars", tuple(headline), chance=chance)
    layout = BoardLayout(
        benchmark,
        tuple(headline),
        tuple(tables),
        (plot,),
        shows=described.publication.shows,
        why=NOT_STATED,
    )
    check_layout(layout)
    return _with_errors(layout, pooled=True)


def _outermost(benchmark: str) -> list[TaskSpec]:
    """The benchmark's tasks and groups that are in no other of its groups, sorted by name."""
    specs = []
    members: set[str] = set()
    for spec in load_specs().values():
        if spec.metadata.benchmark == benchmark:
            specs.append(spec)
            members.update(spec.members)
    outermost = [spec for spec in specs if spec.name not in members]
    return sorted(outermost, key=lambda spec: spec.name)


def _is_varied(spec: TaskSpec) -> bool:
    """Whether a task of it asks its questions several times."""
    return any(load_spec(leaf).metadata.varied for leaf in leaf_tasks(spec.name))


def _plain_tables(spec: TaskSpec, taken: set[str]) -> list[LayoutTable]:
    """A table of all metrics, and one per breakdown; kinds of error get a table of their own."""
    title = spec.metadata.title
    metrics = metrics_of(spec.name)
    errors = {rate.name for rate in _error_rates(spec, pooled=True)}
    labels = {name: label_of(name) for name in metrics if name not in errors}
    tables = [LayoutTable(_unused(spec.name, taken), title, scores(spec.name, labels))]
    for breakdown in spec.metadata.breakdowns:
        name = _unused(f"{spec.name}-by-{breakdown}", taken)
        columns = groups(spec.name, metrics[0], breakdown)
        tables.append(LayoutTable(name, f"{title}: {metrics[0]} by {breakdown}", columns))
    return tables


def _error_rates(spec: TaskSpec, *, pooled: bool) -> list[ErrorRate]:
    """The kinds of error that task files declare.

    With ``pooled``, those of the benchmark that the task names come first.
    """
    rates: list[ErrorRate] = []
    errors = spec.benchmark.scoring.errors
    if pooled and errors:
        rates.extend(rate for rate in errors.rates if rate.name in spec.metadata.pooled)
    rates.extend(declared_rates(spec.name))
    return rates


def _with_errors(layout: BoardLayout, *, pooled: bool = False) -> BoardLayout:
    """The layout with tables and figures of the kinds of error that it does not show."""
    taken = {HEADLINE}
    taken.update(table.name for table in layout.tables)
    taken.update(plot.name for plot in layout.plots)
    metrics_shown = {column.metric for column in columns_of(layout)}
    tables: list[LayoutTable] = []
    plots: list[Plot] = []
    for spec in _outermost(layout.benchmark):
        rates = [
            rate for rate in _error_rates(spec, pooled=pooled) if rate.name not in metrics_shown
        ]
        if not rates:
            continue
        name = _unused(f"{spec.name}-errors", taken)
        table, plot = kinds_of_error(error_columns(spec.name, rates), name=name)
        tables.append(table)
        if plot.columns:  # correct outcomes are not drawn
            plots.append(plot)
    if not tables:
        return layout
    return replace(layout, tables=(*layout.tables, *tables), plots=(*layout.plots, *plots))


def _with_other_metrics(layout: BoardLayout, own_pages: Set[str]) -> BoardLayout:
    """The layout with a table of the metrics that none of its columns names.

    ``own_pages`` are the benchmarks with a layout of their own.
    """
    metrics_shown = {column.metric for column in columns_of(layout)}
    columns: list[Column] = []
    outermost = _specs_on_page(layout, own_pages)
    for task in _plain_tasks(layout, outermost):
        columns += _metric_columns(task, metrics_shown)
    for spec in outermost:  # for what only variants and inner groups have
        for task in (spec.name, *inner_groups(spec.name)):
            metrics_before = {column.metric for column in columns}
            columns += _metric_columns(task, metrics_shown | metrics_before)
    if not columns:
        return layout
    taken = {HEADLINE, *(table.name for table in layout.tables)}
    table = LayoutTable(_unused("other-metrics", taken), "Other metrics", tuple(columns))
    return replace(layout, tables=(*layout.tables, table))


def _plain_tasks(layout: BoardLayout, outermost: Iterable[TaskSpec]) -> list[str]:
    """The tasks and groups in the layout's columns that ask each question once, and the outermost
    ones that contain none of these.
    """
    tasks: list[str] = []
    for column in columns_of(layout):
        if column.task not in tasks and not _is_varied(load_spec(column.task)):
            tasks.append(column.task)
    for spec in outermost:
        contents = {spec.name, *inner_groups(spec.name), *leaf_tasks(spec.name)}
        if contents.isdisjoint(tasks) and not _is_varied(spec):
            tasks.append(spec.name)
    return tasks


def _metric_columns(task: str, metrics_shown: Set[str]) -> list[Column]:
    """A column for each metric of a task or group that is not shown yet."""
    title = load_spec(task).metadata.title
    columns: list[Column] = []
    for metric in metrics_of(task):
        if metric not in metrics_shown:
            columns.append(Column(task, metric, f"{label_of(metric)}: {title}"))
    return columns


def _specs_on_page(layout: BoardLayout, own_pages: Set[str]) -> list[TaskSpec]:
    """The outermost tasks and groups of the layout's benchmark, and of tracks that it shows."""
    all_specs = load_specs()
    benchmarks = [layout.benchmark]
    for column in columns_of(layout):
        benchmark = all_specs[column.task].metadata.benchmark
        if benchmark not in benchmarks and benchmark not in own_pages:
            benchmarks.append(benchmark)
    specs: list[TaskSpec] = []
    for benchmark in benchmarks:
        specs.extend(spec for spec in _outermost(benchmark) if metrics_of(spec.name))
    return specs


def _unused(text: str, taken: set[str]) -> str:
    """A URL name made from a task's name; it is none of those ``taken``, and is added to them.

    >>> taken = {HEADLINE}
    >>> [_unused(text, taken) for text in ("Headline", "a_b", "a-b")]
    ['headline-2', 'a-b', 'a-b-2']
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-").split("-")
    stem = "-".join([word[:30] for word in words if word][:10]) or "table"
    name = stem
    number = 1
    while name in taken:
        number += 1
        name = f"{stem}-{number}"
    taken.add(name)
    return name
