"""Functions of `scored_by` score by the metrics in the task file, also where lmms-eval alone calls
them.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from catalogs import fresh

from medtasks.benchmarks import aggregations
from medtasks.benchmarks.aggregations import scored_by
from medtasks.benchmarks.kvasir_vqa_x1 import process_medico2025
from medtasks.benchmarks.pair_entries import table_entries
from medtasks.catalog.spec import load_spec
from medtasks.core.errors import UsageError
from medtasks.metrics.registry import get_metric

DOCUMENT = {"target": "one polyp", "cluster": "patient-1"}
TASK = "kvasir_vqa_x1_medico2025"


def test_metrics_are_those_of_the_task_that_names_the_function() -> None:
    values = process_medico2025(DOCUMENT, ["one polyp"])
    assert tuple(values) == load_spec(TASK).metrics
    assert values["rouge1"]["score"] == 1.0


def test_names_are_taken_as_they_are() -> None:
    assert list(scored_by("chrf")(DOCUMENT, ["one polyp"])) == ["chrf"]


def test_a_function_that_no_task_names_is_refused() -> None:
    with pytest.raises(UsageError, match="but none does; pass the names of the metrics"):
        scored_by()(DOCUMENT, ["one polyp"])


def test_tasks_with_one_function_and_other_metrics_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec = load_spec(TASK)
    changed = spec.model_copy(update={"name": "acme_task", "metrics": ("bleu",)})
    monkeypatch.setattr(aggregations, "load_specs", lambda: {TASK: spec, "acme_task": changed})
    with fresh(), pytest.raises(UsageError, match=f"tasks {TASK} and acme_task have the same"):
        process_medico2025(DOCUMENT, ["one polyp"])


@pytest.mark.filterwarnings("error")
def test_a_pair_that_a_metric_does_not_apply_to_has_no_score() -> None:
    asked = np.array([[1.0, 1.0], [0.0, 0.0]])
    entries = table_entries(get_metric("exact_match"), asked)
    assert entries == [{"statistics": [1.0, 1.0], "score": 1.0}, {"statistics": [0.0, 0.0]}]
    json.dumps(entries, allow_nan=False)  # as in samples/<task>.jsonl
