"""PMC-VQA (arXiv 2305.10415): multiple-choice questions that a language model wrote about figures
of PubMed Central.

Layout: ``test_clean.csv`` and ``images.zip`` of xmcmic/PMC-VQA on the hub (CC BY-SA): the 2,000
test rows that people verified. Options are written ``A:text``, with or without blanks. MedEvalKit,
and the papers that report with it, use ``test_2.csv`` instead, another set of figures. Whether
training and test figures come from the same papers is not stated.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path
from zipfile import ZipFile

from medtasks.api import (
    Benchmark,
    DataSource,
    Publication,
    RecordCounts,
    Release,
    Rows,
    distinct,
    text_field,
)

from medtasks_classics.shared import LETTERS, Choice, choice_question, drawings, row_id

NAME, OPTIONS = "pmc_vqa", LETTERS[:4]
COLUMNS = ("Figure_path", "Question", "Answer", *(f"Choice {letter}" for letter in OPTIONS), "Answer_label")


def read(release: Release) -> list[Choice]:
    """The verified test questions."""
    questions = []
    for line in release.rows("test_clean.csv"):
        row, where = line.row, line.where
        question, figure = text_field(row, "Question", where).strip(), text_field(row, "Figure_path", where).strip()
        texts = [re.sub(r"^\s*[A-D]\s*:", "", text_field(row, f"Choice {letter}", where)) for letter in OPTIONS]
        picture = release.picture(figure, "Figure_path", where)
        answer = text_field(row, "Answer_label", where).strip()
        questions.append(choice_question(where, row_id(figure, question), (picture,), question, texts, answer))
    return distinct(questions)


def mini(folder: Path) -> None:
    """Drawings in the layout of the hub."""
    with ZipFile(folder / "images.zip", "w") as archive, (folder / "test_clean.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for drawing in drawings():
            archive.writestr(f"images/PMC{drawing.number}_F1.jpg", drawing.png)
            texts = [f" {letter}:{text} " for letter, text in zip(OPTIONS, drawing.options(), strict=True)]
            table.writerow([f"PMC{drawing.number}_F1.jpg", drawing.open[0], drawing.shape, *texts, drawing.letter()])


rows = Rows(NAME, lambda row: True)

BENCHMARK = Benchmark(
    name=NAME,
    title="PMC-VQA",
    publication=Publication(
        paper="arXiv 2305.10415",
        source="xmcmic/PMC-VQA",
        licence="CC-BY-SA",
        figures=Path(__file__).parent / "published" / "pmc_vqa.csv",
    ),
    data=DataSource(
        prepare="medtasks prepare package pmc_vqa --source hub",
        record=Choice,
        read=read,
        hub=("xmcmic/PMC-VQA", "test_clean.csv", "images.zip"),
        mini=mini,
    ),
    cluster="figure",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns={},
    options=OPTIONS,
    counts=RecordCounts(
        published={"rows": 2000},
    ),
)
