"""The board layout of a benchmark whose package has none: the metrics of its groups and tasks."""

from __future__ import annotations

import itertools
import re

from medtasks.benchmarks.card import ALL_GROUPS, Card, CardTable, Column, Plot
from medtasks.benchmarks.card_check import HEADLINE, check_card, metrics_of
from medtasks.errors import MedtasksError
from medtasks.registry import get_benchmark
from medtasks.spec import TaskSpec, load_specs


def default_card(benchmark: str) -> Card:
    """A plain board layout; samples are not shown.

    The headline is the first metric of each group, and of each task without a group. There is one table of all metrics
    for each of them, and one for each breakdown.

    Raises:
        MedtasksError: the benchmark has no task with a metric.
    """
    specs = {name: spec for name, spec in load_specs().items() if spec.metadata.benchmark == benchmark}
    groups = [spec for spec in specs.values() if spec.kind == "group"]
    inner = {member for group in groups for member in group.members}
    shown = [spec for name, spec in sorted(specs.items()) if name not in inner and metrics_of(name)]
    if not shown:
        raise MedtasksError(f"benchmark {benchmark} has no task with a metric, so a leaderboard cannot show it.")
    taken = {HEADLINE}
    options = bool(get_benchmark(benchmark).options)
    headline = tuple(Column(spec.name, metrics_of(spec.name)[0], spec.metadata.title) for spec in shown)
    tables = [
        CardTable(
            name=_free_name(spec.name, taken),
            title=spec.metadata.title,
            columns=tuple(Column(spec.name, metric, metric) for metric in metrics_of(spec.name)),
        )
        for spec in shown
    ]
    tables += [_by_member(spec, specs, taken) for spec in shown if spec.kind == "group"]
    tables += [_by_part(spec, breakdown, taken) for spec in shown for breakdown in spec.metadata.breakdowns]
    lettered = tuple(column for column in headline if options and column.metric == "accuracy")
    plots = [Plot(name="headline-scores", title="Headline scores", kind="bars", columns=headline, chance=options)]
    if lettered:
        plots.append(Plot(name="letters", title="Letters chosen and correct", kind="letters", columns=lettered))
    card = Card(
        benchmark=benchmark,
        headline=headline,
        tables=tuple(tables),
        plots=tuple(plots),
        why="Its package has no board layout that says what may be shown.",
    )
    check_card(card)
    return card


def _by_member(spec: TaskSpec, specs: dict[str, TaskSpec], taken: set[str]) -> CardTable:
    """The first metric of each member."""
    members = [specs[name] for name in spec.members if name in specs]
    return CardTable(
        name=_free_name(f"{spec.name}-tasks", taken),
        title=f"{spec.metadata.title}, by task",
        columns=tuple(Column(one.name, metrics_of(one.name)[0], one.metadata.title) for one in members),
    )


def _by_part(spec: TaskSpec, breakdown: str, taken: set[str]) -> CardTable:
    metric = metrics_of(spec.name)[0]
    return CardTable(
        name=_free_name(f"{spec.name}-by-{breakdown}", taken),
        title=f"{spec.metadata.title}: {metric} by {breakdown}",
        columns=(Column(spec.name, metric, breakdown, breakdown, ALL_GROUPS),),
    )


def _free_name(text: str, taken: set[str]) -> str:
    """A name for addresses, made of a task's name; it is ``taken`` from then on."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-").split("-")
    stem = "-".join([word[:30] for word in words if word][:10]) or "table"
    numbered = (f"{stem}-{number}" for number in itertools.count(2))
    name = next(one for one in itertools.chain([stem], numbered) if one not in taken)
    taken.add(name)
    return name
