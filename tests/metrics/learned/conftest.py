"""Tiny checkpoints, made once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_checkpoints import tiny_bleurt, tiny_roberta


@pytest.fixture(autouse=True)
def no_model_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BERTSCORE_MODEL", "BERTSCORE_LAYER", "BLEURT_MODEL"):
        monkeypatch.delenv(f"MEDTASKS_{name}", raising=False)


@pytest.fixture(scope="session")
def roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer that puts a space before the first word, as bert-score asks for: the library can be called as is."""
    return tiny_roberta(tmp_path_factory.mktemp("learned") / "spaced", prefix_space=True)


@pytest.fixture(scope="session")
def plain_roberta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model saved as roberta-large is: without that setting."""
    return tiny_roberta(tmp_path_factory.mktemp("learned") / "plain", prefix_space=False)


@pytest.fixture(scope="session")
def bleurt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_bleurt(tmp_path_factory.mktemp("learned") / "bleurt")
