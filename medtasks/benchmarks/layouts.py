"""Board layouts: shorthands for their columns, the layout of every benchmark with a page of its
own, and checks.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

from medtasks.benchmarks.error_kinds import declared_rates
from medtasks.catalog.benchmark import ALL_GROUPS, BoardLayout, Column, LayoutTable, Plot
from medtasks.catalog.contents import LeftOut, TaskPackage, task_packages
from medtasks.catalog.registry import all_benchmarks, benchmark_owner, get_benchmark, plugin_of
from medtasks.catalog.rubric import load_rubric
from medtasks.catalog.spec import TaskSpec, leaf_tasks, load_spec, load_specs
from medtasks.catalog.task_model import prompt_metric
from medtasks.core.errors import MedtasksError, first_line
from medtasks.core.schema import unknown
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.metrics.item_metrics import SIGNED, ErrorRate

HEADLINE = "headline"  # the table of headline scores; no other may have the name

HARMS = "could harm a patient"  # what the board calls errors that could, if nobody noticed them

_NAME = re.compile(r"[a-z0-9]{1,30}(-[a-z0-9]{1,30}){0,11}")


def scores(task: str, metrics: Mapping[str, str], suffix: str = "") -> tuple[Column, ...]:
    """Several metrics of one task; ``metrics`` maps each to its heading."""
    return tuple(Column(task, metric, f"{label}{suffix}") for metric, label in metrics.items())


def tasks(names: Mapping[str, str], metric: str, suffix: str = "") -> tuple[Column, ...]:
    """One metric of several tasks; ``names`` maps each to its heading."""
    return tuple(Column(task, metric, f"{label}{suffix}") for task, label in names.items())


def groups(task: str, metric: str, breakdown: str) -> tuple[Column, ...]:
    """One metric over every group of a breakdown."""
    return (Column(task, metric, breakdown, breakdown, ALL_GROUPS),)


def tables_of(
    notes: Mapping[str, str], *rows: LayoutTable | tuple[str, str, tuple[Column, ...]]
) -> tuple[LayoutTable, ...]:
    """The tables with these names, titles and columns, and their ``notes`` by name; whole tables
    stay as they are.
    """
    return tuple(
        row if isinstance(row, LayoutTable) else LayoutTable(*row, notes.get(row[0], ""))
        for row in rows
    )


def prompt_sensitivity(
    task: str, prompts: int, metric: str = "accuracy"
) -> tuple[LayoutTable, tuple[Plot, ...]]:
    """Table and figures of a task or group that is asked with several prompts, whose first metric
    is ``metric``.
    """
    labels = {
        metric: "mean over prompts",
        "worst_prompt": "worst prompt",
        "best_prompt": "best prompt",
        "prompt_spread": "spread over prompts",
        "prompt_agreement": "same option under every prompt",
    }
    over = scores(task, labels)
    each = scores(
        task, {prompt_metric(number): f"prompt {number}" for number in range(1, prompts + 1)}
    )
    table = LayoutTable(
        "prompt-sensitivity",
        "Paraphrased prompts",
        (*over, *each),
        note="Spread: standard deviation of the prompts' scores, without what sampling noise adds; 0 for a model "
        "that does not depend on the prompt. The standard error of one prompt's score is about a quarter of its "
        "interval's width. Worst and best prompt: chosen on one half of the clusters, scored on the other.",
    )
    plots = (
        Plot("prompt-sensitivity", table.title, "bars", over),
        Plot("prompts", "Score under each prompt", "bars", each, chance=True),
        Plot(
            "prompt-ranks",
            "Rank under each prompt, from 0 (best) to 1 (last)",
            "heatmap",
            each,
            ranks=True,
        ),
    )
    return table, plots


def option_order(
    task: str, parts: Mapping[str, str], metric: str = "accuracy"
) -> tuple[LayoutTable, tuple[Plot, ...]]:
    """Table and figures of a task or group whose options are rotated; ``parts`` are its parts with
    their headings.
    """
    labels = {
        metric: "mean over rotations",
        "circular_accuracy": "right in every rotation",
        "rotation_consistency": "same option in every rotation",
        "letter_preference": "letter preference",
    }
    columns = scores(task, labels)
    table = LayoutTable(
        "option-order",
        "Options in every rotation",
        (*columns, *tasks(parts, "circular_accuracy", ", every rotation")),
        note="Letter preference: how far the letters chosen are from those of a model that prefers none; 0 is best.",
    )
    plots = (
        Plot("option-order", table.title, "bars", columns),
        Plot("rotated-letters", "Letters chosen with rotated options", "letters", columns[:1]),
    )
    return table, plots


def error_columns(
    task: str,
    rates: Iterable[ErrorRate],
    suffix: str = "",
    *,
    breakdown: str | None = None,
    group: str | None = None,
) -> tuple[Column, ...]:
    """Rates of kinds of error: first those that could harm a patient, then those that do not, then
    correct outcomes.
    """
    columns = []
    for rate in sorted(rates, key=lambda rate: (rate.higher_is_better, not rate.harms)):
        remark = "" if rate.higher_is_better else HARMS if rate.harms else "no harm by itself"
        columns.append(Column(task, rate.name, f"{rate.label}{suffix}", breakdown, group, remark))
    return tuple(columns)


def kinds_of_error(
    columns: Sequence[Column], further: Sequence[Column] = (), note: str = "", name: str = "errors"
) -> tuple[LayoutTable, Plot]:
    """Table and figure of kinds of error; ``further`` columns and those without a remark are only
    in the table.
    """
    harmful = ", ".join(column.label.lower() for column in columns if column.remark == HARMS)
    further = [replace(column, remark="") for column in further]
    notes = [f"Could harm a patient if nobody noticed: {harmful}." if harmful else "", note]
    table = LayoutTable(
        name, "Kinds of error", (*columns, *further), note=" ".join(filter(None, notes))
    )
    drawn = tuple(column for column in columns if column.remark)
    return table, Plot(name, table.title, "bars", drawn, note="Lower is better.")


def all_layouts() -> dict[str, BoardLayout]:
    """The board layout of every benchmark that has a page of its own, by the benchmark's name, ours
    first.

    A benchmark without a layout, or with one that cannot be shown, gets a plain one, unless another
    layout of its package shows its tasks (a track beside the original). One that cannot be shown at
    all is left out, with a sentence.
    """
    brought = {
        layout.benchmark: layout
        for package in task_packages()
        for layout in plugin_of(package).layouts
    }
    specs = load_specs()
    beside = {
        (benchmark_owner(layout.benchmark), specs[column.task].metadata.benchmark)
        for layout in brought.values()
        for column in columns_of(layout)
        if column.task in specs
    }
    found: dict[str, BoardLayout] = {}
    for name in all_benchmarks():
        layout, owner = brought.get(name), benchmark_owner(name)
        if layout is None and (owner, name) in beside:
            continue
        # our tests check ours
        if (
            layout is not None
            and not owner.ours
            and (left_out := _left_out(layout, owner)) is not None
        ):
            left_out.warn()
            layout = None
        try:
            found[name] = default_layout(name) if layout is None else _with_errors(layout)
        except MedtasksError as error:
            print(f"medtasks: left off the leaderboard: {error}", file=sys.stderr, flush=True)
    return found


def default_layout(benchmark: str) -> BoardLayout:
    """A plain layout: the first metric of each group (of each task without a group) as headline,
    and a table of all metrics and one per breakdown for each; no samples are shown. Tasks with
    rotated options or paraphrased prompts are not in the headline. Raises :class:`MedtasksError` if
    the benchmark has no task with a metric.
    """
    shown = [spec for spec in _outermost(benchmark) if metrics_of(spec.name)]
    if not shown:
        raise MedtasksError(
            f"benchmark {benchmark} has no task with a metric, so a leaderboard cannot show it."
        )
    taken = {HEADLINE}
    plain = [
        spec
        for spec in shown
        if not any(load_spec(leaf).metadata.varied for leaf in leaf_tasks(spec.name))
    ]
    headline = tuple(
        Column(spec.name, metrics_of(spec.name)[0], spec.metadata.title) for spec in plain or shown
    )
    tables = []
    for spec in shown:
        errors = {rate.name for rate in _rates(spec, pooled=True)}  # they get a table of their own
        metrics, title = metrics_of(spec.name), spec.metadata.title
        columns = scores(spec.name, {name: name for name in metrics if name not in errors})
        tables.append(LayoutTable(_unused(spec.name, taken), title, columns))
        for by in spec.metadata.breakdowns:
            name = _unused(f"{spec.name}-by-{by}", taken)
            tables.append(
                LayoutTable(
                    name, f"{title}: {metrics[0]} by {by}", groups(spec.name, metrics[0], by)
                )
            )
    chance = bool(get_benchmark(benchmark).options)
    plots = (Plot("headline-scores", "Headline scores", "bars", headline, chance=chance),)
    why = "Its package has no board layout that allows more."
    layout = BoardLayout(benchmark, headline, tuple(tables), plots, why=why)
    check_layout(layout)
    return _with_errors(layout, pooled=True)


def _rates(spec: TaskSpec, *, pooled: bool) -> list[ErrorRate]:
    """The kinds of error that task files declare, and with ``pooled`` those of the benchmark that
    the task names.
    """
    errors = spec.benchmark.errors if pooled else None
    own = [rate for rate in errors.rates if rate.name in spec.metadata.pooled] if errors else []
    return [*own, *declared_rates(spec.name)]


def _outermost(benchmark: str) -> list[TaskSpec]:
    specs = {
        name: spec for name, spec in load_specs().items() if spec.metadata.benchmark == benchmark
    }
    inner = {member for spec in specs.values() for member in spec.members}
    return [spec for name, spec in sorted(specs.items()) if name not in inner]


def _with_errors(layout: BoardLayout, *, pooled: bool = False) -> BoardLayout:
    """The layout with tables and figures of kinds of error (:func:`_rates`) that it does not
    show.
    """
    taken = {
        HEADLINE,
        *(table.name for table in layout.tables),
        *(plot.name for plot in layout.plots),
    }
    shown = {column.metric for column in columns_of(layout)}
    tables, plots = [*layout.tables], [*layout.plots]
    for spec in _outermost(layout.benchmark):
        if rates := [rate for rate in _rates(spec, pooled=pooled) if rate.name not in shown]:
            table, plot = kinds_of_error(
                error_columns(spec.name, rates), name=_unused(f"{spec.name}-errors", taken)
            )
            tables.append(table)
            if plot.columns:  # correct outcomes are not drawn
                plots.append(plot)
    return (
        layout
        if len(tables) == len(layout.tables)
        else replace(layout, tables=tuple(tables), plots=tuple(plots))
    )


def _unused(text: str, taken: set[str]) -> str:
    """A URL name derived from a task's name; it differs from those ``taken``, to which it is added.

    >>> taken = {HEADLINE}
    >>> [_unused(text, taken) for text in ("Headline", "a_b", "a-b")]
    ['headline-2', 'a-b', 'a-b-2']
    """
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-").split("-")
    stem = "-".join([word[:30] for word in words if word][:10]) or "table"
    numbered = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    name = next(name for name in numbered if name not in taken)
    taken.add(name)
    return name


def metrics_of(task: str) -> tuple[str, ...]:
    """The metrics of a task or group: computed, learned, judged and pooled ones, kinds of error."""
    names: list[str] = []
    for leaf in leaf_tasks(task):
        metadata = load_spec(leaf).metadata
        judged = [name for rubric in metadata.rubrics for name in load_rubric(rubric).metrics]
        names += [
            *load_spec(leaf).scores,
            *metadata.learned,
            *judged,
            *(kind.name for kind in metadata.errors),
        ]
    return tuple(dict.fromkeys((*names, *load_spec(task).metadata.pooled)))


def columns_of(layout: BoardLayout) -> Iterator[Column]:
    """Every column of the layout, headline first."""
    yield from layout.headline
    for table in layout.tables:
        yield from table.columns
    for plot in layout.plots:
        yield from (*plot.columns, *plot.against)


def check_layout(layout: BoardLayout) -> None:
    """Refuse a board layout that cannot be shown, by a :class:`MedtasksError` with what was
    expected.
    """
    for _, problem in _problems(layout):
        raise MedtasksError(f"board layout of {layout.benchmark}: {problem}.")


def layouts_left_out(package: TaskPackage) -> Iterator[LeftOut]:
    """The layouts of another package that cannot be shown, with file and line; our tests check
    ours.
    """
    for layout in () if package.ours else plugin_of(package).layouts:
        if (left_out := _left_out(layout, package)) is not None:
            yield left_out


def _left_out(layout: BoardLayout, package: TaskPackage) -> LeftOut | None:
    try:
        part, problem = next(_problems(layout), (layout, ""))
    except (AttributeError, TypeError) as error:  # its fields may be anything
        part, problem = layout, first_line(error)
    name = f"board layout {layout.benchmark}"
    return LeftOut(package.owner, name, f"{problem}; correct it.", part.place) if problem else None


def _problems(
    layout: BoardLayout,
) -> Iterator[tuple[BoardLayout | LayoutTable | Plot | Column, str]]:
    """Each part of a layout that is wrong, and what is wrong with it."""
    if not layout.headline:
        yield layout, "it has no headline column, expected at least one"
    named: tuple[tuple[str, Sequence[LayoutTable | Plot], list[str]], ...] = (
        ("table", layout.tables, [HEADLINE]),
        ("plot", layout.plots, []),
    )
    for kind, parts, reserved in named:
        names = [*reserved, *(part.name for part in parts)]
        for part in parts:
            name = f"{kind} name {part.name!r} is"
            if not _NAME.fullmatch(part.name):
                yield (
                    part,
                    f"{name} invalid, expected lower-case letters and digits joined by hyphens",
                )
            if names.count(part.name) > 1:
                yield part, f"{name} duplicated or reserved ({HEADLINE!r}), expected unique names"

    known: dict[str, tuple[str, ...]] = {}
    for column in columns_of(layout):
        if column.task not in known:
            try:
                confident = any(
                    load_spec(leaf).metadata.confidence is not None
                    for leaf in leaf_tasks(column.task)
                )
                known[column.task] = (
                    *metrics_of(column.task),
                    *(CONFIDENCE_NAMES if confident else ()),
                )
            except MedtasksError as error:
                yield column, str(error).rstrip(".")
                return
        place = f"column {column.label!r} of {column.task}"
        breakdowns = load_spec(column.task).metadata.breakdowns
        if column.metric not in known[column.task]:
            yield column, f"{place}: {unknown('metric', column.metric, known[column.task])}"
        if column.breakdown is not None and column.breakdown not in breakdowns:
            yield column, f"{place}: {unknown('breakdown', column.breakdown, breakdowns)}"
        if (column.breakdown is None) != (column.group is None):
            yield column, f"{place}: has only one of breakdown and group, expected both or neither"
    for column in layout.headline:
        if column.breakdown is not None:
            expected = "expected all items because models are ranked by it"
            yield column, f"headline column {column.label!r} is a breakdown, {expected}"

    ranked = {"the headline": layout.headline}
    ranked |= {
        f"plot {plot.name!r} (heatmap)": plot.columns
        for plot in layout.plots
        if plot.kind == "heatmap"
    }
    for place, columns in ranked.items():
        for column in (column for column in columns if column.metric in SIGNED):
            signed = f"{column.metric!r}, which is best at 0 and cannot rank models"
            yield column, f"{place} has {signed}; move it to a table"
    for plot in layout.plots:
        found = f"plot {plot.name!r} ({plot.kind}) has {len(plot.columns)} columns"
        if len(plot.against) != (len(plot.columns) if plot.kind == "paired" else 0):
            yield plot, f"{found} and {len(plot.against)} `against`"
        expanded = any(column.group == ALL_GROUPS for column in plot.columns)
        if plot.kind == "radar" and len(plot.columns) < 3 and not expanded:
            yield plot, f"{found}, expected at least 3 axes"
