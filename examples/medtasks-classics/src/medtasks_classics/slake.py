"""SLAKE (arXiv 2102.09542): bilingual questions about radiological images, with knowledge of organs
and diseases.

Layout: ``test.json`` and ``imgs.zip`` of BoKelvin/SLAKE on the hub (CC BY 4.0): 2,094 test rows,
1,061 of them English (416 closed and 645 open by ``answer_type``) and 1,033 Chinese. Pictures are
named like ``xmlab102/source.jpg``. The 642 pictures are split 450, 96 and 96, so that none is in
training and test. lmms-eval has tasks ``slake_en`` and ``slake_zh``; these are therefore called
``slake_vqa_en`` and ``slake_vqa_zh``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
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
)

from medtasks_classics.shared import Question, drawings, short_question

SHAPES = {"circle": "圆形", "square": "方形", "triangle": "三角形", "bar": "长条"}


def reader(language: str) -> Callable[[Release], list[Question]]:
    """Reads the test questions in one language."""

    def read(release: Release) -> list[Question]:
        questions = []
        for line in release.rows("test.json"):
            row, where = line.row, line.where
            if text_field(row, "q_lang", where, ("en", "zh")) == language:
                kind = text_field(row, "answer_type", where, ("OPEN", "CLOSED"))
                question = short_question(
                    where,
                    f"qid{row.get('qid')}",
                    release.picture(row.get("img_name"), "img_name", where),
                    text_field(row, "question", where),
                    text_field(row, "answer", where),
                    kind == "CLOSED",
                    organ=text_field(row, "location", where),
                    modality=text_field(row, "modality", where),
                    question_type=text_field(row, "content_type", where),
                )
                questions.append(question)
        return distinct(questions)

    return read


def mini(folder: Path) -> None:
    """Drawings in the layout of the hub, with questions in both languages."""
    rows: list[dict[str, object]] = []
    with ZipFile(folder / "imgs.zip", "w") as archive:
        for drawing in drawings():
            name = f"xmlab{drawing.number}/source.jpg"
            archive.writestr(f"imgs/{name}", drawing.png)
            chinese = (
                f"图中是{SHAPES[drawing.closed[0].split()[2]]}吗？",
                "是" if drawing.closed[1] == "yes" else "不是",
            )
            for language, kind, (question, answer) in (
                ("en", "CLOSED", drawing.closed),
                ("en", "OPEN", drawing.open),
                ("zh", "CLOSED", chinese),
                ("zh", "OPEN", ("图中是什么形状？", SHAPES[drawing.shape])),
            ):
                text = {"qid": len(rows), "img_name": name, "q_lang": language, "question": question, "answer": answer}
                place = {
                    "location": ("Lung", "Brain")[drawing.number % 2],
                    "modality": ("CT", "MRI")[drawing.number // 2 % 2],
                }
                rows.append({**text, **place, "answer_type": kind, "content_type": "Shape"})
    (folder / "test.json").write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def benchmark(language: str, **published: int) -> Benchmark:
    """The questions in one language."""
    return Benchmark(
        name=f"slake_vqa_{language}",
        title=f"SLAKE ({language})",
        publication=Publication(
            paper="arXiv 2102.09542",
            source="BoKelvin/SLAKE",
            licence="CC-BY-4.0",
            language=language,
            figures=Path(__file__).parent / "published" / "slake_vqa_en.csv" if language == "en" else None,
        ),
        data=DataSource(
            prepare=f"medtasks prepare package slake_vqa_{language} --source hub",
            record=Question,
            read=reader(language),
            hub=("BoKelvin/SLAKE", "test.json", "imgs.zip"),
            mini=mini,
        ),
        cluster="image",
        visible_fields=frozenset({"question"}),
        breakdowns=by_fields("organ", "modality", "question_type"),
        counts=RecordCounts(
            kinds=lambda record: ("closed" if record.closed else "open",),
            published=published,
        ),
    )


EN, ZH = benchmark("en", rows=1061, closed=416, open=645), benchmark("zh", rows=1033)
en_closed, zh_closed = (Rows(language.name, lambda row: row["closed"]) for language in (EN, ZH))
en_open, zh_open = (Rows(language.name, lambda row: not row["closed"]) for language in (EN, ZH))
