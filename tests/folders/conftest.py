"""Benchmark folders are used within one test: no cache, list or prepared data outlives it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalogs import fresh

from medtasks.catalog import folders_in_use


@pytest.fixture(autouse=True)
def _own_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("MEDTASKS_BENCHMARKS", raising=False)
    monkeypatch.setattr(folders_in_use, "_INCLUDED", {})
    with fresh():
        yield
