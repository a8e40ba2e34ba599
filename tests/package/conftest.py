"""Processes of these tests start at once: none of them is about what is imported."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture
def python(warm_python: Any) -> Any:
    return warm_python
