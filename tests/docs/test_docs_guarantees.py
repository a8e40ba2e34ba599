"""Every guarantee names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = REPOSITORY / "docs" / "guarantees.md"


def test_every_guarantee_names_tests_that_exist() -> None:
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| guarantee")
    ]
    assert len(rows) >= 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for path, name in named:
            tree = ast.parse((REPOSITORY / path).read_text(encoding="utf-8"))
            assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"
