"""``medtasks plan``: the differences that subsets of a task can detect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.compare import read_runs
from medtasks.cli.console import table, write, write_json
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json
from medtasks.core.text import printable

app = typer.Typer()


@app.command("plan", cls=PlainCommand)
def plan(
    task: Annotated[str, typer.Argument(show_default=False, help="A task or group.")],
    pilot: Annotated[
        list[Path] | None,
        typer.Option(help="Result directory of a run, or of two (twice); a subset is enough."),
    ] = None,
    metric: Annotated[str | None, typer.Option(help="Default: the first headline score.")] = None,
    score: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="Without a pilot: expected accuracy (default: published median).",
        ),
    ] = None,
    icc: Annotated[
        float,
        typer.Option(min=0, max=1, help="Without a pilot: correlation of answers in one cluster."),
    ] = 0.1,
    difference: Annotated[
        float | None,
        typer.Option(
            min=0, help="Also print the subset that detects this (in points, or the unit)."
        ),
    ] = None,
    share: Annotated[
        list[float] | None, typer.Option(help="Share of the clusters; can be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show the minimum detectable difference for subsets, before you run a model.

    Example:
        medtasks plan mi_cxr --pilot results/A/TIME_medtasks --pilot results/B/TIME_medtasks
            --difference 2
    """
    from medtasks.leaderboard.rank.planning import SHARES, SpreadSource, plan_task

    pilots = read_runs(pilot) if pilot else []
    spread = SpreadSource(pilots, score, icc)
    planned = plan_task(task, metric, spread, difference=difference, shares=share or SHARES)
    if as_json:
        needed = None
        if difference is not None:
            needed = {"difference": difference, "clusters": planned.needed}
        fields = {
            "task": planned.task,
            "metric": planned.metric,
            "unit": planned.unit,
            "basis": planned.basis,
            "left_out": planned.left_out,
            "subsets": planned.subsets,
            "needed": needed,
        }
        write_json(fields)
        return
    write(*(f"left out: {printable(reason)}" for reason in planned.left_out))
    write(f"{planned.table.title}\n")
    table(planned.table.columns, planned.table.rows)
    write("\n" + "\n".join(planned.table.notes))
