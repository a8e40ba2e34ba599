"""The public surface of the metrics, and pooled scores: those of the pooled samples, in any order,
never of nothing.
"""

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
from medtasks.catalog.registry import package_metrics
from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.base import Metric, corpus_score, totals
from medtasks.metrics.registry import get_metric

SIGNATURES = {
    "rougeL": "f1|stem:no|rouge-score:0.1.2",
    "chrf": "nc:6|nw:0|beta:2|case:mixed|space:no|eff:yes|sacrebleu:",
    "chrf++": "nc:6|nw:2|",
    "cider": "formula:cider-d|n:4|sigma:6|clip:yes|scale:10|df:corpus|refs:1|stem:no|case:lower|tok:",
    "open_total": "scale:0-100|unjudged:left-out",
}  # fmt: skip


def test_every_metric_keeps_the_protocol_and_nothing_measured_is_no_score() -> None:
    for name, (metric, _) in package_metrics().items():
        assert isinstance(metric, Metric)
        assert metric.name == name
        head, *choices = metric.signature.split("|")
        assert head == name
        assert all(":" in choice or choice == "f1" for choice in choices)
        if name not in ("bleu", "chrf", "chrf++"):
            assert np.isnan(metric.score(np.zeros((2, metric.width)))).all(), name
    for name, part in SIGNATURES.items():
        assert get_metric(name).signature.startswith(f"{name}|{part}")
    for name in ("content", "overall_table4", "accuracy_dimension_mean", "ece"):
        with pytest.raises(UsageError, match=f"{name} cannot be computed from one prediction"):
            get_metric(name).statistics("alert", "alert")


def test_unknown_metric_lists_the_known() -> None:
    with pytest.raises(UsageError, match=r"'blue' is unknown.*, expected one of accuracy"):
        get_metric("blue")


def test_import_loads_no_heavy_library() -> None:
    heavy = {"torch", "nltk", "datasets"}
    script = f"import medtasks.metrics.registry, medtasks.stats.paired, sys; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def with_examples() -> list[str]:
    """Modules of filters, metrics and statistics whose docstrings have examples."""
    root = Path(metrics.__file__).parent.parent
    files = sorted(
        path for folder in ("answers", "metrics", "stats") for path in (root / folder).glob("*.py")
    )
    return [
        f"medtasks.{path.parent.name}.{path.stem}"
        for path in files
        if ">>> " in path.read_text("utf-8")
    ]


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
