"""Benchmarks, filters, metrics and board layouts of all task packages, ours included.

All packages are imported, ours first, when one of these is first asked for. A package with a part
that cannot be used is left out, with one sentence on standard error that names the part.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.board_layout import BoardLayout
from medtasks.catalog.contents import (
    OURS,
    LeftOut,
    TaskPackage,
    once,
    packages_found,
    raised_at,
    task_packages,
)
from medtasks.catalog.items import Metric
from medtasks.core.errors import GuestCodeError, MedtasksError, UsageError, first_line
from medtasks.core.findings import Place
from medtasks.core.schema import shown, unknown


@dataclass(frozen=True)
class FilterInfo:
    """A response filter.

    Args:
        kind: the class, with the harness's ``apply(responses, documents)``; task files name it with
            ``!function``.
        version: changes whenever any response is filtered differently; part of the protocol hash.
        status: returns ``ok`` for a filtered response, or one word for why there is no answer to
            score.
    """

    kind: type[Any]
    version: str
    status: Callable[[str], str]

    def __post_init__(self) -> None:
        if not isinstance(self.kind, type) or not callable(getattr(self.kind, "apply", None)):
            expected = "a class with apply(responses, documents)"
            raise UsageError(f"`kind` of FilterInfo is {self.kind!r}, expected {expected}.")
        if not isinstance(self.version, str) or not self.version:
            raise UsageError(
                f"`version` of filter {self.name} is {self.version!r}, expected a string such as '1'."
            )
        if not callable(self.status):
            raise UsageError(
                f"`status` of filter {self.name} is {self.status!r}, expected a function of a response."
            )

    @property
    def name(self) -> str:
        return self.kind.__name__


@dataclass(frozen=True)
class Plugin:
    """The parts of a package, defined as ``PLUGIN`` in the module that its entry point names."""

    benchmarks: tuple[Benchmark, ...] = ()
    filters: tuple[FilterInfo, ...] = ()
    metrics: tuple[Metric, ...] = ()
    layouts: tuple[BoardLayout, ...] = ()

    def __post_init__(self) -> None:
        kinds = {
            "benchmarks": Benchmark,
            "filters": FilterInfo,
            "metrics": Metric,
            "layouts": BoardLayout,
        }
        for name, kind in kinds.items():
            for part in getattr(self, name):
                found = (
                    f"the class {part.__name__}"
                    if isinstance(part, type)
                    else f"a {type(part).__name__}"
                )
                if isinstance(part, type) or not isinstance(part, kind):
                    expected = f"instances of medtasks.api.{kind.__name__}"
                    raise UsageError(f"`{name}` of Plugin has {found}, expected {expected}.")


@once
def _loaded(package: TaskPackage) -> tuple[Plugin, LeftOut | None]:
    """The parts of a package, or why none of them can be used."""
    module = None
    try:
        with redirect_stdout(sys.stderr):  # what it prints must not get into a command's output
            module = import_module(package.module)
        plugin = getattr(module, "PLUGIN", None)
        named = [name for name, value in vars(module).items() if isinstance(value, Plugin)]
        if plugin is None and named:
            message = f"{package.module} has a Plugin named {named[0]}; rename it to PLUGIN."
            raise GuestCodeError(message, Place(Path(str(module.__file__)), 1))
        if not isinstance(plugin, Plugin | None):
            raise MedtasksError(
                f"{package.module}.PLUGIN is a {type(plugin).__name__}, expected medtasks.api.Plugin."
            )
        if plugin is not None and not package.ours:
            _refuse_taken(package, plugin)
        return plugin or Plugin(), None
    except (
        Exception,
        SystemExit,
    ) as error:  # another package's code may raise anything, even when only inspected
        if package.ours:
            raise
        why = first_line(error)
        if module is None:
            why = f"{package.module} cannot be imported: {why[:300].rstrip('.')}; fix or uninstall it."
        left_out = LeftOut(package.owner, "", why, raised_at(error))
        left_out.warn()
        return Plugin(), left_out


def plugin_of(package: TaskPackage) -> Plugin:
    """The parts of the package; none if it is left out."""
    return _loaded(package)[0]


def code_left_out(package: TaskPackage) -> LeftOut | None:
    """Why the package cannot be used at all, not even its tasks; None if it can."""
    return _loaded(package)[1]


@once
def everything_left_out() -> tuple[LeftOut, ...]:
    """Packages and files of packages that are not used."""
    return (*packages_found()[1], *filter(None, map(code_left_out, task_packages())))


def _parts(kind: str) -> Iterator[tuple[Any, TaskPackage]]:
    """Every part of one kind (an attribute of `Plugin`), ours first, and the package that it is
    of.
    """
    for package in task_packages():
        for part in getattr(plugin_of(package), kind):
            yield part, package


@once
def all_benchmarks() -> Mapping[str, Benchmark]:
    """Every benchmark by name, ours first."""
    return {benchmark.name: benchmark for benchmark, _ in _parts("benchmarks")}


def get_benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``; raises :class:`UsageError` if there is none."""
    known = all_benchmarks()
    if name not in known:
        raise UsageError(f"benchmark {name!r} is unknown; choose from {', '.join(known)}.")
    return known[name]


