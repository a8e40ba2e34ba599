"""Kvasir-VQA-x1: rows of the release, with or without their pictures, as prepared data; and the command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.kvasir_vqa_x1.pictures import Pictures
from medtasks.benchmarks.kvasir_vqa_x1.records import parse_kvasir_row
from medtasks.benchmarks.kvasir_vqa_x1.source import open_kvasir
from medtasks.benchmarks.kvasir_vqa_x1.transformed import prepare_transformed
from medtasks.catalog.records import distinct
from medtasks.core.errors import UsageError
from medtasks.data.preparation import PictureOptions, Preparation, Progress
from medtasks.data.prepare import Bars, Out
from medtasks.data.prepared import Prepared


def prepare_kvasir(
    source: str,
    out: Path | None = None,
    *,
    images: Path | None = None,
    fetching: Progress | None = None,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare Kvasir-VQA-x1 from ``hub``, a directory or a file, into ``out`` (default: below the data root).

    Pictures come with the rows, from a directory, by URL, or from the hub's image dataset (`Pictures.find`);
    ``fetching`` reports those fetched by URL.

    Raises:
        UsageError: there is no such source, or no source of pictures.
        DataError: a row breaks the format (file, line and field are named), or a server cannot be reached.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    opened = open_kvasir(source)
    with Preparation("kvasir_vqa_x1", out, **options) as place:
        pictures = Pictures(place)
        records = []
        for item in opened.rows:
            records.append(parse_kvasir_row(item.row, item.where))
            if not place.references_only:
                pictures.add(records[-1].img_id, item.row.get("image"), item.where)
        records = distinct(records)
        if place.references_only or not records:
            return place.finish(opened.source, records)
        names = {record.img_id: record.media[0] for record in records}
        pictures.find(list(names), opened, images, fetching)
        names |= pictures.names
        records = [record.model_copy(update={"media": (names[record.img_id],)}) for record in records]
        origin = opened.source.model_copy(update={"images": pictures.origin})
        unavailable = {names[img_id]: error for img_id, error in pictures.failed.items()}
        return place.finish(origin, records, pictures.root, unavailable=unavailable)


def run(
    bars: Bars,
    source: Annotated[
        str | None,
        typer.Option("--source", help="hub, a directory, or a JSONL or Parquet file.", show_default=False),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            help="Directory of <img_id>.jpg or of the image dataset's Parquet files (default: images/ beside rows).",
        ),
    ] = None,
    out: Out = None,
    transformed: Annotated[
        bool, typer.Option("--transformed", help="Create the transformed track of the prepared data, too.")
    ] = False,
    variants: Annotated[
        int,
        typer.Option("--variants", help="Perturbed copies of each image; only the first is evaluated.", min=1, max=10),
    ] = 1,
    **options: Unpack[PictureOptions],
) -> Iterator[Prepared]:
    """Prepare Kvasir-VQA-x1 and, with --transformed, its perturbed pictures (without --source: of prepared data)."""
    if source is None and not transformed:
        raise UsageError("--source is missing; give hub, a directory or a file (or --transformed for prepared data).")
    original, beside = None, out
    if source is not None:
        with bars("verifying pictures") as bar:
            options["progress"] = bar
            original = prepare_kvasir(source, out, images=images, fetching=bar.stage("fetching pictures"), **options)
        beside = None if out is None else out.with_name(f"{out.name}_transformed")
        yield original
    if transformed:
        with bars("perturbing pictures") as bar:
            made = prepare_transformed(
                beside, original=original, variants=variants, workers=options.get("workers", 0), progress=bar
            )
        yield made
