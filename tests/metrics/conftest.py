"""Fixtures for the metric tests."""

from __future__ import annotations

import os

import pytest

from medtasks.metrics import wordnet


@pytest.fixture(scope="session")
def real_wordnet() -> None:
    """WordNet 3.0 of this machine; skips without it, or fails where MEDTASKS_REQUIRE_WORDNET=1 demands it."""
    reason = wordnet.unavailable()
    if reason is None:
        return
    if os.environ.get("MEDTASKS_REQUIRE_WORDNET") == "1":
        pytest.fail(f"MEDTASKS_REQUIRE_WORDNET=1, but {reason}")
    pytest.skip(reason)
