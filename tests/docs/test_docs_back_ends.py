"""The page on back-ends shows what was tried, and names what exists."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parent.parent.parent
PAGE = REPOSITORY / "docs" / "back-ends.md"
SCRIPT = REPOSITORY / "performance" / "backends" / "try_all.py"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location("try_all", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "try_all", module)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_the_one_of_the_kept_results(script: Any) -> None:
    rows = script.read_kept()
    labels = [one.label for one in script.back_ends(Path("q"), Path("l"), Path("r"), "u")]
    assert set(rows) == set(labels), "python performance/backends/try_all.py"
    assert script.with_table(PAGE.read_text(encoding="utf-8"), rows, labels) == PAGE.read_text(
        encoding="utf-8"
    )


def test_every_back_end_and_extra_on_the_page_exists() -> None:
    from lmms_eval.models import MODEL_REGISTRY_V2

    text = PAGE.read_text(encoding="utf-8")
    section = text.partition("## What to install")[2].partition("##")[0]
    named = [
        name
        for row in section.splitlines()
        if row.startswith("| `")
        for name in re.findall(r"`(\w+)`", row)
    ]
    assert len(named) > 10
    for name in named:
        assert MODEL_REGISTRY_V2.resolve(name)
    extras = set(re.findall(r"medtasks\[(\w+)\]", text))
    project = (REPOSITORY / "pyproject.toml").read_text(encoding="utf-8")
    declared = project.partition("[project.optional-dependencies]")[2]
    assert (
        {"qwen", "llava"}
        <= extras
        <= set(re.findall(r"^(\w+) = \[", declared.partition("\n[")[0], re.MULTILINE))
    )
