"""Another catalog for a block of a test: of the packages that are installed by now, or of those given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from medtasks.catalog.contents import _CURRENT, Catalog
from medtasks.catalog.packages import TaskPackage


@contextmanager
def fresh(packages: tuple[TaskPackage, ...] | None = None) -> Iterator[Catalog]:
    made, before = Catalog(), list(_CURRENT)
    made.packages = made.packages if packages is None else packages
    _CURRENT[:] = [made]
    try:
        yield made
    finally:
        _CURRENT[:] = before
