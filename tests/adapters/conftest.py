"""One tiny checkpoint for all adapter tests, and an empty task dictionary for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_bench import Bench

os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.fixture
def bench() -> Bench:
    """An empty task dictionary."""
    return Bench()


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A user cache of the session's own."""
    root = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEDTASKS_CACHE", str(root))
        yield root


@pytest.fixture(scope="session")
def tiny(cache: Path) -> Path:  # noqa: ARG001
    """The tiny checkpoint, built once."""
    from training.tiny import tiny_checkpoint

    return tiny_checkpoint()


@pytest.fixture
def vlm(tiny: Path, bench: Bench) -> Callable[..., Any]:
    """Create a MedtasksVLM on the tiny checkpoint (CPU), looking at the test's task dictionary."""
    from medtasks.adapters.vlm import MedtasksVLM

    def create(**arguments: Any) -> Any:
        model = MedtasksVLM(**{"pretrained": str(tiny), "device": "cpu", "max_new_tokens": 12, **arguments})
        model.task_dict = bench.task_dict
        return model

    return create
