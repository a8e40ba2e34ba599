"""Another catalog for a block of a test: of the packages that are installed by now, or of those given."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from medtasks.catalog import contents
from medtasks.catalog.contents import TaskPackage


@contextmanager
def fresh(packages: tuple[TaskPackage, ...] | None = None) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if packages is not None:
            patch.setattr(contents, "find_packages", lambda: (packages, ()))
        contents.forget()
        try:
            yield
        finally:
            contents.forget()
