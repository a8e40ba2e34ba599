"""Benchmarks, filters, metrics and board layouts of all task packages, ours included.

All packages are imported, ours first, when one of these is first asked for. A package with a part
that cannot be used is left out, with one sentence on standard error that names the part.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from medtasks.catalog.benchmark import Benchmark
from medtasks.catalog.board_layout import BoardLayout
from medtasks.catalog.contents import once, packages_found, task_packages
from medtasks.catalog.folder_tasks import CODE as FOLDER_CODE
from medtasks.catalog.guest_code import place_of, raised_at
from medtasks.catalog.items import Metric
from medtasks.catalog.task_package import OURS, LeftOut, TaskPackage
from medtasks.core.errors import GuestCodeError, MedtasksError, UsageError, first_line
from medtasks.core.findings import Place
from medtasks.core.schema import unknown


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
        """Refuse fields of another type, as another package may pass any."""
        if not isinstance(self.kind, type) or not callable(getattr(self.kind, "apply", None)):
            expected = "a class with apply(responses, documents)"
            raise UsageError(f"`kind` of FilterInfo is {self.kind!r}, expected {expected}.")
        if not isinstance(self.version, str) or not self.version:
            expected = "a string such as '1'"
            raise UsageError(
                f"`version` of filter {self.name} is {self.version!r}, expected {expected}."
            )
        if not callable(self.status):
            expected = "a function of a response"
            raise UsageError(
                f"`status` of filter {self.name} is {self.status!r}, expected {expected}."
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
        _check_parts("benchmarks", self.benchmarks, Benchmark)
        _check_parts("filters", self.filters, FilterInfo)
        _check_parts("metrics", self.metrics, Metric)
        _check_parts("layouts", self.layouts, BoardLayout)


def _check_parts(field: str, parts: tuple[Any, ...], kind: type) -> None:
    """Refuse a part that is not an instance of ``kind``."""
    expected = f"instances of medtasks.api.{kind.__name__}"
    for part in parts:
        if isinstance(part, type):
            raise UsageError(
                f"`{field}` of Plugin has the class {part.__name__}, expected {expected}."
            )
        if not isinstance(part, kind):
            raise UsageError(
                f"`{field}` of Plugin has a {type(part).__name__}, expected {expected}."
            )


@once
def _loaded(package: TaskPackage) -> tuple[Plugin, LeftOut | None]:
    """The parts of a package, or why none of them can be used."""
    module = None
    try:
        with redirect_stdout(sys.stderr):  # what it prints must not get into a command's output
            module = import_module(package.module if package.folder is None else FOLDER_CODE)
        if package.folder is not None:
            plugin = module.folder_plugin(package.folder)
        else:
            plugin = _plugin_in(module)
        if not package.ours:
            _refuse_taken(package, plugin)
        return plugin, None
    # another package's code may raise anything, even when only inspected
    except (Exception, SystemExit) as error:
        if package.ours:
            raise
        why = first_line(error)
        if module is None:
            reason = why[:300].rstrip(".")
            why = f"{package.module} cannot be imported: {reason}; fix or uninstall it."
        left_out = LeftOut(package.owner, "", why, raised_at(error))
        left_out.warn()
        return Plugin(), left_out


def _plugin_in(module: ModuleType) -> Plugin:
    """The module's ``PLUGIN``; an empty one if it has none.

    Raises:
        MedtasksError: ``PLUGIN`` is no `Plugin`, or the module has one of another name.
    """
    plugin = getattr(module, "PLUGIN", None)
    if isinstance(plugin, Plugin):
        return plugin
    if plugin is not None:
        raise MedtasksError(
            f"{module.__name__}.PLUGIN is a {type(plugin).__name__}, expected medtasks.api.Plugin."
        )
    for name, value in vars(module).items():
        if isinstance(value, Plugin):
            message = f"{module.__name__} has a Plugin named {name}; rename it to PLUGIN."
            raise GuestCodeError(message, Place(Path(str(module.__file__)), 1))
    return Plugin()


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
    """Every part of one kind (an attribute of `Plugin`) with its package, ours first."""
    for package in task_packages():
        for part in getattr(plugin_of(package), kind):
            yield part, package


@once
def all_benchmarks() -> Mapping[str, Benchmark]:
    """Every benchmark by name, ours first."""
    return {benchmark.name: benchmark for benchmark, _ in _parts("benchmarks")}


def get_benchmark(name: str) -> Benchmark:
    """The benchmark called ``name``; raises :class:`UsageError` if there is none."""
    benchmarks = all_benchmarks()
    if name not in benchmarks:
        raise UsageError(f"benchmark {name!r} is unknown; choose from {', '.join(benchmarks)}.")
    return benchmarks[name]


@once
def benchmark_owner(name: str) -> TaskPackage:
    """The package of the benchmark ``name``; ours if there is none."""
    owners = {benchmark.name: package for benchmark, package in _parts("benchmarks")}
    return owners.get(name) or task_packages()[0]


def filter_name(path: str) -> str:
    """A filter's name in manifests and hashes: its class name, after the package's name if it is
    not ours.

    >>> filter_name("medtasks.answers.OptionLetterFilter"), filter_name("acme.letters.LetterFilter")
    ('OptionLetterFilter', 'acme.LetterFilter')
    """
    package, name = path.partition(".")[0], path.rpartition(".")[2]
    return name if package in (OURS, name) else f"{package}.{name}"


@once
def get_filter(name: str) -> FilterInfo:
    """The filter with this name (:func:`filter_name`) or dotted name.

    Raises:
        MedtasksError: there is none.
    """
    filters: dict[str, FilterInfo] = {}
    for part, _ in _parts("filters"):
        filters[filter_name(f"{part.kind.__module__}.{part.name}")] = part
    if filter_name(name) not in filters:
        raise MedtasksError(f"{unknown('filter', name, filters)}.")
    return filters[filter_name(name)]


@once
def package_metrics() -> Mapping[str, tuple[Metric, str]]:
    """The metrics of packages by name, ours first, each with its owner as
    `TaskPackage.known_as`.
    """
    return {metric.name: (metric, package.known_as) for metric, package in _parts("metrics")}


@once
def added_metrics(task: str) -> tuple[str, ...]:
    """The learned metrics of packages that score ``task`` although its file does not name them
    (`medtasks.metrics.learned.learned_metric.LearnedMetric.tasks`).
    """
    names: list[str] = []
    for name, (metric, _) in package_metrics().items():
        if task in getattr(metric, "tasks", ()):
            names.append(name)
    return tuple(names)


def _refuse_taken(package: TaskPackage, plugin: Plugin) -> None:
    """Refuse a plug-in with a part whose name another package has, or may not be its own."""
    packages = task_packages()
    earlier = packages[: packages.index(package)]
    _refuse_taken_benchmarks(plugin, earlier)
    _refuse_repeated("filter", [part.name for part in plugin.filters])
    _refuse_repeated("board layout", [layout.benchmark for layout in plugin.layouts])
    benchmarks = {benchmark.name for benchmark in plugin.benchmarks}
    for layout in plugin.layouts:
        if layout.benchmark not in benchmarks:
            raise UsageError(
                f"its board layout is for {layout.benchmark}, which is none of its benchmarks; "
                "correct it."
            )
    if plugin.metrics:  # otherwise the rubrics need not be read
        _refuse_taken_metrics(package, plugin, earlier)


def _refuse_taken_benchmarks(plugin: Plugin, earlier: Sequence[TaskPackage]) -> None:
    """Refuse a benchmark whose name one of the ``earlier`` packages has."""
    owners: dict[str, str] = {}
    for package in earlier:
        for benchmark in plugin_of(package).benchmarks:
            owners[benchmark.name] = package.known_as
    for benchmark in plugin.benchmarks:
        if benchmark.name in owners:
            owner = owners[benchmark.name]
            raise UsageError(
                f"its benchmark {benchmark.name} is already defined by {owner}; rename it."
            )


def _refuse_repeated(what: str, names: Sequence[str]) -> None:
    """Refuse several parts of one package with the same name; ``what`` is their kind."""
    for name, count in Counter(names).items():
        if count > 1:
            raise UsageError(f"it has several parts called {what} {name}; rename or remove one.")


def _refuse_taken_metrics(
    package: TaskPackage, plugin: Plugin, earlier: Sequence[TaskPackage]
) -> None:
    """Refuse a metric with the name of another score, or without the package's own prefix."""
    owners = _metric_owners(earlier)
    for metric in plugin.metrics:
        problem = ""
        if metric.name in owners:
            problem = f"has the name of a score of {owners[metric.name]}"
        elif not package.owns(metric.name):
            problem = "must start with the name of the package"
        if problem:
            fix = f"call it {package.prefix}_{metric.name}, or another"
            message = f"its metric {metric.name} {problem}; {fix}."
            raise GuestCodeError(message, place_of(metric))
        owners[metric.name] = package.owner


def _metric_owners(packages: Sequence[TaskPackage]) -> dict[str, str]:
    """The owner of each score of a rubric and each metric of ``packages``, for messages."""
    from medtasks.catalog.rubric_files import score_owners

    owners = dict(score_owners())
    for package in packages:
        for metric in plugin_of(package).metrics:
            owners[metric.name] = package.known_as
    return owners
