"""``medtasks validate``: check whether tasks and prepared data can be relied on."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from medtasks.catalog.packages import without_warnings
from medtasks.cli.console import Json, progress, table, write, write_json
from medtasks.core.findings import COLUMNS, as_rows, failed, summary
from medtasks.core.text import counted


def validate(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="Packages, benchmarks, tasks, groups, files or directories (default: all that is prepared)."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Do not decode pictures and frames, and do not check how scores behave.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings as well.")] = False,
    as_json: Json = False,
) -> None:
    """Check task files, templates, prepared data (hidden fields, media, answers, windows), and how scores behave."""
    from medtasks.validate import run

    if any(Path(name).exists() for name in what or ()):
        print("medtasks: importing what the files name, from installed packages only", file=sys.stderr, flush=True)
    with without_warnings(), progress("checking tasks") as bar:  # the findings cover what packages lack
        found = run.validate(what or (), decode=not quick, scores=not quick, progress=bar)
    if as_json:
        write_json({"data": found.data, "tasks": found.tasks})
    else:
        if found.all:
            table(COLUMNS, as_rows(found.all))
        data = f" and the data of {', '.join(found.data)}" if found.data else ""
        write(f"{counted(found.files, 'task file')}{data}: {summary(found.all)}")
    if failed(found.all, strict):
        raise typer.Exit(1)
