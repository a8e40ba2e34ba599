"""``medtasks validate PATH`` of an installed task file: how its scores behave is checked as if it had been named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from medtasks.catalog.spec import load_spec
from medtasks.cli.tasks import validate
from medtasks.metrics.registry import get_metric

TASK = "mi_cxr_icr"


def codes() -> list[str]:
    app = Typer()
    app.command()(validate)
    done = CliRunner().invoke(app, [str(load_spec(TASK).path), "--json"])
    return [one["code"] for one in json.loads(done.stdout)["tasks"] if one["code"].startswith("MT5")]


def test_a_metric_that_misbehaves_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert codes() == []
    monkeypatch.setattr(type(get_metric("accuracy")), "statistics", lambda *_: np.array([1.0, 1.0]))
    assert codes() != []


@pytest.mark.slow
@pytest.mark.parametrize("named", ["beside.function", "antigravity.webbrowser"])
def test_a_task_file_imports_installed_packages_only(python: Any, tmp_path: Path, named: str) -> None:
    (tmp_path / "beside.py").write_text("open('imported', 'w').close()\ndef function(): pass\n")
    task = tmp_path / "tasks" / "foreign" / "foreign_task.yaml"
    task.parent.mkdir(parents=True)
    text = load_spec(TASK).path.read_text(encoding="utf-8") + f"process_results: !function {named}\n"
    task.write_text(text.replace("include: ", f"include: {load_spec(TASK).path.parent}/"), encoding="utf-8")
    done = python("-m", "medtasks", "validate", "--quick", "--json", str(task), MEDTASKS_DATA="mini")
    assert done.stderr.startswith("medtasks: importing what the files name, from installed packages only\n")
    (found,) = (one for one in json.loads(done.stdout)["tasks"] if one["code"] == "MT120")
    assert f"no installed package has a module '{named.partition('.')[0]}'" in found["message"]
    assert not (tmp_path / "imported").exists()
