"""Kvasir-VQA-x1's records as documents, the rows of each task, and text overlap with the reference (section 4)."""

from __future__ import annotations

import hashlib

import numpy as np

from medtasks.benchmarks.aggregations import scored_by
from medtasks.benchmarks.documents import Rows
from medtasks.benchmarks.kvasir_vqa_x1.records import KvasirRecord
from medtasks.benchmarks.kvasir_vqa_x1.transformed import original_name
from medtasks.catalog.benchmark import ABSTENTION, Document
from medtasks.core.errors import DataError
from medtasks.data.store import open_prepared
from medtasks.metrics.registry import LEXICAL


def documents(record: KvasirRecord) -> list[Document]:
    """The record as a harness document; its reference answer is the target."""
    return [{**record.model_dump(mode="json"), "target": record.answer, "abstention": ABSTENTION}]


def level_rows(benchmark: str, level: int) -> Rows:
    """The rows of one complexity level, of the original pictures or of the transformed ones."""
    return Rows(benchmark, lambda row: row["complexity"] == level)


ORIGINALS = 0.23
"""The share of questions about the original picture in the mixed track (paper, section 2.3)."""


def mixed(documents: list[Document]) -> list[Document]:
    """Documents of the transformed track, of which about 23 % show the original picture.

    The draw depends only on the question's id, so it is the same for any part of the rows.
    """
    shown = []
    for document in documents:
        digest = hashlib.sha256(f"mixed|{document['sample_id']}".encode()).digest()
        original = int.from_bytes(digest[:8], "big") < ORIGINALS * 2**64
        shown.append({**document, "media": [original_name(document["img_id"])]} if original else document)
    return shown


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

process_results = scored_by(*LEXICAL)
process_medico2025 = scored_by("bleu", "rouge1", "rouge2", "rougeL", "meteor")
BREAKDOWNS = {
    "complexity": lambda view: (f"level{view.document['complexity']}",),
    # a class named twice in one row is one aspect
    "question_class": lambda view: tuple(sorted(set(view.document["question_class"]))),
}
