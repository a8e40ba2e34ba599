"""``medtasks validate PATH`` of an installed task file: how its scores behave is checked as if it had been named."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from medtasks.cli.validate import validate
from medtasks.metrics import get_metric
from medtasks.spec import load_spec

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
