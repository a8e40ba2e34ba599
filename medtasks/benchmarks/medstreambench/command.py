"""The options of ``medtasks prepare medstreambench``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from medtasks.benchmarks.medstreambench.prepare import prepare_medstream
from medtasks.data.prepare.options import Bars, Out, References, Workers
from medtasks.data.prepared import Prepared


def run(
    bars: Bars,
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
) -> Iterator[Prepared]:
    """Prepare MedStreamBench; records whose media are missing or damaged are left out and counted."""

    with bars("verifying media") as bar:
        prepared = prepare_medstream(
            source,
            media,
            out,
            keep_degenerate=keep_degenerate,
            references_only=references_only,
            workers=workers,
            progress=bar,
        )
    yield prepared
