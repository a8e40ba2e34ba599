"""Med-CMR: release rows as typed records, and the published archive as prepared data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

import typer
from pydantic import Field, StringConstraints, create_model
from typing_extensions import Unpack

from medtasks.answers.vocabulary import Vocabulary
from medtasks.catalog.benchmark import HubFiles
from medtasks.catalog.records import (
    Record,
    ReleaseRow,
    Where,
    build,
    distinct,
    is_path_below,
    is_text,
    letters_and_digits,
    parse_row,
    tallies,
)
from medtasks.core.errors import DataError
from medtasks.core.schema import Text, expects, shown, text_that
from medtasks.core.text import first_names
from medtasks.data.archives import check_published
from medtasks.data.hub import located
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import Out, PictureOptions
from medtasks.data.prepared import Prepared
from medtasks.data.release import Release
from medtasks.data.sources import read_table

HUB = "aaassddaadf/Med-CMR"
REVISION = "a9b2d6e610c6c5dcf4f3e5aa89c7ec9fd7a05b73"
ARCHIVE = HubFiles(HUB, ("dataset.zip",), REVISION)
PUBLISHED_ARCHIVE = (
    6_895_143_178,
    "8495f3b6b2901a095918ab27c600e42da7287a87f6aea490912ba60d27de3775",
)
"""Size in bytes and SHA-256."""

Kind = Literal["mcq", "open"]

FILES: dict[Kind, str] = {
    "mcq": "dataset/cmed.copy.mcq_cate.cleaned.json",
    "open": "dataset/cmed.copy.open_taged.cleaned.json",
}
"""Row file of each format."""

_DIMENSIONS = read_table(__file__, "vocabulary.yaml", dict[str, Any])["dimensions"]
DIMENSIONS: Mapping[str, str] = {
    abbreviation: names[0] for abbreviation, names in _DIMENSIONS.items()
}
"""Abbreviation and release spelling, in the paper's order."""

_DIMENSION_OF: dict[str, str] = {}
"""The abbreviation of each spelling."""

for _abbreviation, _names in _DIMENSIONS.items():
    for _name in (_abbreviation, *_names):
        _DIMENSION_OF[letters_and_digits(_name)] = _abbreviation

OPTIONS = ("A", "B", "C", "D", "E")
_EPITHET = rf"\.\s+(?i:{Vocabulary('letters').part('species')})\b"
_OWN_LETTER = re.compile(rf"\s*\(?(?P<letter>[A-E])(?!{_EPITHET})[).:]\s+(?=\S)")


def dimension_of(task: str) -> str | None:
    """The dimension that a ``task`` value names, if any.

    >>> dimension_of("Small Object detection"), dimension_of("LTG"), dimension_of("counting")
    ('sod', 'ltg', None)
    """
    return _DIMENSION_OF.get(letters_and_digits(task))


class MedCmrRecord(Record):
    """One row of Med-CMR, multiple-choice or open-ended.

    ``prefixed`` counts the options that carried their own letter in the release.
    """

    format: Kind
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


Stripped = Annotated[str, StringConstraints(strip_whitespace=True)]


class _MedCmrRow(ReleaseRow):
    index: Annotated[
        int | str,
        expects(
            "a number or a string",
            lambda value: type(value) is int or (is_text(value) and bool(value.strip())),
        ),
    ]
    task: Annotated[
        str, text_that(f"one of the dimensions {', '.join(DIMENSIONS.values())}", dimension_of)
    ]
    image_path: Annotated[
        str,
        text_that(
            "a relative path such as dataset/imgs/<name>.png",
            lambda value: is_path_below(value) and len(PurePosixPath(value).parts) >= 2,
        ),
    ]
    answer: Text
    question: Text
    visual_description: Stripped = ""
    subtype: Stripped = ""
    question_type: Stripped = Field("", validation_alias="question type")
    modality: Stripped = ""
    organ_system: Stripped = Field("", validation_alias="organ system")


_MCQ_FIELDS: dict[str, Any] = {
    "answer": Annotated[str, expects("one letter from A to E", lambda value: value in OPTIONS)],
    **dict.fromkeys(OPTIONS, Text),
    **dict.fromkeys("FGHIJ", (None, None)),
}
_MedCmrMcqRow = create_model("_MedCmrMcqRow", __base__=_MedCmrRow, **_MCQ_FIELDS)
_OPTION_FIELDS = _MedCmrMcqRow.model_fields.keys() - _MedCmrRow.model_fields.keys()


