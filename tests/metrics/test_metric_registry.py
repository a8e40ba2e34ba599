"""The public surface of the metrics, and pooled scores: those of the pooled samples, in any order, never of nothing."""

from __future__ import annotations

import doctest
import importlib
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from medtasks import metrics
from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.aggregate import corpus_score, totals
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


def test_unknown_metric_lists_the_known_in_table_order() -> None:
    assert LEXICAL == ("rouge1", "rouge2", "rougeL", "meteor", "chrf", "chrf++", "bleu", "exact_match")
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


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order(values: list[float], draw: random.Random) -> None:
    table = np.array([[value, 1.0] for value in values])
    shuffled = list(table)
    draw.shuffle(shuffled)
    assert totals(np.array(shuffled)).tobytes() == totals(table).tobytes()


def test_sums_are_correctly_rounded() -> None:
    assert totals(np.array([[1e16], [1.0], [-1e16], [0.5]])).tolist() == [1.5]


def test_no_samples_are_an_error_not_zero_and_shapes_are_checked() -> None:
    with pytest.raises(UsageError, match=r"shape \(1, 2\), expected \(n, 10\)"):
        corpus_score(get_metric("bleu"), np.zeros((1, 2)))
    with pytest.raises(UsageError, match="no sample"):
        corpus_score(get_metric("bleu"), np.zeros((0, 10)))


def test_a_statistic_that_is_not_a_number_is_named() -> None:
    with pytest.raises(DataError, match="statistic 0 of sample 1 is nan"):
        corpus_score(get_metric("accuracy"), np.array([[1.0, 1.0], [np.nan, 1.0]]))
