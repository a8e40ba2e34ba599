"""What a package of tasks brings as code: benchmarks, filters, metrics, cards. Ours is made of the same parts."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from medtasks.errors import MedtasksError, first_line
from medtasks.guard import raised_at
from medtasks.packages import OURS, LeftOut, TaskPackage, files_left_out, task_packages

if TYPE_CHECKING:
    from medtasks.benchmarks.base import Benchmark
    from medtasks.benchmarks.card import Card
    from medtasks.metrics.base import Metric

__all__ = [
    "FilterInfo",
    "Plugin",
    "all_benchmarks",
    "all_cards",
    "all_filters",
    "all_metrics",
    "benchmark_owner",
    "code_left_out",
    "everything_left_out",
    "metric_left_out",
    "plugin_of",
]


@dataclass(frozen=True)
class FilterInfo:
    """A filter of responses.

    Args:
        kind: the class, with the harness's ``apply(responses, documents)``; task files name it with ``!function``.
        version: moves whenever it can filter a response otherwise than before; counts in the protocol hash.
        status: says of a filtered response ``ok``, or in a word why there is no answer to score.
    """

    kind: type[Any]
    version: str
    status: Callable[[str], str]


@dataclass(frozen=True)
class Plugin:
    """The code of a package: the module that its entry point names holds one, called ``PLUGIN``."""

    benchmarks: tuple[Benchmark, ...] = ()
    filters: tuple[FilterInfo, ...] = ()
    metrics: tuple[Metric, ...] = ()
    cards: tuple[Card, ...] = ()


@dataclass(frozen=True)
class _Loaded:
    """What of a package's code is used, and what is not; where ``broken``, nothing of the package is."""

    package: TaskPackage
    plugin: Plugin
    left_out: tuple[LeftOut, ...] = ()
    broken: bool = False


@functools.cache
def _plugins() -> tuple[_Loaded, ...]:
    """The code of all other packages; what cannot be used is left out, with one sentence each on standard error."""
    from medtasks.plugin_check import Taken

    taken = Taken()
    found = tuple(_loaded(package, taken) for package in task_packages()[1:])
    for loaded in found:
        for one in loaded.left_out:
            one.warn()
    return found


def _loaded(package: TaskPackage, taken: Any) -> _Loaded:
    from medtasks.plugin_check import usable_parts

    try:
        plugin, left_out = usable_parts(package, _read(package), taken)
    except Exception as error:  # another package's code may do anything, even where it is only looked at
        place = raised_at(error.__cause__ or error) or ("", None)
        return _Loaded(package, Plugin(), (LeftOut(package.owner, "", first_line(error), *place),), broken=True)
    return _Loaded(package, plugin, left_out)


def _read(package: TaskPackage) -> Plugin:
    module = import_module(package.module)
    plugin = getattr(module, "PLUGIN", None)
    if plugin is None:
        named = [name for name, value in vars(module).items() if isinstance(value, Plugin)]
        if named:
            raise MedtasksError(f"{package.module} holds its Plugin as {named[0]}; call it PLUGIN.")
        return Plugin()
    if not isinstance(plugin, Plugin):
        raise MedtasksError(f"{package.module}.PLUGIN is a {type(plugin).__name__}, expected medtasks.api.Plugin.")
    return plugin


def plugin_of(package: TaskPackage) -> Plugin:
    """What of the package's code is used."""
    from medtasks.builtin import PLUGIN

    if package.distribution == OURS:
        return PLUGIN
    return next((one.plugin for one in _plugins() if one.package == package), Plugin())


def code_left_out(package: TaskPackage) -> LeftOut | None:
    """Why nothing of the package can be used, its tasks included, where that is so."""
    broken = (one for one in _plugins() if one.broken and one.package == package)
    return next((loaded.left_out[0] for loaded in broken), None)


def everything_left_out() -> tuple[LeftOut, ...]:
    """Packages, and parts of packages, that are not used."""
    return (*files_left_out(), *(one for loaded in _plugins() for one in loaded.left_out))


def metric_left_out(name: str) -> LeftOut | None:
    """Why the metric of that name, which a package brings, is not used."""
    return next((one for loaded in _plugins() for one in loaded.left_out if one.part == f"metric {name}"), None)


def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by name, ours first."""
    return {one.name: one for plugin in _plugin_list() for one in plugin.benchmarks}


def benchmark_owner(name: str) -> TaskPackage:
    """The package that brings the benchmark ``name``; ours where no other does."""
    owners = (loaded.package for loaded in _plugins() for one in loaded.plugin.benchmarks if one.name == name)
    return next(owners, task_packages()[0])


def all_cards() -> dict[str, Card]:
    """The leaderboard card of every benchmark that has a page of its own, by the benchmark's name, ours first.

    A benchmark without a card gets a plain one of its tasks' metrics, unless its tasks stand on another card of its
    package (a track beside the original). Another package's card that cannot be shown is replaced by the plain one, and
    a benchmark that cannot be shown at all is left out, with one sentence on standard error.
    """
    from medtasks.benchmarks.default_card import default_card

    brought = {card.benchmark: card for plugin in _plugin_list() for card in plugin.cards}
    beside = {(benchmark_owner(card.benchmark), name) for card in brought.values() for name in _benchmarks_on(card)}
    found: dict[str, Card] = {}
    for name in all_benchmarks():
        card = brought.get(name)
        if card is None and (benchmark_owner(name), name) in beside:
            continue
        try:
            found[name] = default_card(name) if card is None else _checked(card)
        except MedtasksError as error:
            print(f"medtasks: no leaderboard page: {error}", file=sys.stderr, flush=True)
    return found


def _benchmarks_on(card: Card) -> set[str]:
    """The benchmarks whose tasks the card names; unknown tasks are told of elsewhere."""
    from medtasks.benchmarks.card_check import card_columns
    from medtasks.spec import load_specs

    specs = load_specs()
    return {specs[column.task].metadata.benchmark for column in card_columns(card) if column.task in specs}


def _checked(card: Card) -> Card:
    """The card, or the plain one in its place where another package's cannot be shown; our tests check ours."""
    from medtasks.benchmarks.card_check import check_card
    from medtasks.benchmarks.default_card import default_card

    owner = benchmark_owner(card.benchmark)
    if owner.distribution == OURS:
        return card
    try:
        check_card(card)
    except (MedtasksError, AttributeError, TypeError) as error:  # its fields may hold anything
        LeftOut(owner.owner, f"card of {card.benchmark}", str(error)).warn()
        return default_card(card.benchmark)
    return card


def all_filters() -> dict[str, FilterInfo]:
    """The filters of other packages, by the dotted name of their class."""
    found = (one for plugin in _others() for one in plugin.filters)
    return {f"{one.kind.__module__}.{one.kind.__qualname__}": one for one in found}


def all_metrics() -> dict[str, Metric]:
    """The metrics of other packages, by name."""
    return {one.name: one for plugin in _others() for one in plugin.metrics}


def _plugin_list() -> list[Plugin]:
    """Ours, then the others'."""
    from medtasks.builtin import PLUGIN

    return [PLUGIN, *_others()]


def _others() -> list[Plugin]:
    return [loaded.plugin for loaded in _plugins()]
