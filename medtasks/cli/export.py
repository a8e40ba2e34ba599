"""``medtasks export``: results in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import Results, progress, write
from medtasks.core.text import counted

app = typer.Typer(help="Results in the formats of other tools.", no_args_is_help=True)


@app.callback()
def export() -> None:
    """Results in the formats of other tools."""


@app.command("inspect")
def inspect(
    results: Results,
    out: Annotated[Path, typer.Option("--out", help="The new directory.")],
) -> None:
    """Write Inspect logs, one `.eval` file for each run and task, for `inspect view`."""
    from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs

    with progress("writing logs"):
        written, notes = write_inspect_logs(results, out)
    for note in notes:
        write(note)
    write(f"{counted(len(written), 'log')}: {out} (inspect view --log-dir {out})")
