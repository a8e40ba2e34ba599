"""Tests use the miniature data, drawn into a cache of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _miniature(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("MEDTASKS_DATA", "mini")
        yield
