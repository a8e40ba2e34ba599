"""MedXpertQA MM (arXiv 2501.18362): questions of medical board examinations with pictures and five
options.

Layout: ``MM/test.jsonl`` and ``images.zip`` of TsinghuaC3I/MedXpertQA on the hub (MIT): 2,000 test
questions, 1,446 of reasoning and 554 of understanding; the five of the development set are not
read. ``question`` repeats the options after ``Answer Choices:``, which the prompt lists itself. The
paper's prompt asks for reasoning step by step; ours does not. There is no training set.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from medtasks.api import (
    Benchmark,
    DataSource,
    Publication,
    RecordCounts,
    Release,
    Rows,
    by_fields,
    text_field,
    texts_by_key,
    wrong,
)

from medtasks_classics.shared import LETTERS, SHAPES, Choice, choice_question, drawings

NAME, OPTIONS = "medxpertqa_mm", LETTERS[:5]
KINDS = ("Reasoning", "Understanding")


def read(release: Release) -> Iterator[Choice]:
    """The test questions."""
    for line in release.rows("MM/test.jsonl"):
        row, where = line.row, line.where
        names = row.get("images")
        if not isinstance(names, list) or not names:
            raise wrong(where, "images", names, "a list of file names")
        yield choice_question(
            where,
            text_field(row, "id", where),
            tuple(release.picture(name, "images", where) for name in names),
            text_field(row, "question", where).partition("\nAnswer Choices:")[0],
            list(texts_by_key(row, "options", OPTIONS, where).values()),
            text_field(row, "label", where, OPTIONS),
            task=text_field(row, "medical_task", where),
            body_system=text_field(row, "body_system", where),
            question_type=text_field(row, "question_type", where, KINDS),
        )


def mini(folder: Path) -> None:
    """Drawings in the layout of the hub; every fourth question has two pictures."""
    rows = []
    with ZipFile(folder / "images.zip", "w") as archive:
        for drawing in drawings(30, SHAPES):
            names = [f"MM-{drawing.number}-{part}.jpeg" for part in ("ab" if drawing.number % 4 == 0 else "a")]
            for name in names:
                archive.writestr(f"images/{name}", drawing.png)
            choices = dict(zip(OPTIONS, drawing.options(5), strict=True))
            options_text = " ".join(f"({letter}) {text}" for letter, text in choices.items())
            kind = {"question_type": KINDS[drawing.number % 2], "medical_task": "Diagnosis", "body_system": "Nervous"}
            asked = {
                "question": f"{drawing.open[0]}\nAnswer Choices: {options_text}",
                "options": choices,
                "label": drawing.letter(5),
            }
            rows.append(json.dumps({"id": f"MM-{drawing.number}", "images": names, **asked, **kind}))
    (folder / "MM").mkdir()
    (folder / "MM" / "test.jsonl").write_text("\n".join(rows))


rows = Rows(NAME, lambda row: True)

BENCHMARK = Benchmark(
    name=NAME,
    title="MedXpertQA MM",
    publication=Publication(
        paper="arXiv 2501.18362",
        source="TsinghuaC3I/MedXpertQA",
        licence="MIT",
        figures=Path(__file__).parent / "published" / "medxpertqa_mm.csv",
    ),
    data=DataSource(
        prepare="medtasks prepare package medxpertqa_mm --source hub",
        record=Choice,
        read=read,
        hub=("TsinghuaC3I/MedXpertQA", "MM/test.jsonl", "images.zip"),
        mini=mini,
    ),
    cluster="image",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns=by_fields("question_type", "task", "body_system"),
    options=OPTIONS,
    counts=RecordCounts(
        kinds=lambda record: (record.question_type,),
        published={"rows": 2000, "Reasoning": 1446, "Understanding": 554},
    ),
)