def parse_med_cmr_row(row: Mapping[str, Any], kind: Kind, where: Where) -> MedCmrRecord:
    """The record of a release row; ``kind`` is that of its file; raises :class:`DataError`."""
    parsed = parse_row(_MedCmrMcqRow if kind == "mcq" else _MedCmrRow, row, where)
    index = str(parsed.index).strip()
    image = str(PurePosixPath(parsed.image_path))
    choices: dict[str, str] = {}
    prefixed = 0
    if kind == "mcq":
        texts = {letter: str(getattr(parsed, letter)).strip() for letter in OPTIONS}
        choices = {letter: _without_letter(text, letter) for letter, text in texts.items()}
        prefixed = sum(choices[letter] != text for letter, text in texts.items())
    return build(
        MedCmrRecord,
        where,
        sample_id=f"{kind}-{index}",
        cluster=image,
        media=(image,),
        format=kind,
        index=index,
        dimension=dimension_of(parsed.task),
        choices=choices,
        prefixed=prefixed,
        **parsed.model_dump(exclude={"index", "image_path", *_OPTION_FIELDS}),
    )


def _without_letter(text: str, letter: str) -> str:
    """An option's text without its own letter, such as *A.*, if it begins with it."""
    prefix = _OWN_LETTER.match(text)
    if prefix is not None and prefix["letter"] == letter:
        return text[prefix.end() :]
    return text


def prepare_med_cmr(
    source: Annotated[
        str,
        typer.Option(
            "--source",
            help="hub, the downloaded dataset.zip, or the directory that contains dataset/.",
        ),
    ],
    out: Out = None,
    *,
    allow_other_archive: Annotated[
        bool,
        typer.Option(
            "--allow-other-archive", help="Accept an archive that is not the published one."
        ),
    ] = False,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare Med-CMR from ``hub``, the published ``dataset.zip``, or the directory it was unpacked
    into.

    Raises:
        UsageError: there is no such source.
        DataError: the archive is not the published one (and another was not allowed), or has names
            outside its directory; a row breaks the format; ``task`` values name no dimension (all
            of them are listed).
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    path, origin = located(source, HUB, *ARCHIVE.patterns, revision=REVISION, file="archive")
    if origin.kind == "hub":
        path /= "dataset.zip"
    with Preparation("med_cmr", out, **options) as place:
        if not path.is_dir():
            digest = check_published(
                path, *PUBLISHED_ARCHIVE, allow_other=allow_other_archive, progress=place.progress
            )
            origin = origin.model_copy(update={"sha256": digest})
        keep = None if place.references_only else place.directory / "media"
        release = Release(path, keep=keep)
        records = distinct(_read_records(release))
        details = _details(records)
        release.unpack(place.progress)
        return place.finish(origin, records, release.media_root, details=details)


def _read_records(release: Release) -> list[MedCmrRecord]:
    """The records of both row files.

    Raises:
        DataError: a row breaks the format, or ``task`` values name no dimension: all of these at
            once, for whoever has to extend the table.
    """
    unknown_tasks: dict[str, Where] = {}
    records: list[MedCmrRecord] = []
    for kind, name in FILES.items():
        for item in release.rows(name):
            task = item.row.get("task")
            if isinstance(task, str) and task.strip() and dimension_of(task) is None:
                unknown_tasks.setdefault(shown(task), item.where)
                continue
            record = parse_med_cmr_row(item.row, kind, item.where)
            records.append(record)
            release.picture(record.media[0], "image_path", item.where)
    if unknown_tasks:
        first = first_names((f"{task} ({where})" for task, where in unknown_tasks.items()), 10)
        raise DataError(
            f"field `task`: {len(unknown_tasks)} values name no dimension: {first}; expected one "
            f"of {', '.join(DIMENSIONS.values())}; fix the rows."
        )
    return records


def _details(records: Sequence[MedCmrRecord]) -> dict[str, dict[str, int]]:
    """Counts for the manifest: records by topic, and what is odd about them."""
    oddities = {
        "rows whose options carry their own letter": sum(record.prefixed > 0 for record in records),
        "rows that share their index with an earlier one": sum(
            "#" in record.sample_id for record in records
        ),
        "rows without visual_description": sum(not record.visual_description for record in records),
        "rows with equal options": sum(
            len(set(record.choices.values())) < len(record.choices) for record in records
        ),
    }
    topics = tallies(records, "modality", "organ_system", "subtype", "question_type", "task")
    return {**topics, "oddities": oddities}
