"""Tiny checkpoints, made once, and a cache of its own for every test."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_checkpoints import tiny_bleurt, tiny_roberta


@pytest.fixture(autouse=True)
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this test's caches lie, with no model named by the environment."""
    for name in ("BERTSCORE_MODEL", "BERTSCORE_LAYER", "BLEURT_MODEL"):
        monkeypatch.delenv(f"MEDTASKS_{name}", raising=False)
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer that puts a space before the first word, as bert-score asks for: the library can
    be called as is.
    """
    return tiny_roberta(tmp_path_factory.mktemp("learned") / "spaced", prefix_space=True)


@pytest.fixture(scope="session")
def plain_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model saved as roberta-large is: without that setting."""
    return tiny_roberta(tmp_path_factory.mktemp("learned") / "plain", prefix_space=False)


@pytest.fixture(scope="session")
def bleurt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bleurt(tmp_path_factory.mktemp("learned") / "bleurt")
