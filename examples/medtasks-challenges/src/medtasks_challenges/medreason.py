"""MedReason at MICCAI 2026: cases with pictures, multiple choice or open, in the public layout.

``cases.json`` is read as ``MedReason-Docker/docs/io_schema.md`` of
medreason26/MedReason-Challenge-Docker describes it: a list of cases, or an object with the list
``cases``. A ``ground_truth.json`` beside it, in the layout of ``MedReason-Evaluation/test``, adds
the correct answers. Cases without one are answered, but not scored as right or wrong.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from medtasks.api import (
    Benchmark,
    DataSource,
    Document,
    Publication,
    Record,
    Release,
    Rows,
    Where,
    build,
    text_field,
    wrong,
)
from PIL import Image

from medtasks_challenges.json_files import objects_in, read_json
from medtasks_challenges.medreason_metrics import UNKNOWN

NAME = "medreason_2026"
CASES = "cases.json"
GROUND_TRUTH = "ground_truth.json"
_TYPES = {
    **dict.fromkeys(("mcq", "closed", "closed_ended", "closed-ended"), "mcq"),
    **dict.fromkeys(("multiple_choice", "multiple-choice"), "mcq"),
    **dict.fromkeys(("open", "open_ended", "open-ended", "free_text", "free-text"), "open"),
}
"""The types of a case by the names that the public loader accepts."""


class MedReasonCase(Record):
    """One case; ``answer`` is the correct option or answer, or ``[unknown]``."""

    question: str
    task_type: str
    choices: dict[str, str]
    answer: str


def case_type(entry: Mapping[str, Any], where: Where) -> str:
    """``mcq`` or ``open``, from the field ``task_type`` in any of its public spellings."""
    stated = text_field(entry, "task_type", where)
    kind = _TYPES.get(stated.strip().lower())
    if kind is None:
        raise wrong(where, "task_type", stated, "mcq or open")
    return kind


def read(release: Release) -> Iterator[MedReasonCase]:
    """The cases of ``cases.json`` in their order.

    Raises:
        DataError: a case breaks the layout, or an id occurs twice; names file, case and field.
    """
    path = release.source
    if path.is_dir():
        path = path / CASES
    correct = correct_answers(path.with_name(GROUND_TRUTH))
    seen: set[str] = set()
    for number, entry in enumerate(objects_in(read_json(path), "cases", path), start=1):
        where = Where(path.name, number, unit="case")
        case_id = text_field(entry, "case_id", where).strip()
        if case_id in seen:
            raise wrong(where, "case_id", case_id, "an id that no other case has")
        seen.add(case_id)
        yield _case(release, entry, case_id, where, correct)


def _case(
    release: Release,
    entry: Mapping[str, Any],
    case_id: str,
    where: Where,
    correct: Mapping[str, str],
) -> MedReasonCase:
    """One case as a record; the first picture is its cluster."""
    kind = case_type(entry, where)
    choices = _choices(entry.get("options"), where) if kind == "mcq" else {}
    answer = correct.get(case_id, UNKNOWN)
    if choices and answer != UNKNOWN and answer not in choices:
        raise wrong(Where(GROUND_TRUTH, where.line, case_id, "case"), "answer", answer, "an option")
    pictures = [release.picture(path, "image_path", where) for path in _paths(entry, where)]
    return build(
        MedReasonCase,
        where,
        sample_id=case_id,
        cluster=pictures[0],
        media=tuple(pictures),
        question=text_field(entry, "question", where),
        task_type=kind,
        choices=choices,
        answer=answer,
    )


def _paths(entry: Mapping[str, Any], where: Where) -> list[object]:
    """The paths of a case's pictures, ``image_path`` before ``image_paths``."""
    paths: list[object] = []
    if entry.get("image_path"):
        paths.append(entry["image_path"])
    further = entry.get("image_paths") or []
    if not isinstance(further, list):
        raise wrong(where, "image_paths", further, "a list of paths")
    paths.extend(further)
    if not paths:
        raise wrong(where, "image_path", None, "the path of a picture")
    return paths


