"""Processes of slow tests start at once: none of them is about what is imported."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def python(request: pytest.FixtureRequest) -> Any:
    """`warm_python`; a few quick tests are not worth the second process from which it forks."""
    slow = request.node.get_closest_marker("slow") is not None
    return request.getfixturevalue("warm_python" if slow else "new_python")
