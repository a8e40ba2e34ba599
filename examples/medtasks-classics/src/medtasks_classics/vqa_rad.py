"""VQA-RAD (Lau et al. 2018, doi 10.1038/sdata.2018.251): questions of clinicians about radiological
images.

Two layouts are read. ``VQA_RAD Dataset Public.json`` with its image folder, from osf.io/89kps, has
organ, question type and answer type; its test rows are those whose ``phrase_type`` starts with
``test`` (300 free-form, 151 paraphrased). The card of flaviagiammarino/vqa-rad on the hub counts
the same 451 test rows, without these fields. Both are CC0.

Closed are the 251 questions whose answer is yes or no, as MedEvalKit counts (its issue 21), because
the hub has no answer type. LLaVA-Med's 272 closed and 179 open questions are the groups of
``answer_type`` in the OSF layout. The pictures overlap: 203 are in the test rows and 313 in the
training rows, of 314 in all (the hub's card).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from medtasks.api import (
    Benchmark,
    DataSource,
    Publication,
    RecordCounts,
    Release,
    Rows,
    SampleView,
    UsageError,
    by_fields,
    distinct,
    text_field,
)

from medtasks_classics.shared import Question, drawings, hub_questions, short_question

NAME, JSON = "vqa_rad", "VQA_RAD Dataset Public.json"


def read(release: Release) -> list[Question]:
    """The test questions in either layout."""
    try:
        return distinct(_questions(release))
    except UsageError:
        return distinct(hub_questions(release, "data/test-*.parquet"))


def _questions(release: Release) -> Iterator[Question]:
    for line in release.rows(JSON):
        row, where = line.row, line.where
        if not text_field(row, "phrase_type", where).startswith("test"):
            continue
        yield short_question(
            where,
            f"qid{row.get('qid')}",
            release.picture(row.get("image_name"), "image_name", where),
            text_field(row, "question", where),
            str(row.get("answer") or text_field(row, "answer", where)),
            organ=text_field(row, "image_organ", where).strip(),
            question_type=text_field(row, "question_type", where).strip(),
            answer_type=text_field(row, "answer_type", where).strip(),
        )


def mini(folder: Path) -> None:
    """Drawings in the OSF layout, with a training row that is not read."""
    rows = []
    for drawing in drawings():
        (folder / f"synpic{drawing.number}.png").write_bytes(drawing.png)
        asked = ("CLOSED", *drawing.closed), ("OPEN", *drawing.open), ("OPEN", "Unread", "row")
        for number, (kind, question, answer) in enumerate(asked):
            types = {"answer_type": kind, "question_type": ("PRES", "ABN, PRES")[drawing.number % 2]}
            place = {
                "image_name": f"synpic{drawing.number}.png",
                "image_organ": ("HEAD", "CHEST", "ABD")[drawing.number % 3],
            }
            phrase = "freeform" if question == "Unread" else "test_freeform"
            text = {"question": question, "answer": answer, "phrase_type": phrase}
            rows.append({"qid": 3 * drawing.number + number, **text, **types, **place})
    (folder / JSON).write_text(json.dumps(rows))


def question_types(view: SampleView) -> tuple[str, ...]:
    """The types of a question, which the release joins by commas."""
    return tuple(view.document["question_type"].split(", ")) if view.document["question_type"] else ()


closed = Rows(NAME, lambda row: row["closed"])
open_ = Rows(NAME, lambda row: not row["closed"])

BENCHMARK = Benchmark(
    name=NAME,
    title="VQA-RAD",
    publication=Publication(
        paper="doi 10.1038/sdata.2018.251",
        source="osf.io/89kps, or flaviagiammarino/vqa-rad",
        licence="CC0-1.0",
        figures=Path(__file__).parent / "published" / "vqa_rad.csv",
    ),
    data=DataSource(
        prepare="medtasks prepare package vqa_rad --source hub",
        record=Question,
        read=read,
        hub=("flaviagiammarino/vqa-rad", "data/test-*.parquet"),
        mini=mini,
    ),
    cluster="image",
    visible_fields=frozenset({"question"}),
    breakdowns={**by_fields("organ", "answer_type"), "question_type": question_types},
    counts=RecordCounts(
        kinds=lambda record: ("closed" if record.closed else "open",),
        published={"rows": 451, "closed": 251, "open": 200},
    ),
)
