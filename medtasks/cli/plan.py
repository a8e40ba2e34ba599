"""``medtasks plan``: how small a difference a task, or a subset of it, can show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import Json, read_runs, table, write, write_json
from medtasks.core.text import printable


def plan(
    task: Annotated[str, typer.Argument(help="A task or group.", show_default=False)],
    pilot: Annotated[
        list[Path] | None,
        typer.Option("--pilot", help="Result directory of a run, or of two (twice); a subset is enough."),
    ] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Default: the first headline score.")] = None,
    score: Annotated[
        float | None,
        typer.Option("--score", min=0, max=1, help="Without a pilot: expected accuracy (default: published median)."),
    ] = None,
    icc: Annotated[
        float, typer.Option("--icc", min=0, max=1, help="Without a pilot: correlation of answers in one cluster.")
    ] = 0.1,
    difference: Annotated[
        float | None,
        typer.Option("--difference", min=0, help="Also print the subset that detects this (in points, or the unit)."),
    ] = None,
    share: Annotated[
        list[float] | None, typer.Option("--share", help="Share of the clusters; can be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the minimum detectable differences of subsets, before inference is paid for."""
    from medtasks.leaderboard.rank.planning import SHARES, plan_task

    runs = read_runs(pilot) if pilot else []
    found = plan_task(task, metric, runs, score=score, icc=icc, difference=difference, shares=share or SHARES)
    if as_json:
        needed = None if difference is None else {"difference": difference, "clusters": found.needed}
        fields = {name: getattr(found, name) for name in ("task", "metric", "unit", "basis", "left_out", "subsets")}
        write_json({**fields, "needed": needed})
        return
    for reason in found.left_out:
        write(f"left out: {printable(reason)}")
    write(f"{found.table.title}\n")
    table(found.table.columns, found.table.rows)
    write("\n" + "\n".join(found.table.notes))
