"""The public surface of the metrics room."""

from __future__ import annotations

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

from medtasks import metrics
from medtasks.core.errors import UsageError
from medtasks.metrics.base import Metric
from medtasks.metrics.registry import LEXICAL, get_metric


@pytest.mark.parametrize("name", [*LEXICAL, "accuracy"])
def test_every_metric_keeps_the_protocol(name: str) -> None:
    metric = get_metric(name)
    assert isinstance(metric, Metric)
    assert metric.name == name
    assert metric.higher_is_better
    assert metric.signature.split("|")[0] == name
    assert all(":" in part or part == "f1" for part in metric.signature.split("|")[1:])


def test_table_order() -> None:
    assert LEXICAL == ("rouge1", "rouge2", "rougeL", "meteor", "chrf", "chrf++", "bleu", "exact_match")


def test_unknown_metric_lists_the_known() -> None:
    with pytest.raises(UsageError, match=r"'blue' is unknown.*, expected one of rouge1"):
        get_metric("blue")


def test_import_loads_no_heavy_library() -> None:
    heavy = {"torch", "nltk", "datasets"}
    script = f"import medtasks.metrics.registry, medtasks.stats.paired, sys; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def with_examples() -> list[str]:
    """Modules of filters, metrics and statistics whose docstrings have examples."""
    root = Path(metrics.__file__).parent.parent
    files = sorted(path for folder in ("answers", "metrics", "stats") for path in (root / folder).glob("*.py"))
    return [f"medtasks.{path.parent.name}.{path.stem}" for path in files if ">>> " in path.read_text("utf-8")]


@pytest.mark.parametrize("module", with_examples())
def test_the_examples_of_docstrings_are_right(module: str) -> None:
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted > 0
    assert result.failed == 0
