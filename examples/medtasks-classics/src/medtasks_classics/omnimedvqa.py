"""OmniMedVQA (arXiv 2402.09181): classification datasets of 12 modalities as multiple-choice
questions.

Layout: ``QA_information/Open-access/<dataset>.json`` and ``Images/`` in OmniMedVQA.zip of
foreverbeliever/OmniMedVQA on the hub; the part with restricted access is not read. 88,996 questions
about 82,059 pictures of 42 datasets, with two to four options; one row of Chest CT Scan has
``modality`` for ``modality_type`` (counts and the odd row: the data report of
github.com/GiovanniCornejo/MediVision-OmniMedVQA, whose counts of question types add up to the
total). Each dataset has a licence of its own. The pictures are those of public datasets, also their
training parts: models may have seen them with their labels.
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
    distinct,
    text_field,
    wrong,
)

from medtasks_classics.shared import LETTERS, Choice, choice_question, drawings

NAME, OPTIONS = "omnimedvqa", LETTERS[:4]


def read(release: Release) -> list[Choice]:
    """The questions of the open-access part."""
    return distinct(_questions(release))


def _questions(release: Release) -> Iterator[Choice]:
    for line in release.rows("QA_information/Open-access/*.json"):
        row, where = line.row, line.where
        texts = [str(row[key]).strip() for key in (f"option_{letter}" for letter in OPTIONS) if row.get(key)]
        gold = text_field(row, "gt_answer", where).strip()
        if gold not in texts:
            raise wrong(where, "gt_answer", gold, f"one of the options ({'; '.join(texts)})")
        modality = text_field(row, "modality_type" if "modality_type" in row else "modality", where)
        yield choice_question(
            where,
            text_field(row, "question_id", where),
            (release.picture(row.get("image_path"), "image_path", where),),
            text_field(row, "question", where),
            texts,
            LETTERS[texts.index(gold)],
            modality=modality,
            question_type=text_field(row, "question_type", where),
        )


def mini(folder: Path) -> None:
    """Drawings in the layout of the archive; every third question has two options."""
    rows = []
    with ZipFile(folder / "OmniMedVQA.zip", "w") as archive:
        for drawing in drawings():
            path = f"Images/Shapes/{drawing.number}.png"
            archive.writestr(f"OmniMedVQA/{path}", drawing.png)
            texts = {
                f"option_{OPTIONS[at]}": text for at, text in enumerate(drawing.options(4 if drawing.number % 3 else 2))
            }
            kind = {"modality_type": ("CT", "MR")[drawing.number % 2], "question_type": "Anatomy Identification"}
            asked = {
                "question_id": f"Shapes_{drawing.number:04}",
                "question": drawing.open[0],
                "gt_answer": drawing.shape,
            }
            rows.append({"dataset": "Shapes", "image_path": path, **asked, **texts, **kind})
        archive.writestr("OmniMedVQA/QA_information/Open-access/Shapes.json", json.dumps(rows))


rows = Rows(NAME, lambda row: True)

BENCHMARK = Benchmark(
    name=NAME,
    title="OmniMedVQA (open access)",
    publication=Publication(
        paper="arXiv 2402.09181",
        source="foreverbeliever/OmniMedVQA",
        licence="of each source dataset",
        figures=Path(__file__).parent / "published" / "omnimedvqa.csv",
    ),
    data=DataSource(
        prepare="medtasks prepare package omnimedvqa --source hub",
        record=Choice,
        read=read,
        hub=("foreverbeliever/OmniMedVQA", "OmniMedVQA.zip"),
        mini=mini,
    ),
    cluster="image",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns=by_fields("modality", "question_type"),
    options=OPTIONS,
    counts=RecordCounts(
        kinds=lambda record: (record.question_type,),
        published={
            "rows": 88996,
            "Disease Diagnosis": 55387,
            "Anatomy Identification": 16448,
            "Modality Recognition": 11565,
            "Other Biological Attributes": 3498,
            "Lesion Grading": 2098,
        },
    ),
)
