"""The catalog: all task packages and what was read from them, each part once per process.

A function decorated with :func:`once` computes its value once for the current catalog. Such functions return
benchmarks, filters and metrics (``registry``), templates (``prompts``), rubrics (``rubric``) and tasks (``spec``).
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, cast

import medtasks
from medtasks.catalog.packages import LeftOut, TaskPackage, find_packages
from medtasks.core.errors import GuestCodeError, first_line
from medtasks.core.findings import Place

P = ParamSpec("P")
R = TypeVar("R")

_KEPT: list[Any] = []


def once(function: Callable[P, R]) -> Callable[P, R]:
    """Compute ``function`` once per catalog for the same arguments, which must be hashable; errors are not kept."""
    kept = functools.cache(function)
    _KEPT.append(kept)
    return cast(Callable[P, R], kept)


def forget() -> None:
    """Begin another catalog: look for packages again when one is next asked for, and read them again."""
    for kept in _KEPT:
        kept.cache_clear()


@once
def packages_found() -> tuple[tuple[TaskPackage, ...], tuple[LeftOut, ...]]:
    """The packages in use, and what is left out, of which each is said once on standard error."""
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
    """The file of every task and group by name, which is its stem: tasks are listed without reading any YAML."""
    paths = [path for package in task_packages() for path in package.task_files()]
    return {path.stem: path for path in sorted(paths, key=lambda path: path.stem)}


def kind_of(path: Path) -> Literal["task", "group"]:
    """Whether a file is a task or a group: groups are in ``groups/``."""
    return "group" if path.parent.name == "groups" else "task"


@once
def owner_of(path: Path) -> TaskPackage:
    """The package that the task file ``path`` belongs to; ours by default."""
    return next((package for package in task_packages() if path.is_relative_to(package.tasks)), task_packages()[0])


def resolve(name: str) -> Any:
    """The object that the dotted ``name`` of a task file refers to; raises `LookupError` with the reason."""
    module, _, attribute = name.rpartition(".")
    if not module or not attribute or name.startswith("."):
        raise LookupError("it is not a dotted name such as package.module.function")
    try:
        return getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # another package's code may do anything when it is imported
        reason = " ".join(first_line(error).split())[:300]
        raise LookupError(reason.rstrip(".")) from error


def raised_at(error: BaseException) -> Place | None:
    """The last frame of ``error`` in another package's code; None if there is none."""
    if isinstance(error, GuestCodeError) and error.place is not None:
        return error.place
    if isinstance(error, SyntaxError) and error.filename:
        return Place(Path(error.filename), error.lineno or 1)
    folders = [package.tasks.parent for package in task_packages() if not package.ours]
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if any(Path(frame.filename).is_relative_to(folder) for folder in folders):
            return Place(Path(frame.filename), frame.lineno or 1)
    return None


def raised_in(error: BaseException) -> str:
    """Where ``error`` was raised, in parentheses: :func:`raised_at`, or else the last frame."""
    frames = traceback.extract_tb(error.__traceback__)
    last = Place(Path(frames[-1].filename), frames[-1].lineno or 1) if frames else "place unknown"
    return f"({raised_at(error) or last})"
