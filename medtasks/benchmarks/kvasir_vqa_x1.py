"""Kvasir-VQA-x1: GI endoscopy VQA at complexity levels 1 to 3, scored by text overlap (paper sections 2.4, 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from medtasks.benchmarks.aggregations import sample_value
from medtasks.benchmarks.base import Benchmark, Document, SampleView
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.kvasir_references import contradiction
from medtasks.data.records import KvasirRecord
from medtasks.data.store import PREPARE_COMMANDS, open_prepared
from medtasks.errors import DataError
from medtasks.metrics import LEXICAL

__all__ = ["BENCHMARK", "documents", "medico_subset", "process_medico2025", "process_results"]

ABSTENTION = "This cannot be told from the image."


def documents(record: KvasirRecord) -> list[Document]:
    """The record as a harness document; its reference answer is the target."""
    return [
        {
            **record.model_dump(mode="json", exclude={"original"}),
            "original": [{"q": pair.q, "a": pair.a} for pair in record.original],
            "target": record.answer,
            "abstention": ABSTENTION,
        }
    ]


def _complexity(view: SampleView) -> tuple[str, ...]:
    return (f"level{view.document['complexity']}",)


def _question_class(view: SampleView) -> tuple[str, ...]:
    # a class named twice in one row is one aspect
    return tuple(sorted(set(view.document["question_class"])))


BENCHMARK = Benchmark(
    doubt=contradiction,
    name="kvasir_vqa_x1",
    documents=documents,
    record=KvasirRecord,
    title="Kvasir-VQA-x1",
    paper="arXiv 2506.09958",
    source="SimulaMet/Kvasir-VQA-x1",
    licence="CC BY-NC 4.0",
    prepare=PREPARE_COMMANDS["kvasir_vqa_x1"],
    cluster="image",
    visible_fields=frozenset({"question"}),
    breakdowns={"complexity": _complexity, "question_class": _question_class},
    parts="question_class",
)

MEDICO_METRICS = ("bleu", "rouge1", "rouge2", "rougeL", "meteor")


def medico_subset(documents: list[Document]) -> list[Document]:
    """The Medico 2025 challenge's public subset: the test split in the order of a shuffle with seed 42, cut at 1,500.

    The order is that of ``datasets.Dataset.shuffle(seed=42)``: numpy's default generator permutes the row numbers.

    Raises:
        DataError: rows were left out when the data were prepared, so row numbers are not the split's.
    """
    excluded = open_prepared("kvasir_vqa_x1").manifest.excluded
    if excluded:
        raise DataError(
            f"kvasir_vqa_x1_medico2025: {sum(excluded.values())} rows of the split were left out when it was prepared, "
            "so the challenge's subset cannot be drawn; prepare the whole split."
        )
    order = np.random.default_rng(42).permutation(len(documents))
    return [documents[number] for number in order[:1500].tolist()]


medico2025 = Rows("kvasir_vqa_x1", lambda row: True, medico_subset)  # noqa: ARG005

level1 = Rows("kvasir_vqa_x1", lambda row: row["complexity"] == 1)
level2 = Rows("kvasir_vqa_x1", lambda row: row["complexity"] == 2)
level3 = Rows("kvasir_vqa_x1", lambda row: row["complexity"] == 3)


def process_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Sufficient statistics of every text metric for one filtered response; every sample has the same keys."""
    return {metric: sample_value(metric, results, doc["target"], doc["cluster"]) for metric in LEXICAL}


def process_medico2025(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Sufficient statistics of the challenge's metrics for one filtered response."""
    return {metric: sample_value(metric, results, doc["target"], doc["cluster"]) for metric in MEDICO_METRICS}
