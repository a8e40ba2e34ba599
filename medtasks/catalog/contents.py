"""The catalog: all task packages, medtasks itself and installed ones, and what was read from them,
once per process.

A package registers an entry point in the group ``medtasks.tasks`` and keeps its files in
directories next to the module that it names: ``tasks/<benchmark>/*.yaml`` (and ``groups/``),
``templates/<module>/``, ``rubrics/<module>_*.yaml``. Packages are listed from these directories
without importing any code, so that start-up stays fast; their code is described in
:mod:`medtasks.catalog.registry`.

Task names share one namespace, the harness's: if two packages have a task of the same name, the
package installed later is left out. All other names start with the package's module, so that
packages cannot collide.

Functions decorated with `once` return benchmarks, filters and metrics (``registry``), templates
(``prompts``), rubrics (``rubric``) and tasks (``spec``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeVar

import medtasks
from medtasks.catalog.installed_packages import find_packages
from medtasks.catalog.task_package import LeftOut, TaskPackage
from medtasks.core.errors import first_line

R = TypeVar("R")

_KEPT: list[functools._lru_cache_wrapper[Any]] = []
"""The functions whose results are kept."""


def once(function: Callable[..., R]) -> functools._lru_cache_wrapper[R]:
    """Computes a function once per process for the same arguments, which must be hashable; errors
    are not kept.
    """
    kept = functools.cache(function)
    _KEPT.append(kept)
    return kept


def forget_packages() -> None:
    """Look for packages, and read them, again: the benchmark folders in use have changed."""
    for kept in _KEPT:
        kept.cache_clear()


@once
def packages_found() -> tuple[tuple[TaskPackage, ...], tuple[LeftOut, ...]]:
    """The packages in use, and what is left out, with one warning each on standard error."""
    packages, left_out = find_packages()
    for part in left_out:
        part.warn()
    return packages, left_out


def task_packages() -> tuple[TaskPackage, ...]:
    """The packages in use, ours first."""
    return packages_found()[0]


def task_directory() -> Path:
    """The directory of our task files, which ``medtasks path`` prints for ``--include_path``."""
    return Path(medtasks.__path__[0]) / "benchmarks"


@once
def task_files() -> dict[str, Path]:
    """The file of every task and group by name, which is the file's stem; no YAML is read."""
    paths = [path for package in task_packages() for path in package.task_files()]
    return {path.stem: path for path in sorted(paths, key=lambda path: path.stem)}


def kind_of(path: Path) -> Literal["task", "group"]:
    """Whether a file is a task or a group: groups are in ``groups/``."""
    return "group" if path.parent.name == "groups" else "task"


@once
def owner_of(path: Path) -> TaskPackage:
    """The package that the task file ``path`` belongs to; ours by default."""
    for package in task_packages():
        if path.is_relative_to(package.tasks):
            return package
    return task_packages()[0]


def resolve(name: str) -> Any:
    """The object that the dotted ``name`` of a task file refers to.

    Raises:
        LookupError: there is none; the message is the reason.
    """
    module, _, attribute = name.rpartition(".")
    if not module or not attribute or name.startswith("."):
        raise LookupError("it is not a dotted name such as package.module.function")
    try:
        return getattr(import_module(module), attribute)
    # another package's code may raise anything when it is imported
    except (Exception, SystemExit) as error:
        reason = " ".join(first_line(error).split())[:300]
        raise LookupError(reason.rstrip(".")) from error
