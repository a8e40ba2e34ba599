"""ImageCLEFmed MEDVQA-GI 2026, subtask 1: the validation split of SimulaMet/Kvasir-VQA-test.

The organisers' sample script (``submission_samples/gi-2026/submission_task1.py`` of
SushantGautam/MedVQA) reads the columns ``img_id``, ``image``, ``question`` and ``answer`` of this
split, in its order. We have not seen the dataset; the number of its rows, the names of its files
and its licence are unknown to us.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from medtasks.api import (
    Benchmark,
    DataSource,
    Publication,
    Record,
    Release,
    Rows,
    build,
    distinct,
    text_field,
)
from PIL import Image

NAME = "medvqa_gi_2026"


class EndoscopyQuestion(Record):
    """A question about an endoscopic image, with its reference answer."""

    img_id: str
    question: str
    answer: str


def read(release: Release) -> list[EndoscopyQuestion]:
    """The rows of the split in their order; repeated rows get ids of their own."""
    return distinct(_questions(release))


def _questions(release: Release) -> Iterator[EndoscopyQuestion]:
    """The rows of the split as records."""
    for line in release.rows("validation*.parquet", "validation*.jsonl"):
        row, where = line.row, line.where
        img_id = text_field(row, "img_id", where)
        question = text_field(row, "question", where)
        answer = text_field(row, "answer", where)
        digest = hashlib.sha256(f"{question}\0{answer}".encode()).hexdigest()
        yield build(
            EndoscopyQuestion,
            where,
            sample_id=f"{img_id}-{digest[:8]}",
            cluster=img_id,
            media=(release.picture(row.get("image"), "image", where),),
            img_id=img_id,
            question=question,
            answer=answer,
        )


def mini(folder: Path) -> None:
    """Plain grey pictures in the layout of the split, two questions about each."""
    rows: list[dict[str, object]] = []
    for number in range(24):
        stream = io.BytesIO()
        Image.new("L", (32, 32), 10 * number).save(stream, "PNG")
        is_bright = number >= 12
        questions = {
            "Is the picture bright?": f"The picture is {'bright' if is_bright else 'not bright'}.",
            "Which shade does it have?": f"All of it is {'light' if is_bright else 'dark'} grey.",
        }
        for question, answer in questions.items():
            row = {"img_id": f"mini{number:02}", "question": question, "answer": answer}
            rows.append({**row, "image": {"bytes": stream.getvalue(), "path": None}})
    pq.write_table(pa.Table.from_pylist(rows), folder / "validation-00000-of-00001.parquet")


rows = Rows.where(NAME)

BENCHMARK = Benchmark(
    name=NAME,
    title="ImageCLEFmed MEDVQA-GI 2026, subtask 1",
    publication=Publication(
        paper="https://github.com/simula/ImageCLEFmed-MEDVQA-GI-2026",
        source="SimulaMet/Kvasir-VQA-test",
        licence="unknown: see the dataset's page",
    ),
    data=DataSource(
        prepare=f"medtasks prepare package {NAME} --source hub",
        record=EndoscopyQuestion,
        read=read,
        hub=("SimulaMet/Kvasir-VQA-test", "validation*.parquet", "*/validation*.parquet"),
        mini=mini,
    ),
    cluster="image",
    visible_fields=frozenset({"question"}),
    breakdowns={},
)