@once
def benchmark_owner(name: str) -> TaskPackage:
    """The package of the benchmark ``name``; ours if there is none."""
    owners = {benchmark.name: package for benchmark, package in _parts("benchmarks")}
    return owners.get(name) or task_packages()[0]


def filter_name(path: str) -> str:
    """A filter's name in manifests and hashes: its class name, for another package's after that of
    the package.

    >>> filter_name("medtasks.answers.OptionLetterFilter"), filter_name("acme.letters.LetterFilter")
    ('OptionLetterFilter', 'acme.LetterFilter')
    """
    package, name = path.partition(".")[0], path.rpartition(".")[2]
    return name if package in (OURS, name) else f"{package}.{name}"


@once
def get_filter(name: str) -> FilterInfo:
    """The filter with this name (:func:`filter_name`) or dotted name; raises :class:`MedtasksError`
    without one.
    """
    known = {
        filter_name(f"{part.kind.__module__}.{part.name}"): part for part, _ in _parts("filters")
    }
    if filter_name(name) not in known:
        raise MedtasksError(f"{unknown('filter', name, known)}.")
    found: FilterInfo = known[filter_name(name)]
    return found


@once
def package_metrics() -> Mapping[str, tuple[Metric, str]]:
    """The metrics of packages by name, ours first, each with its owner: ``medtasks``, or
    distribution and version.
    """
    return {metric.name: (metric, package.known_as) for metric, package in _parts("metrics")}


def _refuse_taken(package: TaskPackage, plugin: Plugin) -> None:
    """Refuse a plug-in with a part whose name another package has, or may not be its own."""
    earlier = [
        (other.known_as, plugin_of(other))
        for other in task_packages()[: task_packages().index(package)]
    ]
    owners = {benchmark.name: owner for owner, other in earlier for benchmark in other.benchmarks}
    own = [benchmark.name for benchmark in plugin.benchmarks]
    for benchmark in own:
        if benchmark in owners:
            raise UsageError(
                f"its benchmark {benchmark} is already defined by {owners[benchmark]}; rename it."
            )
    filters, layouts = (
        [part.name for part in plugin.filters],
        [layout.benchmark for layout in plugin.layouts],
    )
    for what, names in (("filter", filters), ("board layout", layouts)):
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise UsageError(f"it has several parts called {what} {twice}; rename or remove one.")
    for name in layouts:
        if name not in own:
            raise UsageError(
                f"its board layout is for {name}, which is none of its benchmarks; correct it."
            )
    if not plugin.metrics:  # then the rubrics need not be read
        return
    from medtasks.catalog.rubric_files import score_owners

    owners = score_owners() | {
        metric.name: owner for owner, other in earlier for metric in other.metrics
    }
    for metric in plugin.metrics:
        wrong = "" if package.owns(metric.name) else "must start with the name of the package"
        if metric.name in owners:
            wrong = f"has the name of a score of {owners[metric.name]}"
        if wrong:
            call = f"call it {package.prefix}_{metric.name}, or another"
            raise GuestCodeError(f"its metric {metric.name} {wrong}; {call}.", place_of(metric))
        owners[metric.name] = package.owner


def place_of(part: Any) -> Place | None:
    """Where the class of ``part`` is; None if unknown or ours."""
    kind = part.kind if isinstance(part, FilterInfo) else part
    kind = kind if inspect.isclass(kind) or inspect.isfunction(kind) else type(kind)
    if kind.__module__.partition(".")[0] == OURS:
        return None
    try:
        return Place(Path(str(inspect.getsourcefile(kind))), inspect.getsourcelines(kind)[1])
    except (OSError, TypeError):
        return None


def wrong_return(what: str, function: Any, returned: object, expected: str) -> GuestCodeError:
    """The error about a function that did not return what is ``expected``; names its file and
    line.
    """
    place = place_of(function)
    at = f" ({place})" if place else ""
    return GuestCodeError(
        f"{what}{at} returned {shown(returned)}, expected {expected}; fix it.", place
    )
