"""One tiny checkpoint for all adapter tests, and an empty task dictionary for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from adapter_bench import Bench


@pytest.fixture
def bench() -> Bench:
    """An empty task dictionary."""
    return Bench()


@pytest.fixture(scope="session")
def tiny(_isolated: None) -> Path:
    """The tiny checkpoint, built once."""
    from training.tiny import tiny_checkpoint

    return tiny_checkpoint()


@pytest.fixture
def vlm(tiny: Path, bench: Bench) -> Callable[..., Any]:
    """Create a MedtasksVLM on the tiny checkpoint (CPU), looking at the test's task dictionary."""
    from medtasks.adapters.vlm import MedtasksVLM

    def create(**arguments: Any) -> Any:
        model = MedtasksVLM(
            **{"pretrained": str(tiny), "device": "cpu", "max_new_tokens": 12, **arguments}
        )
        model.task_dict = bench.task_dict
        return model

    return create
