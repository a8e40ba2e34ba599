"""The checkpoint that all engines serve, and its answers by transformers."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_runs import Ended, run


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """vLLM's attention on CPU wants heads of 64 or more. No answer ends early, since empty ones
    would agree anyway, and letters A to E are likely, since their probabilities are compared where
    they occur.
    """
    from medtasks.adapters._letter_tokens import LetterTokens
    from transformers import AutoModelForImageTextToText, AutoTokenizer

    from training.tiny import TinyConfig, build_tiny_vlm

    pixels = 196 * 28 * 28
    shape = TinyConfig(
        hidden_size=128, heads=2, kv_heads=1, max_pixels=pixels, min_pixels=pixels, end_gain=0.0
    )
    made = build_tiny_vlm(tmp_path_factory.mktemp("checkpoint"), config=shape)
    model, letters = (
        AutoModelForImageTextToText.from_pretrained(made),
        LetterTokens(AutoTokenizer.from_pretrained(made)).tokens,
    )
    model.lm_head.weight.data[
        [token for token, letter in letters.items() if letter in "ABCDE"]
    ] *= 3.0
    model.save_pretrained(made)
    return made


@pytest.fixture(scope="session")
def by_transformers(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A run of ``medtasks_vlm``."""
    ended = run(
        "medtasks_vlm",
        {"pretrained": checkpoint, "dtype": "float32"},
        tmp_path_factory.mktemp("transformers"),
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return ended
