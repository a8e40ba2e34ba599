"""Find task files from the directory layout alone, which is fast enough for lmms-eval's start-up."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Literal

import medtasks
from medtasks.packages import TaskPackage, task_packages


def task_directory() -> Path:
    """The directory of our task files, which ``medtasks path`` prints for ``--include_path``."""
    return Path(medtasks.__path__[0]) / "benchmarks"


def task_files() -> tuple[tuple[str, Literal["task", "group"], Path], ...]:
    """Name, kind and file of every task and group, ours and other packages', by name.

    A file's stem is its task's name, groups are in ``groups/``, and shared parts start with an underscore, so that the
    harness can list tasks without parsing any YAML (target S6).
    """
    return _files_of(task_packages())


@functools.cache
def _files_of(packages: tuple[TaskPackage, ...]) -> tuple[tuple[str, Literal["task", "group"], Path], ...]:
    paths = [path for package in packages for path in package.task_files()]
    return tuple(sorted((path.stem, "group" if path.parent.name == "groups" else "task", path) for path in paths))


def task_path(name: str) -> Path | None:
    """The file of the task or group ``name``; None if there is none."""
    return _paths_of(task_packages()).get(name)


@functools.cache
def _paths_of(packages: tuple[TaskPackage, ...]) -> dict[str, Path]:
    return {name: path for name, _, path in _files_of(packages)}


def owner_of(path: Path) -> TaskPackage:
    """The package that the task file ``path`` belongs to; ours by default."""
    return _owner(path, task_packages())


@functools.cache
def _owner(path: Path, packages: tuple[TaskPackage, ...]) -> TaskPackage:
    return next((one for one in packages if path.is_relative_to(one.tasks)), packages[0])
