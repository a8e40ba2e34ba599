"""Two runs that tests of forgeries change copies of, and a browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import chromium
from invented_runs import MODELS, write_run_of


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is right in most cases: what a forger has to beat."""
    return write_run_of(tmp_path_factory.mktemp("honest"), MODELS[1], ["med_cmr_mcq"])


@pytest.fixture(scope="session")
def guessed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose answers are guessed."""
    return write_run_of(tmp_path_factory.mktemp("guessed"), MODELS[3], ["med_cmr_mcq"])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as started:
        yield started
