"""Find task files from the directory layout alone, which is fast enough for lmms-eval's start-up."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import medtasks
from medtasks.packages import TaskPackage, task_packages


def task_directory() -> Path:
    """The directory of our task files, which ``medtasks path`` prints for ``--include_path``."""
    return Path(medtasks.__path__[0]) / "benchmarks"


def task_files() -> Iterator[tuple[str, Literal["task", "group"], Path]]:
    """Name, kind and file of every task and group, ours and other packages', by name.

    A file's stem is its task's name, groups are in ``groups/``, and shared parts start with an underscore, so that the
    harness can list tasks without parsing any YAML (target S6).
    """
    yield from _below(tuple(package.tasks for package in task_packages()))


@functools.cache
def _below(folders: tuple[Path, ...]) -> tuple[tuple[str, Literal["task", "group"], Path], ...]:
    found: list[tuple[str, Literal["task", "group"], Path]] = []
    for folder in folders:
        for path in folder.glob("*/*.yaml"):
            if not path.name.startswith("_"):
                found.append((path.stem, "task", path))
        for path in folder.glob("*/groups/*.yaml"):
            found.append((path.stem, "group", path))
    return tuple(sorted(found))


def owner_of(path: Path) -> TaskPackage:
    """The package that the task file ``path`` belongs to; ours by default."""
    return _owner(path, task_packages())


@functools.cache
def _owner(path: Path, packages: tuple[TaskPackage, ...]) -> TaskPackage:
    return next((one for one in packages if path.is_relative_to(one.tasks)), packages[0])
