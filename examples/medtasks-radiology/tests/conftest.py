"""Tests use a cache of their own, and no weights but those that they name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tiny_checkpoints import tiny_chexbert


@pytest.fixture(autouse=True)
def _no_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("MEDTASKS_RADIOLOGY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "no-stanza-models"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny CheXbert, trained once."""
    return tiny_chexbert(tmp_path_factory.mktemp("weights") / "chexbert")


@pytest.fixture
def chexbert(trained: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The tiny CheXbert, named by the environment."""
    monkeypatch.setenv("MEDTASKS_RADIOLOGY_CHEXBERT", str(trained))
    return trained
