"""The options of ``medtasks prepare med_cmr``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from medtasks.benchmarks.med_cmr.prepare import prepare_med_cmr
from medtasks.data.prepare.options import Bars, Missing, Out, References, Workers
from medtasks.data.prepared import Prepared


def run(
    bars: Bars,
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
) -> Iterator[Prepared]:
    """Prepare Med-CMR."""

    with bars("verifying pictures") as bar:
        prepared = prepare_med_cmr(
            source,
            out,
            allow_other_archive=allow_other_archive,
            allow_missing_media=allow_missing_media,
            references_only=references_only,
            workers=workers,
            progress=bar,
        )
    yield prepared
