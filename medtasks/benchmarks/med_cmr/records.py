"""Med-CMR: one release row, multiple-choice or open-ended, as a typed record."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from medtasks.answers.vocabulary import Vocabulary
from medtasks.catalog.records import Record, ReleaseRow, Where, build, is_path_below, is_text, parse_row, plain
from medtasks.core.schema import Text, expects
from medtasks.data.sources import read_table

_DIMENSIONS = read_table(__file__, "vocabulary.yaml", dict[str, Any])["dimensions"]
DIMENSIONS: Mapping[str, str] = {abbreviation: names[0] for abbreviation, names in _DIMENSIONS.items()}
"""Abbreviation and release spelling of the seven dimensions, in the paper's order."""

_DIMENSION_OF = {
    plain(name): abbreviation for abbreviation, names in _DIMENSIONS.items() for name in (abbreviation, *names)
}

OPTIONS = ("A", "B", "C", "D", "E")
_EPITHET = rf"\.\s+(?i:{Vocabulary('letters').part('species')})\b"
_OWN_LETTER = re.compile(rf"\s*\(?(?P<letter>[A-E])(?!{_EPITHET})[).:]\s+(?=\S)")


def dimension_of(task: str) -> str | None:
    """The dimension that a ``task`` value names, None where it names none; case and signs do not matter.

    >>> dimension_of("Small Object detection"), dimension_of("LTG"), dimension_of("counting")
    ('sod', 'ltg', None)
    """
    return _DIMENSION_OF.get(plain(task))


class MedCmrRecord(Record):
    """One row of Med-CMR. ``cluster`` is the image.

    ``choices`` is empty for an open-ended row, whose ``answer`` is a text; ``prefixed`` counts the options that
    carried their own letter in the release. ``answer`` and ``visual_description`` are for scoring only.
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


def _is_index(value: Any) -> bool:
    return type(value) is int or (is_text(value) and bool(value.strip()))


def _is_dimension(value: Any) -> bool:
    return is_text(value) and dimension_of(value) is not None


def _is_image_path(value: Any) -> bool:
    return is_path_below(value) and len(PurePosixPath(value).parts) >= 2


Stripped = Annotated[str, StringConstraints(strip_whitespace=True)]


class _Row(ReleaseRow):
    index: Annotated[int | str, expects("a number or a string", _is_index)]
    task: Annotated[str, expects(f"one of the dimensions {', '.join(DIMENSIONS.values())}", _is_dimension)]
    image_path: Annotated[str, expects("a relative path such as dataset/imgs/<name>.png", _is_image_path)]
    answer: Text
    question: Text
    visual_description: Stripped = ""
    subtype: Stripped = ""
    question_type: Stripped = Field("", validation_alias="question type")
    modality: Stripped = ""
    organ_system: Stripped = Field("", validation_alias="organ system")


_AS_RELEASED = set(_Row.model_fields) - {"index", "image_path"}


class _McqRow(_Row):
    answer: Annotated[str, expects("one letter from A to E", lambda value: value in OPTIONS)]
    A: Text
    B: Text
    C: Text
    D: Text
    E: Text
    F: None = None
    G: None = None
    H: None = None
    I: None = None  # noqa: E741
    J: None = None


def parse_med_cmr_row(row: Mapping[str, Any], kind: Literal["mcq", "open"], where: Where) -> MedCmrRecord:
    """The record of a release row; ``kind`` is that of its file; raises :class:`DataError`."""
    given = parse_row(_McqRow if kind == "mcq" else _Row, row, where)
    index, image = str(given.index).strip(), str(PurePosixPath(given.image_path))
    choices, prefixed = _choices(given) if isinstance(given, _McqRow) else ({}, 0)
    return build(
        MedCmrRecord,
        where,
        sample_id=f"{kind}-{index}",
        cluster=image,
        media=(image,),
        format=kind,
        index=index,
        dimension=dimension_of(given.task),
        choices=choices,
        prefixed=prefixed,
        **given.model_dump(include=_AS_RELEASED),
    )


def _choices(row: _McqRow) -> tuple[dict[str, str], int]:
    """Options by letter, without the letter that some carry themselves, and how many did."""
    choices: dict[str, str] = {}
    prefixed = 0
    for letter in OPTIONS:
        text = str(getattr(row, letter)).strip()
        own = _OWN_LETTER.match(text)
        if own is not None and own["letter"] == letter:
            text = text[own.end() :]
            prefixed += 1
        choices[letter] = text
    return choices, prefixed
