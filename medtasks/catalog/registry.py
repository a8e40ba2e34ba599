"""Benchmarks, filters, metrics and board layouts of all task packages, ours included.

Packages are imported in order, ours first, and only as far as a lookup needs. Parts of the wrong type or with a name
already taken are left out.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from medtasks.catalog.benchmark import Benchmark, Metric
from medtasks.catalog.board_layout import BoardLayout
from medtasks.catalog.contents import files_left_out, once, raised_at, raised_in, task_packages
from medtasks.catalog.packages import OURS, LeftOut, TaskPackage
from medtasks.core.errors import GuestCodeError, MedtasksError, UsageError, first_line
from medtasks.core.schema import shown, unknown


@dataclass(frozen=True)
class FilterInfo:
    """A response filter.

    Args:
        kind: the class, with the harness's ``apply(responses, documents)``; task files name it with ``!function``.
        version: changes whenever any response is filtered differently; part of the protocol hash.
        status: returns ``ok`` for a filtered response, or one word for why there is no answer to score.
    """

    kind: type[Any]
    version: str
    status: Callable[[str], str]


@dataclass(frozen=True)
class Plugin:
    """The parts of a package, defined as ``PLUGIN`` in the module that its entry point names."""

    benchmarks: tuple[Benchmark, ...] = ()
    filters: tuple[FilterInfo, ...] = ()
    metrics: tuple[Metric, ...] = ()
    layouts: tuple[BoardLayout, ...] = ()


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


@once
def _loaded(package: TaskPackage) -> _Loaded:
    """The code of a package; unusable parts are left out, each with one sentence on standard error."""
    try:
        plugin = _read(package)
        loaded = _Loaded(package, plugin) if package.ours else _Check(package, plugin).usable_parts()
    except (Exception, SystemExit) as error:  # another package's code may raise anything, even when only inspected
        if package.ours:
            raise
        place = raised_at(error.__cause__ or error) or ("", None)
        loaded = _Loaded(package, Plugin(), (LeftOut(package.owner, "", first_line(error), *place),), broken=True)
    for part in loaded.left_out:
        part.warn()
    return loaded


def _plugins() -> Iterator[_Loaded]:
    """Ours first."""
    return map(_loaded, task_packages())


def _read(package: TaskPackage) -> Plugin:
    module = _imported(package)
    plugin = getattr(module, "PLUGIN", None)
    if plugin is None:
        named = [name for name, value in vars(module).items() if isinstance(value, Plugin)]
        if named:
            message = f"{package.module} has a Plugin named {named[0]}; rename it to PLUGIN."
            raise GuestCodeError(message, (str(module.__file__), 1))
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


@once
def everything_left_out() -> tuple[LeftOut, ...]:
    """Packages and parts of packages that are not used."""
    return (*files_left_out(), *(part for loaded in _plugins() for part in loaded.left_out))


@once
def get_benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``; raises :class:`UsageError`. Packages after its own are not imported."""
    for loaded in _plugins():
        for benchmark in loaded.plugin.benchmarks:
            if benchmark.name == name:
                return benchmark
    raise UsageError(f"benchmark {name!r} is unknown; choose from {', '.join(all_benchmarks())}.")


@once
def all_benchmarks() -> dict[str, Benchmark]:
    """Every benchmark by name, ours first."""
    return {benchmark.name: benchmark for loaded in _plugins() for benchmark in loaded.plugin.benchmarks}


@once
def benchmark_owner(name: str) -> TaskPackage:
    """The package of the benchmark ``name``; ours if there is none."""
    owners = (loaded.package for loaded in _plugins() for one in loaded.plugin.benchmarks if one.name == name)
    return next(owners, task_packages()[0])


@once
def brought_layouts() -> dict[str, BoardLayout]:
    """All board layouts, by benchmark."""
    return {layout.benchmark: layout for loaded in _plugins() for layout in loaded.plugin.layouts}


def filter_name(path: str) -> str:
    """A filter's name in manifests and hashes: its class name, for another package's after that of the package.

    >>> filter_name("medtasks.answers.OptionLetterFilter"), filter_name("acme.letters.LetterFilter")
    ('OptionLetterFilter', 'acme.LetterFilter')
    """
    package, name = path.partition(".")[0], path.rpartition(".")[2]
    return name if package in (OURS, name) else f"{package}.{name}"


@once
def _all_filters() -> dict[str, FilterInfo]:
    brought = (one for loaded in _plugins() for one in loaded.plugin.filters)
    return {filter_name(f"{one.kind.__module__}.{one.kind.__name__}"): one for one in brought}


@once
def get_filter(name: str) -> FilterInfo:
    """The filter with this name (:func:`filter_name`) or dotted name; raises :class:`MedtasksError` without one."""
    known = _all_filters()
    if filter_name(name) not in known:
        raise MedtasksError(f"{unknown('filter', name, known)}.")
    return known[filter_name(name)]


def all_metrics() -> dict[str, Metric]:
    """The metrics of packages, by name, ours first."""
    return {metric.name: metric for loaded in _plugins() for metric in loaded.plugin.metrics}


@once
def find_metric(name: str) -> tuple[Metric, str] | None:
    """The metric called ``name`` and its owner, ``medtasks`` or distribution and version; None if there is none."""
    found = ((one, loaded.owner) for loaded in _plugins() for one in loaded.plugin.metrics if one.name == name)
    return next(found, None)


def metric_left_out(name: str) -> LeftOut | None:
    """Why a package's metric of that name is not used; None if there is no such metric."""
    return next((part for part in everything_left_out() if part.part == f"metric {name}"), None)


