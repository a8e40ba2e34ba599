"""Finished runs of the real harness that await their judge, made once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

import pytest
from judged_run import awaiting_run, copied


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Each group's run, made when first asked for."""

    @functools.cache
    def run(group: str) -> Path:
        return awaiting_run(group, tmp_path_factory.mktemp(group))

    return run


@pytest.fixture
def folder(finished: Callable[[str], Path], tmp_path: Path) -> Path:
    return copied(finished("med_cmr_open"), tmp_path / "copy")


@pytest.fixture
def kvasir(finished: Callable[[str], Path], tmp_path: Path) -> Path:
    return copied(finished("kvasir_vqa_x1"), tmp_path / "copy")


@pytest.fixture
def medstream(finished: Callable[[str], Path], tmp_path: Path) -> Path:
    return copied(finished("medstreambench"), tmp_path / "copy")
