"""MI-CXR: release rows as typed records; row files and the MIMIC-CXR-JPG tree as prepared data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import AliasChoices, Field
from typing_extensions import Unpack

from medtasks.catalog.records import Record, ReleaseRow, Where, build, parse_row, with_keys, wrong
from medtasks.core.errors import DataError, UsageError
from medtasks.core.schema import Text, text_that
from medtasks.data.hub import located
from medtasks.data.preparation import Preparation
from medtasks.data.prepare_commands import Out, PictureOptions
from medtasks.data.prepared import Prepared, Source
from medtasks.data.release import Release
from medtasks.data.sources import SourceRow, read_table

OPTIONS = ("A", "B", "C", "D", "E")
NULL_OPTION = "E"
VISITS = ("T1", "T2", "T3", "T4", "T5")

_FAMILIES = read_table(__file__, "vocabulary.yaml", dict[str, dict[str, tuple[str, ...]]])
SUBTASKS: dict[str, tuple[str, ...]] = {}
"""The ``qtype`` values of each subtask; those of the ICR variant start with ``icr_variant``."""

QTYPES: dict[str, str] = {}
"""The family of each ``qtype`` value."""

for _family, _subtasks in _FAMILIES.items():
    SUBTASKS.update(_subtasks)
    for _qtypes in _subtasks.values():
        QTYPES.update(dict.fromkeys(_qtypes, _family))


class MiCxrRecord(Record):
    """One row of MI-CXR. ``cluster`` is the patient; ``media`` are T1 to T5."""

    q_id: int
    group_type: Literal["TEL", "ICR", "GTS"]
    qtype: str
    question: str
    choices: dict[str, str]
    answer: Literal["A", "B", "C", "D", "E"]


ImagePath = Annotated[
    str,
    text_that(
        "files/pNN/pNNNNNNNN/sNNNNNNNN/<five dashed groups of hex digits>.jpg",
        re.compile(
            r"files/p[0-9]{2}/p[0-9]{8}/s[0-9]{8}/[0-9a-f]{8}(?:-[0-9a-f]{8}){4}\.jpg"
        ).fullmatch,
    ),
]


class _MiCxrRow(ReleaseRow):
    q_id: Annotated[int, Field(ge=0, lt=2**63, validation_alias=AliasChoices("q_id", "qid"))]
    qtype: Annotated[
        str,
        text_that(
            f"one of {', '.join(QTYPES)}, or icr_variant…",
            lambda value: value in QTYPES or value.startswith("icr_variant"),
        ),
    ]
    group_type: Text
    question: Text
    choices: Annotated[dict[str, Text], with_keys(*OPTIONS)]
    answer: Literal["A", "B", "C", "D", "E"]
    images: Annotated[dict[str, ImagePath], with_keys(*VISITS)]


def parse_mi_cxr_row(row: Mapping[str, Any], where: Where) -> MiCxrRecord:
    """The record of a release row; raises :class:`DataError`."""
    parsed = parse_row(_MiCxrRow, row, where)
    family = QTYPES.get(parsed.qtype, "ICR")
    if parsed.group_type != family:
        expected = f"{family}, the family of {parsed.qtype}"
        raise wrong(where, "group_type", parsed.group_type, expected)
    patients = sorted({path.split("/")[2] for path in parsed.images.values()})
    if len(patients) > 1:
        raise wrong(where, "images", patients, "five images of one patient")
    prefix = family.lower() if parsed.qtype in QTYPES else "icr_variant"
    return build(
        MiCxrRecord,
        where,
        sample_id=f"{prefix}-{parsed.q_id}",
        cluster=patients[0],
        media=tuple(parsed.images.values()),
        **parsed.model_dump(exclude={"images"}),
    )


HUB = "steve9712/MI-CXR"
"""The rows on the hub, by the README of the authors' repository.

Their layout there was not seen: that of the repository is expected.
"""

_PATTERNS = ("micxr_test.jsonl", "*test*.jsonl", "*test*.parquet", "*.jsonl", "*.parquet")
"""Row files in a directory or on the hub; the first pattern that matches counts."""


def prepare_mi_cxr(
    rows: Annotated[
        list[Path],
        typer.Option(
            "--rows",
            "--source",
            help="hub, a directory, or a row file; repeat it for the ICR variant's.",
        ),
    ],
    images: Annotated[
        Path | None,
        typer.Option(
            "--images", help="Root of MIMIC-CXR-JPG, which holds files/.", show_default=False
        ),
    ] = None,
    out: Out = None,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare MI-CXR from its rows and the MIMIC-CXR-JPG root.

    The rows of the ICR variant may be among them.

    Raises:
        UsageError: there are no rows in a place, or ``images`` is not a directory.
        DataError: a row breaks the format, two rows of a family share their q_id, or the hub cannot
            be reached.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    if not options.get("references_only") and (images is None or not images.is_dir()):
        problem = "is missing" if images is None else f"{images}: not a directory"
        raise UsageError(
            f"--images {problem}; give the MIMIC-CXR-JPG root that holds files/ (or "
            "--references-only, which is enough for scoring)."
        )
    items, source = _read_rows(rows)
    records = _records_of(items)
    with Preparation("mi_cxr", out, **options) as place:
        return place.finish(source, records, images or Path("media"))


def _records_of(items: Sequence[SourceRow]) -> list[Record]:
    """The records of the rows; refuses two rows of a family with the same q_id."""
    places: dict[str, Where] = {}
    records: list[Record] = []
    for item in items:
        record = parse_mi_cxr_row(item.row, item.where)
        if record.sample_id in places:
            raise DataError(
                f"{item.where}: field `q_id` is {record.q_id}, already used by "
                f"{places[record.sample_id]} in this family; give each question an id of its own."
            )
        places[record.sample_id] = item.where
        records.append(record)
    return records


def _read_rows(places: Sequence[Path]) -> tuple[list[SourceRow], Source]:
    """The rows in every place, and their origin; the names of several places are joined."""
    items: list[SourceRow] = []
    origins: list[Source] = []
    for place in places:
        folder, origin = located(str(place), HUB, *_PATTERNS)
        items.extend(Release(folder).rows(*_PATTERNS))
        origins.append(origin)
    if len(origins) == 1:
        return items, origins[0]
    names = []
    for origin in origins:
        names.append(f"{origin.name}@{origin.revision}" if origin.revision else origin.name)
    return items, Source(kind="file", name="+".join(names))
