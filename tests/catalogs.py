"""Another catalog for a block of a test: of the packages that are installed by now, or of those
given.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from medtasks.catalog import contents
from medtasks.catalog.task_package import TaskPackage

READ = (
    "medtasks.catalog.",
    "medtasks.metrics.registry",
    "medtasks.data.miniatures",
    "medtasks.benchmarks.aggregations",
)
"""Modules that keep what they read."""


@contextmanager
def fresh(packages: tuple[TaskPackage, ...] | None = None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if packages is not None:
            patch.setattr(contents, "find_packages", lambda: (packages, ()))
        _forget()
        try:
            yield
        finally:
            _forget()


def _forget() -> None:
    """Packages are looked for, and read, again."""
    for module in [module for name, module in sys.modules.items() if name.startswith(READ)]:
        for function in vars(module).values():
            if hasattr(function, "cache_clear"):
                function.cache_clear()
