"""The registry of benchmarks, filters, metrics and board layouts of all task packages, ours included.

Packages are imported in order, ours first, and only as far as a lookup needs.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from medtasks.errors import MedtasksError, UsageError, first_line
from medtasks.packages import OURS, LeftOut, TaskPackage, files_left_out, raised_at, raised_in, task_packages
from medtasks.plugin import Plugin
from medtasks.plugin_check import Taken, usable_parts

if TYPE_CHECKING:
    from medtasks.benchmarks.base import Benchmark
    from medtasks.benchmarks.card import Card
    from medtasks.metrics.base import Metric
    from medtasks.plugin import FilterInfo


@dataclass(frozen=True)
class _Loaded:
    """The usable parts of a package's code and those left out; nothing of a ``broken`` package is used."""

    package: TaskPackage
    plugin: Plugin
    left_out: tuple[LeftOut, ...] = ()
    broken: bool = False

    @property
    def owner(self) -> str:
        return OURS if self.package.ours else self.package.owner


@functools.cache
def _loaded(package: TaskPackage) -> _Loaded:
    """The code of a package; unusable parts are left out, each with one sentence on standard error."""
    taken = Taken()
    for earlier in _before(package):
        taken.benchmarks |= {one.name: earlier.owner for one in earlier.plugin.benchmarks}
        taken.metrics |= {one.name: earlier.owner for one in earlier.plugin.metrics}
    try:
        plugin, left_out = usable_parts(package, _read(package), taken)
        loaded = _Loaded(package, plugin, left_out)
    except (Exception, SystemExit) as error:  # another package's code may raise anything, even when only inspected
        if package.ours:
            raise
        place = raised_at(error.__cause__ or error) or ("", None)
        loaded = _Loaded(package, Plugin(), (LeftOut(package.owner, "", first_line(error), *place),), broken=True)
    for one in loaded.left_out:
        one.warn()
    return loaded


def _before(package: TaskPackage) -> Iterator[_Loaded]:
    for other in task_packages():
        if other == package:
            return
        yield _loaded(other)


def _plugins() -> Iterator[_Loaded]:
    """Ours first."""
    return (_loaded(package) for package in task_packages())


def _read(package: TaskPackage) -> Plugin:
    module = _imported(package)
    plugin = getattr(module, "PLUGIN", None)
    if plugin is None:
        named = [name for name, value in vars(module).items() if isinstance(value, Plugin)]
        if named:
            raise MedtasksError(f"{package.module} has a Plugin named {named[0]}; rename it to PLUGIN.")
        return Plugin()
    if not isinstance(plugin, Plugin):
        raise MedtasksError(f"{package.module}.PLUGIN is a {type(plugin).__name__}, expected medtasks.api.Plugin.")
    return plugin


def _imported(package: TaskPackage) -> ModuleType:
    """The package's module; anything that another package's code raises, even `SystemExit`, is one sentence."""
    try:
        with redirect_stdout(sys.stderr):  # what it prints must not get into a command's output
            return import_module(package.module)
    except (Exception, SystemExit) as error:
        if package.ours:
            raise
        why = f"{first_line(error)[:300].rstrip('.')}; fix or uninstall it"
        raise MedtasksError(f"{package.module} cannot be imported {raised_in(error)}: {why}.") from error


def plugin_of(package: TaskPackage) -> Plugin:
    """The usable parts of the package's code."""
    return _loaded(package).plugin if package in task_packages() else Plugin()


def code_left_out(package: TaskPackage) -> LeftOut | None:
    """Why the package cannot be used at all, not even its tasks; None if it can."""
    if package.ours or package not in task_packages():
        return None
    loaded = _loaded(package)
    return loaded.left_out[0] if loaded.broken else None


def everything_left_out() -> tuple[LeftOut, ...]:
    """Packages and parts of packages that are not used."""
    return (*files_left_out(), *(one for loaded in _plugins() for one in loaded.left_out))


def metric_left_out(name: str) -> LeftOut | None:
    """Why a package's metric of that name is not used; None if there is no such metric."""
    return next((one for loaded in _plugins() for one in loaded.left_out if one.part == f"metric {name}"), None)


def get_benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``; raises :class:`UsageError`. Packages after its own are not imported."""
    for loaded in _plugins():
        for one in loaded.plugin.benchmarks:
            if one.name == name:
                return one
    raise UsageError(f"benchmark {name!r} is unknown; choose from {', '.join(all_benchmarks())}.")


def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by name, ours first."""
    return {one.name: one for loaded in _plugins() for one in loaded.plugin.benchmarks}


def benchmark_owner(name: str) -> TaskPackage:
    """The package of the benchmark ``name``; ours if there is none."""
    owners = (loaded.package for loaded in _plugins() for one in loaded.plugin.benchmarks if one.name == name)
    return next(owners, task_packages()[0])


def loaded_cards() -> dict[str, Card]:
    """All board layouts, by benchmark."""
    return {card.benchmark: card for loaded in _plugins() for card in loaded.plugin.cards}


def all_filters() -> dict[str, FilterInfo]:
    """The filters of packages, by the dotted name of their class."""
    found = (one for loaded in _plugins() for one in loaded.plugin.filters)
    return {f"{one.kind.__module__}.{one.kind.__qualname__}": one for one in found}


def all_metrics() -> dict[str, Metric]:
    """The metrics of packages, by name."""
    return {one.name: one for loaded in _plugins() for one in loaded.plugin.metrics}


def metric_owner(name: str) -> str | None:
    """The package of the metric ``name``; None if there is none."""
    return next((one.owner for one in _plugins() for metric in one.plugin.metrics if metric.name == name), None)
