"""MMMU, Health & Medicine (arXiv 2311.16502): college questions of five subjects, about up to seven
pictures.

Layout: ``<subject>/validation-*.parquet`` of MMMU/MMMU on the hub (Apache-2.0), 30 questions a
subject, whose options are a list in Python's notation; texts refer to pictures as ``<image 1>``.
The answers of the 1,752 test questions are withheld, so that papers' figures on the test set cannot
be compared. Open questions are left out and counted. The prompt is the official one. The five
development questions of each subject are not read, and there is no training set.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from medtasks.api import (
    Benchmark,
    DataSource,
    Publication,
    RecordCounts,
    Release,
    Rows,
    by_fields,
    text_field,
    wrong,
)

from medtasks_classics.shared import LETTERS, Choice, choice_question, drawings

NAME = "mmmu_medical"
SUBJECTS = (
    "Basic_Medical_Science",
    "Clinical_Medicine",
    "Diagnostics_and_Laboratory_Medicine",
    "Pharmacy",
    "Public_Health",
)


def read(release: Release) -> Iterator[Choice]:
    """The validation questions of the five subjects."""
    for subject in SUBJECTS:
        for line in release.rows(f"{subject}/validation-*.parquet"):
            row, where = line.row, line.where
            cells = [(f"image_{number}", row.get(f"image_{number}")) for number in range(1, 8)]
            try:
                texts = [str(text) for text in ast.literal_eval(text_field(row, "options", where))]
            except (SyntaxError, ValueError) as error:
                raise wrong(where, "options", row.get("options"), "a list in Python's notation") from error
            yield choice_question(
                where,
                text_field(row, "id", where),
                tuple(release.picture(cell, name, where) for name, cell in cells if cell is not None),
                text_field(row, "question", where),
                texts,
                text_field(row, "answer", where),
                subject=subject.replace("_", " "),
                difficulty=text_field(row, "topic_difficulty", where),
            )


def mini(folder: Path) -> None:
    """Drawings in the layout of the hub."""
    everything = list(drawings(30))
    for at, subject in enumerate(SUBJECTS):
        rows = []
        for drawing in everything[6 * at : 6 * at + 6]:
            pictures = {"image_1": {"bytes": drawing.png, "path": None}, "image_2": None}
            asked = {
                "question": f"<image 1> {drawing.open[0]}",
                "options": repr(drawing.options()),
                "answer": drawing.letter(),
            }
            rows.append(
                {"id": f"validation_{subject}_{drawing.number}", **asked, **pictures, "topic_difficulty": "Easy"}
            )
        (folder / subject).mkdir()
        pq.write_table(pa.Table.from_pylist(rows), folder / subject / "validation-00000-of-00001.parquet")


rows = Rows(NAME, lambda row: True, unusable=lambda row: "" if any(row["choices"].values()) else "open question")

BENCHMARK = Benchmark(
    name=NAME,
    title="MMMU, Health & Medicine (validation)",
    publication=Publication(
        paper="arXiv 2311.16502",
        source="MMMU/MMMU",
        licence="Apache-2.0",
        figures=Path(__file__).parent / "published" / "mmmu_medical.csv",
    ),
    data=DataSource(
        prepare="medtasks prepare package mmmu_medical --source hub",
        record=Choice,
        read=read,
        hub=("MMMU/MMMU", *(f"{subject}/validation-*.parquet" for subject in SUBJECTS)),
        mini=mini,
    ),
    cluster="image",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns=by_fields("subject", "difficulty"),
    options=LETTERS,
    counts=RecordCounts(
        kinds=lambda record: (record.subject,),
        published={"rows": 150, **{subject.replace("_", " "): 30 for subject in SUBJECTS}},
    ),
)
