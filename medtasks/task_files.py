"""Which task files there are, told from the folder layout alone: light enough for lmms-eval's start-up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import medtasks.tasks

__all__ = ["task_directory", "task_files"]


def task_directory() -> Path:
    """The folder of our task files, as ``medtasks path`` prints it and ``--include_path`` wants it."""
    return Path(medtasks.tasks.__path__[0])


def task_files() -> Iterator[tuple[str, Literal["task", "group"], Path]]:
    """Name, kind and file of every task and group, by name, from the folder layout alone.

    A file's stem is its task's name, groups live in ``groups/``, shared parts start with an underscore: so
    the harness can be told what there is without parsing any YAML (target S6).
    """
    directory = task_directory()
    found: list[tuple[str, Literal["task", "group"], Path]] = []
    for path in directory.glob("*/*.yaml"):
        if not path.name.startswith("_"):
            found.append((path.stem, "task", path))
    for path in directory.glob("*/groups/*.yaml"):
        found.append((path.stem, "group", path))
    yield from sorted(found)
