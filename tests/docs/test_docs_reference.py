"""The references and guarantees of the docs are those of the code and its tests."""

from __future__ import annotations

import re
from pathlib import Path

import medtasks.api

REPOSITORY = Path(__file__).parent.parent.parent
DOCS = REPOSITORY / "docs"


def test_the_api_page_has_every_public_name() -> None:
    shown = re.findall(
        r"^::: medtasks\.api\.(\w+)$", (DOCS / "api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(shown) == sorted(medtasks.api.__all__)


def test_every_path_of_ours_that_a_page_names_exists() -> None:
    named = {
        name.rstrip("/")
        for page in (*DOCS.glob("*.md"), *REPOSITORY.glob("*.md"))
        if page.name != "CHANGELOG.md"  # which may name what is gone
        for name in re.findall(r"`(medtasks/[^`\s]+)`", page.read_text(encoding="utf-8"))
    }
    assert len(named) > 3
    assert not [name for name in named if not any(REPOSITORY.glob(re.sub(r"<\w+>", "*", name)))]


def test_every_environment_variable_is_documented() -> None:
    code = [
        path
        for name in ("medtasks", "adapters", "leaderboard")
        for path in (REPOSITORY / name).rglob("*.py")
    ]
    read = {
        name
        for path in code
        for name in re.findall(r'"(MEDTASKS_[A-Z_]+)"', path.read_text(encoding="utf-8"))
    }
    read.discard("MEDTASKS_STUB_KEY")  # the demo's own, for the judge that it starts
    rows = (
        (DOCS / "run-a-model.md")
        .read_text(encoding="utf-8")
        .partition("## Environment variables")[2]
    )
    assert sorted(re.findall(r"`(MEDTASKS_\w+)`", rows)) == sorted(read)


def test_every_guarantee_names_tests_that_exist() -> None:
    rows = [
        line
        for line in (DOCS / "guarantees.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and not line.startswith("| guarantee")
    ]
    assert len(rows) >= 15
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for path, name in named:
            assert f"\ndef {name}(" in (REPOSITORY / path).read_text(encoding="utf-8"), (
                f"{path}::{name}"
            )
