"""The text metrics of a task's samples are computed at once, with the numbers of each sample alone."""

from __future__ import annotations

from typing import Any

import pytest

from medtasks.benchmarks.aggregations import sample_value
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import load_spec
from medtasks.core.settings import using
from medtasks.metrics.chrf import Chrf
from medtasks.runs.replies import Reply
from medtasks.runs.samples import Sample
from medtasks.scoring.scored_samples import scored_samples

TASK = "kvasir_vqa_x1_level1"


def answered(count: int) -> list[Sample]:
    """The task's first samples, each of another answer."""
    with using(mini=True):
        documents = task_documents(TASK)[:count]
    return [
        Sample.answered(TASK, document, (Reply(f"There are {number} polyps."),))
        for number, document in enumerate(documents)
    ]


def test_a_metric_gets_the_pairs_of_all_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    batches: list[int] = []
    table = Chrf.table

    def counted(metric: Chrf, pairs: Any) -> Any:
        if metric.name == "chrf":
            batches.append(len(pairs))
        return table(metric, pairs)

    monkeypatch.setattr(Chrf, "table", counted)
    samples = answered(3)
    scored = scored_samples(load_spec(TASK), samples)
    assert batches == [3]
    for sample in scored:
        alone = sample_value("chrf", [sample.filtered], sample.target, sample.cluster)
        assert sample.statistics["chrf"] == tuple(alone["statistics"])
    assert batches == [3, 1, 1, 1]
