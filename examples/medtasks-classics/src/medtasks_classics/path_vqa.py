"""PathVQA (arXiv 2003.10286): questions about pathology pictures of two textbooks and the PEIR
library.

Layout: Parquet with the columns image, question and answer of flaviagiammarino/path-vqa on the hub,
whose card gives 6,719 test rows without repeated rows. Closed are the 3,362 questions whose answer
is yes or no. The card's licence is MIT for questions and answers; publishers and PEIR own the
pictures. Of 4,289 pictures 858 are in the test rows and in no others. LLaVA-Med evaluates the
earlier 6,761 rows, with 3,391 closed ones.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from medtasks.api import Benchmark, DataSource, Publication, RecordCounts, Release, Rows, distinct

from medtasks_classics.shared import Question, drawings, hub_questions

NAME, FILES = "path_vqa", "data/test-*.parquet"


def read(release: Release) -> list[Question]:
    """The test questions."""
    return distinct(hub_questions(release, FILES))


def mini(folder: Path) -> None:
    """Drawings in the layout of the hub."""
    rows = []
    for drawing in drawings():
        for question, answer in (drawing.closed, drawing.open):
            rows.append({"image": {"bytes": drawing.png, "path": None}, "question": question, "answer": answer})
    (folder / "data").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), folder / "data" / "test-00000-of-00001.parquet")


closed = Rows(NAME, lambda row: row["closed"])
open_ = Rows(NAME, lambda row: not row["closed"])

BENCHMARK = Benchmark(
    name=NAME,
    title="PathVQA",
    publication=Publication(
        paper="arXiv 2003.10286",
        source="flaviagiammarino/path-vqa",
        licence="MIT (pictures: their publishers)",
        figures=Path(__file__).parent / "published" / "path_vqa.csv",
    ),
    data=DataSource(
        prepare="medtasks prepare package path_vqa --source hub",
        record=Question,
        read=read,
        hub=("flaviagiammarino/path-vqa", FILES),
        mini=mini,
    ),
    cluster="image",
    visible_fields=frozenset({"question"}),
    breakdowns={},
    counts=RecordCounts(
        kinds=lambda record: ("closed" if record.closed else "open",),
        published={"rows": 6719, "closed": 3362, "open": 3357},
    ),
)
