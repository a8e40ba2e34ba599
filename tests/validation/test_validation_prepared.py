"""Every picture and frame of the miniatures decodes, and nothing but their size is noted."""

from __future__ import annotations

import pytest

from medtasks.registry import all_benchmarks
from medtasks.validation.prepared import validate_prepared


@pytest.mark.parametrize("name", all_benchmarks())
def test_the_miniatures_are_whole(name: str) -> None:
    assert {finding.severity for finding in validate_prepared(name, decode=True)} == {"note"}
