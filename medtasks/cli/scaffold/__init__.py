"""``medtasks new``: a package of tasks to start from.

Its files are Jinja templates in ``files/``, rendered by :mod:`medtasks.cli.scaffold.rendering`.
:mod:`medtasks.cli.scaffold.folder_package` turns a benchmark folder into a package.
"""

from __future__ import annotations

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from medtasks.catalog.contents import task_packages
from medtasks.catalog.registry import plugin_of
from medtasks.cli.scaffold.rendering import as_toml, rendered, require_empty, write_texts
from medtasks.core.errors import UsageError
from medtasks.harness.task_names import harness_names

_PACKAGE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
"""A valid name by the packaging standards."""
_BENCHMARK = re.compile(r"[a-z][a-z0-9]*(?:_[a-z0-9]+)*")
_LONGEST_NAME = 40
_RESERVED_MODULES = frozenset({"lmms_eval", "medtasks", "test", "tests"})


class PackageNames(NamedTuple):
    """The name that a package is imported by, and the name of its benchmark."""

    module: str
    benchmark: str


def write_package(
    folder: Path, name: str, variant: str = "mcq", *, benchmark: str | None = None
) -> tuple[Path, ...]:
    """Write an installable package of tasks into ``folder`` and return its files; raises
    `UsageError` if a name cannot be used, or the directory is not empty.
    """
    names = names_of(name, benchmark)
    require_empty(folder)
    title = names.benchmark.replace("_", " ").capitalize()
    files = ["tasks/**/*", "templates/**/*"]
    if variant == "open":
        files.append("rubrics/*")
    fields = {
        "package": name,
        "module": names.module,
        "benchmark": names.benchmark,
        "variant": variant,
        "title": title,
        "description": as_toml(f"{title}: tasks for medtasks and lmms-eval"),
        "files": as_toml(files),
        "test": as_toml(["mypy", "pytest", "ruff"]),
    }
    texts: dict[str, str] = {}
    for part in ("project", "common", variant):  # all are rendered before the first is written
        texts |= rendered(part, fields)
    return write_texts(folder, texts)


def names_of(package: str, benchmark: str | None = None) -> PackageNames:
    """The name that the package called ``package`` is imported by, and that of its benchmark, by
    default the same; raises `UsageError` if one is not valid, or in use.

    >>> names_of("Acme-Bench")
    PackageNames(module='acme_bench', benchmark='acme_bench')
    """
    check_package_name(package)
    module = re.sub(r"[-_.]+", "_", package).lower()
    check_module_name(module, f"package name {package!r} would be imported as {module}")
    name = module if benchmark is None else benchmark
    _check_benchmark_name(name)
    return PackageNames(module, name)


def check_package_name(package: str) -> None:
    """Raise a `UsageError` unless the packaging standards allow the name."""
    if not _PACKAGE.fullmatch(package) or len(package) > _LONGEST_NAME:
        raise UsageError(
            f"package name {package!r}: expected at most {_LONGEST_NAME} letters, digits, '-', "
            "'_' and '.', beginning and ending with a letter or digit, such as acme-bench; choose "
            "another."
        )


def check_module_name(module: str, subject: str) -> None:
    """Raise a `UsageError`, which begins with ``subject``, if the name is invalid or in use."""
    if not module.isidentifier() or keyword.iskeyword(module):
        raise UsageError(
            f"{subject}, which cannot be a module's name; begin with a letter, and avoid Python's "
            "keywords."
        )
    spec = find_spec(module)
    exists = spec is not None and spec.origin is not None  # else it is only a directory
    if exists or module in _RESERVED_MODULES or module in sys.stdlib_module_names:
        raise UsageError(f"{subject}, which exists; choose another.")


def _check_benchmark_name(name: str) -> None:
    """Refuse a name that is invalid, or that a task, group or benchmark already has."""
    if not _BENCHMARK.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise UsageError(
            f"benchmark name {name!r}: expected at most {_LONGEST_NAME} lower-case letters and "
            "digits, words joined by '_', such as acme_dots; choose another with --benchmark."
        )
    owner = "lmms-eval, and --tasks would run that one" if name in harness_names() else ""
    for package in task_packages():
        names = {path.stem for path in package.task_files()}
        names.update(benchmark.name for benchmark in plugin_of(package).benchmarks)
        if name in names:
            owner = package.known_as
    if owner:
        raise UsageError(
            f"benchmark name {name!r} is taken by {owner}; choose another with --benchmark."
        )
