"""The options of ``medtasks prepare kvasir_vqa_x1``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir
from medtasks.benchmarks.kvasir_vqa_x1.transformed import prepare_transformed
from medtasks.data.prepare.options import Bars, Missing, Out, References, Workers
from medtasks.data.prepared import Prepared
from medtasks.errors import UsageError


def run(
    bars: Bars,
    source: Annotated[
        str | None,
        typer.Option(
            "--source", help="hub, a directory, a JSONL or Parquet file, or a quoted glob pattern.", show_default=False
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            help="Directory of <img_id>.jpg or of the image dataset's Parquet files (default: images/ beside rows).",
        ),
    ] = None,
    out: Out = None,
    allow_missing_media: Missing = False,
    references_only: References = False,
    workers: Workers = 0,
    transformed: Annotated[
        bool, typer.Option("--transformed", help="Create the transformed track of the prepared data, too.")
    ] = False,
    variants: Annotated[
        int,
        typer.Option("--variants", help="Perturbed copies of each image; only the first is evaluated.", min=1, max=10),
    ] = 1,
) -> Iterator[Prepared]:
    """Prepare Kvasir-VQA-x1 and, with --transformed, its perturbed pictures (without --source: of prepared data)."""
    if source is None and not transformed:
        raise UsageError("--source is missing; give hub, a directory or a file (or --transformed for prepared data).")
    original, beside = None, out
    if source is not None:
        with bars("verifying pictures") as bar:
            original = prepare_kvasir(
                source,
                out,
                images=images,
                allow_missing_media=allow_missing_media,
                references_only=references_only,
                workers=workers,
                progress=bar,
                fetching=bar.stage("fetching pictures"),
            )
        beside = None if out is None else out.with_name(f"{out.name}_transformed")
        yield original
    if transformed:
        with bars("perturbing pictures") as bar:
            made = prepare_transformed(beside, original=original, variants=variants, workers=workers, progress=bar)
        yield made
