"""Med-CMR: the published archive, or its unpacked directory, as prepared data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.med_cmr.records import DIMENSIONS, MedCmrRecord, dimension_of, parse_med_cmr_row
from medtasks.catalog.records import Where, distinct, tallies
from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.core.text import first_names
from medtasks.data.fetch import hub_tree
from medtasks.data.preparation import Out, PictureOptions, Preparation
from medtasks.data.prepared import Prepared, Source
from medtasks.data.release import Release, check_published

HUB = "aaassddaadf/Med-CMR"
REVISION = "a9b2d6e610c6c5dcf4f3e5aa89c7ec9fd7a05b73"

Kind = Literal["mcq", "open"]

FILES: dict[Kind, str] = {
    "mcq": "dataset/cmed.copy.mcq_cate.cleaned.json",
    "open": "dataset/cmed.copy.open_taged.cleaned.json",
}
"""Row file of each format, as the archive names it."""

PUBLISHED_ARCHIVE = (6_895_143_178, "8495f3b6b2901a095918ab27c600e42da7287a87f6aea490912ba60d27de3775")
"""Size in bytes and SHA-256."""
NAMED = 10


def prepare_med_cmr(
    source: Annotated[
        str, typer.Option("--source", help="hub, the downloaded dataset.zip, or the directory that contains dataset/.")
    ],
    out: Out = None,
    *,
    allow_other_archive: Annotated[
        bool, typer.Option("--allow-other-archive", help="Accept an archive that is not the published one.")
    ] = False,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare Med-CMR from ``hub``, the published ``dataset.zip``, or the directory it was unpacked into.

    Raises:
        UsageError: there is no such source.
        DataError: the archive is not the published one (and another was not allowed), or has names outside its
            directory; a row breaks the format; ``task`` values name no dimension (all of them are listed).
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    if source == "hub":
        folder, revision = hub_tree(HUB, "dataset.zip", revision=REVISION)
        path = folder / "dataset.zip"
        origin = Source(kind="hub", name=HUB, revision=revision)
    else:
        path = Path(source)
        origin = Source(kind="directory" if path.is_dir() else "archive", name=path.resolve().name)
    with Preparation("med_cmr", out, **options) as place:
        if not path.is_dir():
            digest = check_published(path, *PUBLISHED_ARCHIVE, allow_other=allow_other_archive, progress=place.progress)
            origin = origin.model_copy(update={"sha256": digest})
        release = Release(path, keep=None if place.references_only else place.directory / "media")
        records = _records(release)
        release.unpack(place.progress)
        return place.finish(origin, records, release.media_root, details=_details(records))


def _records(release: Release) -> list[MedCmrRecord]:
    """The records; all unknown values of `task` are reported at once, for whoever has to extend the table."""
    unknown: dict[str, Where] = {}
    records: list[MedCmrRecord] = []
    for kind, name in FILES.items():
        for item in release.rows(name):
            task = item.row.get("task")
            if isinstance(task, str) and task.strip() and dimension_of(task) is None:
                unknown.setdefault(shown(task), item.where)
            else:
                records.append(parse_med_cmr_row(item.row, kind, item.where))
                release.picture(records[-1].media[0], "image_path", item.where)
    if unknown:
        named = first_names((f"{task} ({where})" for task, where in unknown.items()), NAMED)
        raise DataError(
            f"field `task`: {len(unknown)} values name no dimension: {named}; expected one of "
            f"{', '.join(DIMENSIONS.values())}; fix the rows."
        )
    return distinct(records)


def _details(records: Sequence[MedCmrRecord]) -> dict[str, dict[str, int]]:
    equal = sum(len(set(record.choices.values())) < len(record.choices) for record in records)
    oddities = {
        "rows whose options carry their own letter": sum(record.prefixed > 0 for record in records),
        "rows that share their index with an earlier one": sum("#" in record.sample_id for record in records),
        "rows without visual_description": sum(not record.visual_description for record in records),
        "rows with equal options": equal,
    }
    topics = ("modality", "organ_system", "subtype", "question_type", "task")
    return {**tallies(records, *topics), "oddities": oddities}
