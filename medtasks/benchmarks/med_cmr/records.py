"""Med-CMR: one release row, multiple-choice or open-ended, as a typed record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Literal

from medtasks.benchmarks.med_cmr.vocabulary import DIMENSIONS, dimension_of
from medtasks.data.records.base import Record, Where, build, is_text, text_field, wrong

__all__ = ["MedCmrRecord", "parse_med_cmr_row"]

OPTIONS = ("A", "B", "C", "D", "E")
_BEYOND = tuple("FGHIJ")
_OWN_LETTER = re.compile(r"\s*\(?(?P<letter>[A-E])[).:]\s+(?=\S)")


class MedCmrRecord(Record):
    """One row of Med-CMR (protocol card, "Rows"). ``cluster`` is the image.

    ``choices`` is empty for an open-ended row, whose ``answer`` is a text; ``prefixed`` counts the options that
    carried their own letter in the release. ``answer`` and ``visual_description`` are for scoring alone.
    """

    format: Literal["mcq", "open"]
    index: str
    dimension: str
    question: str
    choices: dict[str, str]
    answer: str
    visual_description: str
    task: str
    subtype: str
    question_type: str
    modality: str
    organ_system: str
    prefixed: int


def parse_med_cmr_row(row: Mapping[str, Any], kind: Literal["mcq", "open"], where: Where) -> MedCmrRecord:
    """The record that a release row holds; ``kind`` is that of the file it stands in.

    Raises:
        DataError: a field is missing, has the wrong type, or holds something the card does not know.
    """
    index = row.get("index")
    if isinstance(index, bool) or not (isinstance(index, int) or (is_text(index) and index.strip())):
        raise wrong(where, "index", index, "a number or a text")
    task = text_field(row, "task", where)
    dimension = dimension_of(task)
    if dimension is None:
        expected = f"one of the dimensions {', '.join(DIMENSIONS.values())}"
        raise wrong(where, "task", task, expected)
    image = _image_path(row, where)
    choices, prefixed = _choices(row, where) if kind == "mcq" else ({}, 0)
    answer = text_field(row, "answer", where)
    if kind == "mcq" and answer not in OPTIONS:
        raise wrong(where, "answer", answer, "one letter from A to E")
    return build(
        MedCmrRecord,
        where,
        sample_id=f"{kind}-{str(index).strip()}",
        cluster=image,
        media=(image,),
        format=kind,
        index=str(index).strip(),
        dimension=dimension,
        question=text_field(row, "question", where),
        choices=choices,
        answer=answer,
        visual_description=_optional(row, "visual_description", where),
        task=task,
        subtype=_optional(row, "subtype", where),
        question_type=_optional(row, "question type", where),
        modality=_optional(row, "modality", where),
        organ_system=_optional(row, "organ system", where),
        prefixed=prefixed,
    )


def _optional(row: Mapping[str, Any], field: str, where: Where) -> str:
    """The text of a descriptive field; empty where the release has none, refused where it is no text."""
    value = row.get(field)
    if value is None:
        return ""
    if not is_text(value):
        raise wrong(where, field, value, "a text")
    return value.strip()


def _image_path(row: Mapping[str, Any], where: Where) -> str:
    path = text_field(row, "image_path", where)
    parts = PurePosixPath(path).parts
    if "\\" in path or "\0" in path or path.startswith("/") or ".." in parts or len(parts) < 2:
        raise wrong(where, "image_path", path, "a relative path such as dataset/imgs/<name>.png")
    return str(PurePosixPath(path))


def _choices(row: Mapping[str, Any], where: Where) -> tuple[dict[str, str], int]:
    """Options by letter, without the letter that some carry themselves, and how many did."""
    for letter in _BEYOND:
        if letter in row:
            raise wrong(where, letter, row[letter], "no option beyond E")
    choices: dict[str, str] = {}
    prefixed = 0
    for letter in OPTIONS:
        text = text_field(row, letter, where).strip()
        own = _OWN_LETTER.match(text)
        if own is not None and own["letter"] == letter:
            text = text[own.end() :]
            prefixed += 1
        choices[letter] = text
    return choices, prefixed