class _Check:
    """Checks the parts of another package's code."""

    def __init__(self, package: TaskPackage, plugin: Plugin) -> None:
        self._package, self._plugin = package, plugin
        self._left_out: list[LeftOut] = []
        earlier = [_loaded(other) for other in task_packages()[: task_packages().index(package)]]
        self._benchmarks = {one.name: loaded.owner for loaded in earlier for one in loaded.plugin.benchmarks}
        self._metrics = {one.name: loaded.owner for loaded in earlier for one in loaded.plugin.metrics}

    def usable_parts(self) -> _Loaded:
        """The usable parts, and the reasons why others are left out.

        Raises:
            MedtasksError: a benchmark's name is taken, so the package's tasks would run on another benchmark's data.
        """
        benchmarks = self._usable("benchmark", self._plugin.benchmarks, partial(_not_a, Benchmark))
        for one in benchmarks:
            if one.name in self._benchmarks:
                owner = self._benchmarks[one.name]
                raise MedtasksError(f"its benchmark {one.name} is already defined by {owner}; rename it.")
        filters = self._usable("filter", self._plugin.filters, self._about_filter)
        metrics = self._usable("metric", self._plugin.metrics, self._about_metric)
        layouts = self._usable(
            "board layout", self._plugin.layouts, partial(self._about_layout, [one.name for one in benchmarks])
        )
        return _Loaded(self._package, Plugin(benchmarks, filters, metrics, layouts), tuple(self._left_out))

    def _usable(self, word: str, parts: Any, check: Callable[[Any], Iterator[str]]) -> tuple[Any, ...]:
        kept = []
        for part in parts:
            why = next(check(part), None)
            if why is None:
                kept.append(part)
            else:
                name = f"{word} {_name(part)}"
                self._left_out.append(LeftOut(self._package.owner, name, why, *place_of(part)))
        return tuple(kept)

    def _about_filter(self, part: Any) -> Iterator[str]:
        yield from _not_a(FilterInfo, part)
        if not isinstance(part.kind, type) or not callable(getattr(part.kind, "apply", None)):
            yield "its `kind` is not a class with a method apply(responses, documents)."
        if not isinstance(part.version, str) or not part.version:
            yield f"its `version` is {part.version!r}, expected a string such as '1'."
        if not callable(part.status):
            yield f"its `status` is a {type(part.status).__name__}, expected a function of a filtered response."
        if list(map(_name, self._plugin.filters)).count(_name(part)) > 1:
            yield "its package has another filter of that name; rename one."

    def _about_metric(self, metric: Any) -> Iterator[str]:
        if isinstance(metric, type):
            yield "it is a class; put an instance into PLUGIN.metrics."
        for attribute, kind in _METRIC.items():
            try:
                value = getattr(metric, attribute)
            except AttributeError:
                yield f"it has no `{attribute}`; extend medtasks.api.MeanMetric, or add it."
            except (Exception, SystemExit) as error:  # another package's property may raise anything
                yield f"its `{attribute}` fails ({first_line(error)}); fix it."
            else:
                if not isinstance(value, kind):
                    yield f"its `{attribute}` is {value!r}, expected a {kind.__name__}."
        for method in _METHODS:
            if not callable(getattr(metric, method, None)):
                yield f"it has no method `{method}`; extend medtasks.api.MeanMetric, or add it."
        from medtasks.catalog.rubric import score_owners  # a package without metrics does not read rubrics

        name, package = metric.name, self._package
        owner = (score_owners() | self._metrics).get(name)
        if owner is not None:
            yield f"{owner} already has that score; call it {package.prefix}_{name}, or another."
        if not package.owns(name):
            yield f"its name must start with that of the package; call it {package.prefix}_{name}."
        self._metrics[name] = package.owner

    def _about_layout(self, benchmarks: list[str], layout: Any) -> Iterator[str]:
        yield from _not_a(BoardLayout, layout)
        if (
            layout.benchmark not in benchmarks
            or [one.benchmark for one in self._plugin.layouts].count(layout.benchmark) > 1
        ):
            yield f"it must be the only board layout of a benchmark of its package ({', '.join(benchmarks) or 'none'})."


_METRIC = {"name": str, "width": int, "higher_is_better": bool, "signature": str}
_METHODS = ("unavailable", "statistics", "score")


def _name(part: Any) -> str:
    if isinstance(part, FilterInfo):
        return str(getattr(part.kind, "__name__", part.kind))
    named = getattr(part, "name", None) or getattr(part, "benchmark", None) or getattr(part, "__name__", None)
    return named if isinstance(named, str) else type(part).__name__


def place_of(part: Any) -> tuple[str, int | None]:
    """File and line of the class of ``part``; empty if unknown or ours."""
    kind = part.kind if isinstance(part, FilterInfo) else part
    kind = kind if inspect.isclass(kind) or inspect.isfunction(kind) else type(kind)
    if kind.__module__.partition(".")[0] == OURS:
        return "", None
    try:
        return inspect.getsourcefile(kind) or "", inspect.getsourcelines(kind)[1]
    except (OSError, TypeError):
        return "", None


def wrong_return(what: str, function: Any, returned: object, expected: str) -> GuestCodeError:
    """The error about a function that did not return what is ``expected``; names its file and line."""
    file, line = place_of(function)
    at = f" ({file}, line {line})" if file else ""
    return GuestCodeError(f"{what}{at} returned {shown(returned)}, expected {expected}; fix it.", (file, line))


def _not_a(kind: type[Any], part: Any) -> Iterator[str]:
    if not isinstance(part, kind):
        found = f"the class {part.__name__}" if isinstance(part, type) else f"a {type(part).__name__}"
        yield f"it is {found}, expected medtasks.api.{kind.__name__}."
