"""MI-CXR: row files and the MIMIC-CXR-JPG tree as prepared data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typing_extensions import Unpack

from medtasks.benchmarks.mi_cxr.records import parse_mi_cxr_row
from medtasks.catalog.records import Record
from medtasks.core.errors import DataError, UsageError
from medtasks.data.preparation import Out, PictureOptions, Preparation
from medtasks.data.prepared import Prepared, Source
from medtasks.data.sources import read_jsonl


def prepare_mi_cxr(
    rows: Annotated[list[Path], typer.Option("--rows", help="Row file; repeat it for the ICR variant's.")],
    images: Annotated[
        Path | None, typer.Option("--images", help="Root of MIMIC-CXR-JPG, which holds files/.", show_default=False)
    ] = None,
    out: Out = None,
    **options: Unpack[PictureOptions],
) -> Prepared:
    """Prepare MI-CXR from its row files (the ICR variant's may be one of them) and the MIMIC-CXR-JPG root.

    Raises:
        UsageError: there is no row file, or ``images`` is not a directory.
        DataError: a row breaks the format, or two rows of a family share their q_id.
        MediaError: pictures are missing or not whole, and ``allow_missing_media`` is not set.
    """
    if not rows:
        raise UsageError("--rows is missing; give micxr_test.jsonl.")
    if images is None and not options.get("references_only"):
        raise UsageError(
            "--images is missing; give the MIMIC-CXR-JPG root that holds files/ (or --references-only, which is "
            "enough for scoring)."
        )
    if images is not None and not images.is_dir():
        raise UsageError(f"--images {images}: not a directory; give the MIMIC-CXR-JPG root that holds files/.")
    seen: dict[str, str] = {}
    records: list[Record] = []
    for path in rows:
        for item in read_jsonl(path):
            record = parse_mi_cxr_row(item.row, item.where)
            if record.sample_id in seen:
                raise DataError(
                    f"{item.where}: field `q_id` is {record.q_id}, already used by {seen[record.sample_id]} in "
                    "this family; give each question an id of its own."
                )
            seen[record.sample_id] = str(item.where)
            records.append(record)
    source = Source(kind="file", name="+".join(path.name for path in rows))
    with Preparation("mi_cxr", out, **options) as place:
        return place.finish(source, records, images or Path("media"))
