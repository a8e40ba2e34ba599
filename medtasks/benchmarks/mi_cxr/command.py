"""The options of ``medtasks prepare mi_cxr``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from medtasks.benchmarks.mi_cxr.prepare import prepare_mi_cxr
from medtasks.data.prepare.options import Bars, Missing, Out, References, Workers
from medtasks.data.prepared import Prepared


def run(
    bars: Bars,
    rows: Annotated[list[Path], typer.Option("--rows", help="Row file; repeat it for the ICR variant's.")],
    images: Annotated[
        Path | None, typer.Option("--images", help="Root of MIMIC-CXR-JPG, which holds files/.", show_default=False)
    ] = None,
    out: Out = None,
    allow_missing_media: Missing = False,
    references_only: References = False,
    workers: Workers = 0,
) -> Iterator[Prepared]:
    """Prepare MI-CXR."""

    with bars("verifying pictures") as bar:
        prepared = prepare_mi_cxr(
            rows,
            images,
            out,
            allow_missing_media=allow_missing_media,
            references_only=references_only,
            workers=workers,
            progress=bar,
        )
    yield prepared