def _choices(options: object, where: Where) -> dict[str, str]:
    """Option texts by label; options without labels are called A, B, C and so on."""
    if not isinstance(options, list) or not options:
        raise wrong(where, "options", options, "a list of options")
    choices: dict[str, str] = {}
    for number, option in enumerate(options):
        fields = option
        if not isinstance(option, dict):
            fields = {"label": chr(ord("A") + number), "text": option}
        label = str(fields.get("label")).strip()
        is_letter = len(label) == 1 and "A" <= label <= "Z"
        if not is_letter or label in choices:
            raise wrong(where, "options", label, "labels that are different letters from A to Z")
        text = str(fields.get("text") or "").strip()
        if not text:
            raise wrong(where, "options", text, f"a text for option {label}")
        choices[label] = text
    return choices


def correct_answers(path: Path) -> dict[str, str]:
    """The correct answers by the ids of their cases; none without the file.

    Raises:
        DataError: the file breaks the layout, or a multiple-choice case has no answer.
    """
    if not path.exists():
        return {}
    correct: dict[str, str] = {}
    for number, entry in enumerate(objects_in(read_json(path), "cases", path), start=1):
        where = Where(path.name, number, unit="case")
        case_id = text_field(entry, "case_id", where).strip()
        if case_type(entry, where) == "mcq" or entry.get("answer"):
            correct[case_id] = text_field(entry, "answer", where).strip()
    return correct


def documents(record: MedReasonCase) -> list[Document]:
    """The case as a document; ``ideal_response`` is what a perfect baseline says."""
    answer = "Not known." if record.answer == UNKNOWN else record.answer
    reply = {"reasoning_trace": "What the picture shows.", "answer": answer}
    document: Document = {
        **record.model_dump(mode="json", exclude={"answer", "choices"}),
        "target": record.answer,
        "abstention": "This cannot be told from the image.",
        "ideal_response": json.dumps(reply),
    }
    if record.choices:
        document["choices"] = dict(record.choices)
    return [document]


def mini(folder: Path) -> None:
    """Plain grey pictures in the public layout: 24 multiple-choice cases and 24 open ones."""
    (folder / "images").mkdir()
    cases: list[dict[str, object]] = []
    truth: list[dict[str, object]] = []
    for number in range(24):
        name = f"images/mini{number:02}.png"
        Image.new("L", (32, 32), 10 * number).save(folder / name)
        texts = ("bright", "dark", "coloured")
        options = [
            {"label": label, "text": texts[(position + number) % 3]}
            for position, label in enumerate("ABC")
        ]
        shade = "bright" if number >= 12 else "dark"
        label = next(option["label"] for option in options if option["text"] == shade)
        choice_id, open_id = f"mcq{number:02}", f"open{number:02}"
        question = {"case_id": choice_id, "task_type": "mcq", "question": "How is the picture?"}
        cases.append({**question, "image_path": name, "options": options})
        truth.append({"case_id": choice_id, "task_type": "mcq", "answer": label})
        question = {"case_id": open_id, "task_type": "open", "question": "Describe the picture."}
        cases.append({**question, "image_paths": [name]})
        answer = f"The whole picture is {shade} grey."
        truth.append({"case_id": open_id, "task_type": "open", "answer": answer})
    (folder / CASES).write_text(json.dumps({"cases": cases}), encoding="utf-8")
    (folder / GROUND_TRUTH).write_text(json.dumps({"cases": truth}), encoding="utf-8")


all_rows = Rows.where(NAME)
mcq_rows = Rows.where(NAME, task_type="mcq")
open_rows = Rows.where(NAME, task_type="open")

BENCHMARK = Benchmark(
    name=NAME,
    title="MedReason, MICCAI 2026",
    publication=Publication(
        paper="https://medreason26.github.io/challenge.html",
        source="Synapse syn74403682",
        licence="CC BY-NC 4.0, unless a source says otherwise",
    ),
    data=DataSource(
        prepare=f"medtasks prepare package {NAME} --source DIR",
        record=MedReasonCase,
        read=read,
        documents=documents,
        mini=mini,
    ),
    cluster="image",
    visible_fields=frozenset({"question", "choices"}),
    breakdowns={},
)
