"""Examples in docstrings of the leaderboard's modules are right."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import medtasks.leaderboard
import pytest


def modules_with_examples() -> list[str]:
    (root,) = map(Path, medtasks.leaderboard.__path__)
    names = []
    for file in sorted(root.rglob("*.py")):
        if ">>> " in file.read_text(encoding="utf-8"):
            names.append(".".join(file.relative_to(root).with_suffix("").parts))
    return names


@pytest.mark.parametrize("name", modules_with_examples())
def test_the_examples_of_docstrings_are_right(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"medtasks.leaderboard.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
