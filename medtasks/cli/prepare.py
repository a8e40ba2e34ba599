"""``medtasks prepare``: validated records, verified media and a manifest out of release files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import progress, write

if TYPE_CHECKING:
    from medtasks.data.store import Prepared

__all__ = ["app"]

app = typer.Typer(help="Prepare a benchmark's data; nothing is evaluated on data that were not prepared.")

Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder to prepare into (default: below MEDTASKS_DATA).", show_default=False),
]
Missing = Annotated[
    bool, typer.Option("--allow-missing-media", help="Leave out rows without pictures, counted in the manifest.")
]
References = Annotated[
    bool,
    typer.Option(
        "--references-only", help="Questions and answers without media: enough to score predictions, not to run models."
    ),
]
Workers = Annotated[int, typer.Option("--workers", help="Threads that verify pictures; 0 picks a number.", min=0)]


@app.command("kvasir_vqa_x1")
def kvasir_vqa_x1(
    source: Annotated[
        str | None,
        typer.Option(
            "--source", help="hub, a folder, a JSONL or parquet file, or a quoted pattern of files.", show_default=False
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(
            "--images",
            help="Folder of <img_id>.jpg, or of the image dataset's parquet files (default: images/ beside the rows).",
        ),
    ] = None,
    out: Out = None,
    allow_missing_media: Missing = False,
    references_only: References = False,
    workers: Workers = 0,
    transformed: Annotated[
        bool, typer.Option("--transformed", help="Make the transformed track of the prepared data, too.")
    ] = False,
    variants: Annotated[
        int, typer.Option("--variants", help="Perturbed pictures of each image; the first is evaluated.", min=1, max=10)
    ] = 1,
) -> None:
    """Prepare Kvasir-VQA-x1 and, with --transformed, its perturbed pictures (of prepared data, without --source)."""
    from medtasks.data.prepare import prepare_kvasir, prepare_transformed
    from medtasks.errors import UsageError

    if source is None and not transformed:
        raise UsageError(
            "--source is missing; give hub, a folder or a file (or --transformed for data that are there)."
        )
    if source is not None:
        with progress("verifying pictures") as bar:
            prepared = prepare_kvasir(
                source,
                out,
                images=images,
                allow_missing_media=allow_missing_media,
                references_only=references_only,
                workers=workers,
                progress=bar,
                fetching=bar.stage("fetching pictures"),
            )
        report(prepared)
    if transformed:
        original = prepared if source is not None else None
        beside = None if out is None or source is None else out.with_name(f"{out.name}_transformed")
        with progress("perturbing pictures") as bar:
            made = prepare_transformed(
                beside if source is not None else out,
                original=original,
                variants=variants,
                workers=workers,
                progress=bar,
            )
        report(made)


@app.command("mi_cxr")
def mi_cxr(
    rows: Annotated[list[Path], typer.Option("--rows", help="Row file; repeat it for the ICR variant's.")],
    images: Annotated[
        Path | None, typer.Option("--images", help="Root of MIMIC-CXR-JPG, which holds files/.", show_default=False)
    ] = None,
    out: Out = None,
    allow_missing_media: Missing = False,
    references_only: References = False,
    workers: Workers = 0,
) -> None:
    """Prepare MI-CXR."""
    from medtasks.data.prepare import prepare_mi_cxr

    with progress("verifying pictures") as bar:
        prepared = prepare_mi_cxr(
            rows,
            images,
            out,
            allow_missing_media=allow_missing_media,
            references_only=references_only,
            workers=workers,
            progress=bar,
        )
    report(prepared)


@app.command("med_cmr")
def med_cmr(
    source: Annotated[
        str, typer.Option("--source", help="hub, the downloaded dataset.zip, or the folder that holds dataset/.")
    ],
    out: Out = None,
    allow_other_archive: Annotated[
        bool, typer.Option("--allow-other-archive", help="Take an archive that is not the published one.")
    ] = False,
    allow_missing_media: Missing = False,
    references_only: References = False,
    workers: Workers = 0,
) -> None:
    """Prepare Med-CMR."""
    from medtasks.data.prepare import prepare_med_cmr

    with progress("verifying pictures") as bar:
        prepared = prepare_med_cmr(
            source,
            out,
            allow_other_archive=allow_other_archive,
            allow_missing_media=allow_missing_media,
            references_only=references_only,
            workers=workers,
            progress=bar,
        )
    report(prepared)


@app.command("medstreambench")
def medstreambench(
    source: Annotated[str, typer.Option("--source", help="hub, or the folder of the .jsonl files.")],
    media: Annotated[
        Path | None,
        typer.Option("--media", help="Folder of the upstream media, which holds Stream_Bench/.", show_default=False),
    ] = None,
    out: Out = None,
    keep_degenerate: Annotated[
        bool, typer.Option("--keep-degenerate", help="Keep records without a question, or with a placeholder answer.")
    ] = False,
    references_only: References = False,
    workers: Workers = 0,
) -> None:
    """Prepare MedStreamBench; records whose media are missing or damaged are left out and counted."""
    from medtasks.data.prepare import prepare_medstream

    with progress("verifying media") as bar:
        prepared = prepare_medstream(
            source,
            media,
            out,
            keep_degenerate=keep_degenerate,
            references_only=references_only,
            workers=workers,
            progress=bar,
        )
    report(prepared)


@app.command("package")
def package(
    benchmark: Annotated[str, typer.Argument(help="Benchmark of another package, as `medtasks list` names it.")],
    source: Annotated[Path, typer.Option("--source", help="Folder or file, as the package's documentation says.")],
    media: Annotated[
        Path | None, typer.Option("--media", help="Folder of the media (default: the source).", show_default=False)
    ] = None,
    out: Out = None,
    allow_missing_media: Missing = False,
    references_only: References = False,
    workers: Workers = 0,
) -> None:
    """Prepare the data of a benchmark that another package brings."""
    from medtasks.benchmarks import get_benchmark
    from medtasks.data.prepare import prepare_package

    with progress("verifying media") as bar:
        prepared = prepare_package(
            get_benchmark(benchmark),
            source,
            out,
            media=media,
            allow_missing_media=allow_missing_media,
            references_only=references_only,
            workers=workers,
            progress=bar,
        )
    report(prepared)


def report(prepared: Prepared) -> None:
    """Print what was prepared, and where it differs from what was published."""
    from medtasks.data.manifest import coverage_lines

    manifest = prepared.manifest
    counts = manifest.counts
    write(
        f"prepared {manifest.benchmark}: {counts.rows:,} rows, {counts.media:,} media files, {counts.clusters:,} "
        f"clusters, fingerprint {manifest.fingerprint[:16]}"
    )
    for kind, number in counts.by_kind.items():
        write(f"  {kind}: {number:,}")
    for difference in manifest.differences:
        write(f"  differs: {difference}")
    for reason, number in manifest.excluded.items():
        write(f"  excluded: {number:,} rows ({reason})")
    if manifest.references_only:
        write("  references alone: predictions can be scored on them, and no model run")
    for line in coverage_lines(manifest.coverage):
        write(f"  {line}")
    for what, number in manifest.details.get("oddities", {}).items():
        if number:
            write(f"  noted: {what}: {number:,}")
    write(f"  in {prepared.directory}")
