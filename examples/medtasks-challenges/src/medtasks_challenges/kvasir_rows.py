"""The rows of Kvasir-VQA-x1 that the two subtasks of Medico 2026 ask about, in their order.

Subtask 1 shuffles the whole test split with seed 42 and takes the first 1,500 rows
(``submission_task1.py`` of SushantGautam/MedVQA). Subtask 2 keeps the rows of complexity 1 first,
and then does the same (README.md of simula/MediaEval-Medico-2026). Prepared data have the rows in
the order of their source, so the order is the organisers' if the source is the hub's test split.
"""

from __future__ import annotations

import json

from medtasks.api import Document, Rows

BENCHMARK = "kvasir_vqa_x1"
SEED = 42
SELECTED = 1500


def shuffled(documents: list[Document]) -> list[Document]:
    """The first 1,500 documents in the order of ``datasets.Dataset.shuffle(seed=42)``."""
    from datasets import Dataset

    numbers = Dataset.from_dict({"number": list(range(len(documents)))}).shuffle(seed=SEED)
    order = list(numbers["number"])[:SELECTED]
    return [documents[number] for number in order]


def shuffled_level1(documents: list[Document]) -> list[Document]:
    """The first 1,500 shuffled documents of complexity 1, with an ideal reply for baselines."""
    level1 = [document for document in documents if document["complexity"] == 1]
    explained = []
    for document in shuffled(level1):
        reply = {"answer": document["target"], "explanation": document["target"], "confidence": 1.0}
        explained.append({**document, "ideal_response": json.dumps(reply, ensure_ascii=False)})
    return explained


subtask1 = Rows(BENCHMARK, lambda document: True, change=shuffled)
subtask2 = Rows(BENCHMARK, lambda document: True, change=shuffled_level1)
