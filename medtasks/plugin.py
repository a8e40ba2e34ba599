"""What a package of tasks brings as code: benchmarks, filters, metrics, cards. Ours is made of the same parts."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from medtasks.errors import MedtasksError
from medtasks.packages import OURS, TaskPackage, task_packages

if TYPE_CHECKING:
    from medtasks.benchmarks.base import Benchmark
    from medtasks.benchmarks.card import Card
    from medtasks.metrics.base import Metric

__all__ = ["FilterInfo", "Plugin", "all_benchmarks", "all_cards", "all_filters", "all_metrics", "benchmark_owner"]


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


@functools.cache
def _plugins() -> tuple[tuple[TaskPackage, Plugin], ...]:
    """The code of all other packages; one that cannot be used is left out with a warning."""
    found: list[tuple[TaskPackage, Plugin]] = []
    for package in task_packages()[1:]:
        try:
            plugin = getattr(import_module(package.module), "PLUGIN", Plugin())
            if not isinstance(plugin, Plugin):
                raise MedtasksError(f"its PLUGIN is a {type(plugin).__name__}, expected medtasks.api.Plugin.")
            _refuse_taken(plugin, [one for _, one in found])
        except Exception as error:
            text = str(error) if isinstance(error, MedtasksError) else f"{type(error).__name__}: {error}"
            print(f"medtasks: the code of {package.owner} is left out: {text}", file=sys.stderr, flush=True)
            continue
        found.append((package, plugin))
    return tuple(found)


def _refuse_taken(plugin: Plugin, others: list[Plugin]) -> None:
    from medtasks.builtin import PLUGIN

    for kind in ("benchmarks", "filters", "metrics"):
        taken = {_name(one) for other in (PLUGIN, *others) for one in getattr(other, kind)}
        for one in getattr(plugin, kind):
            if _name(one) in taken:
                raise MedtasksError(f"its {kind.removesuffix('s')} {_name(one)} is already another's; rename it.")
    own = [one.name for one in plugin.benchmarks]
    named = [card.benchmark for card in plugin.cards]
    for name in named:
        if name not in own or named.count(name) > 1:
            raise MedtasksError(f"its card of {name} is not the one card of a benchmark of its own; leave it out.")


def _name(part: Any) -> str:
    return str(part.kind.__name__ if isinstance(part, FilterInfo) else part.name)


def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by name, ours first."""
    return {one.name: one for plugin in _plugin_list() for one in plugin.benchmarks}


def benchmark_owner(name: str) -> TaskPackage:
    """The package that brings the benchmark ``name``; ours where no other does."""
    owners = (package for package, plugin in _plugins() for one in plugin.benchmarks if one.name == name)
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
        print(f"medtasks: a card of {owner.owner} is left out: {error}", file=sys.stderr, flush=True)
        return default_card(card.benchmark)
    return card


def all_filters() -> dict[str, FilterInfo]:
    """The filters of other packages, by the name of their class."""
    return {one.kind.__name__: one for plugin in _others() for one in plugin.filters}


def all_metrics() -> dict[str, Metric]:
    """The metrics of other packages, by name."""
    return {one.name: one for plugin in _others() for one in plugin.metrics}


def _plugin_list() -> list[Plugin]:
    """Ours, then the others'."""
    from medtasks.builtin import PLUGIN

    return [PLUGIN, *_others()]


def _others() -> list[Plugin]:
    return [plugin for _, plugin in _plugins()]
