"""Kvasir-VQA-x1: rows of the release, with or without their pictures, as prepared data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.kvasir_vqa_x1.pictures import Pictures
from medtasks.benchmarks.kvasir_vqa_x1.records import parse_kvasir_row
from medtasks.catalog.records import distinct
from medtasks.data.fetch import hub_tree
from medtasks.data.preparation import Out, PictureOptions, Preparation
from medtasks.data.prepared import Prepared, Source
from medtasks.data.release import Release

HUB = "SimulaMet/Kvasir-VQA-x1"

_PATTERNS = ("test.jsonl", "test*.jsonl", "*test.jsonl", "test*.parquet")
"""Test rows in a directory or on the hub; the first pattern that matches counts."""


def prepare_kvasir(
    source: Annotated[str, typer.Option("--source", help="hub, a directory, or a JSONL or Parquet file.")],
    out: Out = None,
    *,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            help="Directory of <img_id>.jpg or of the image dataset's Parquet files (default: images/ beside rows).",
        ),
    ] = None,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare Kvasir-VQA-x1 from ``hub``, a directory or a file.

    Pictures come with the rows, from a directory, by URL, or from the hub's image dataset (`Pictures.find`).

    Raises:
        UsageError: there is no such source, or no source of pictures.
        DataError: a row breaks the format (file, line and field are named), or a server cannot be reached.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    path, folders = Path(source), [Path(source, "images")]
    if source == "hub":
        path, commit = hub_tree(HUB, *_PATTERNS, "*/test*.parquet")
        origin = Source(kind="hub", name=HUB, revision=commit)
        folders = []
    elif path.is_dir():
        origin = Source(kind="directory", name=path.resolve().name)
    else:
        origin = Source(kind="file", name=path.name)
        folders = [path.parent / "images", path.parent.parent / "images"]
    release = Release(path)
    with Preparation("kvasir_vqa_x1", out, **options) as place:
        pictures = Pictures(place)
        records = []
        for item in release.rows(*_PATTERNS):
            records.append(parse_kvasir_row(item.row, item.where))
            if not place.references_only:
                pictures.add(records[-1].img_id, item.row.get("image"), item.where)
        records = distinct(records)
        if place.references_only or not records:
            return place.finish(origin, records)
        names = {record.img_id: record.media[0] for record in records}
        pictures.find(list(names), origin, folders, images)
        names |= pictures.names
        records = [record.model_copy(update={"media": (names[record.img_id],)}) for record in records]
        origin = origin.model_copy(update={"images": pictures.origin})
        unavailable = {names[img_id]: error for img_id, error in pictures.failed.items()}
        return place.finish(origin, records, pictures.root, unavailable=unavailable)
