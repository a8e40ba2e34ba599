"""``medtasks plan``: how small a difference a task, or a subset of it, can show."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import Json, read_runs, table, write, write_json
from medtasks.core.errors import NoRowsError, UsageError
from medtasks.core.text import printable

SHARES = (0.05, 0.1, 0.25, 0.5, 1.0)


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
    from medtasks.benchmarks.documents import task_documents
    from medtasks.catalog.spec import leaf_tasks
    from medtasks.leaderboard.board.columns import unit_of
    from medtasks.leaderboard.board.numbers import UNITS, number
    from medtasks.leaderboard.rank.planning import assumed_spread, default_metric, pilot_spread, sizes

    if len(pilot or ()) > 2:
        raise UsageError(f"--pilot: {len(pilot or ())} runs, expected at most 2.")
    if wrong := [one for one in share or () if not 0 < one <= 1]:
        raise UsageError(f"--share {wrong[0]:g}: expected a share above 0 and up to 1.")
    metric = metric or default_metric(task)
    parts, left_out = [], []
    for leaf in leaf_tasks(task):
        try:
            parts.append(task_documents(leaf, media=False))
        except NoRowsError as error:
            left_out.append(str(error))
            if not as_json:
                write(f"left out: {printable(str(error))}")
    documents = [document for part in parts for document in part]
    if not documents:
        raise UsageError(f"{task}: the prepared data have no documents of its tasks.")
    if pilot:
        spread = pilot_spread(task, metric, *read_runs(pilot))
    else:
        spread = assumed_spread(task, metric, documents, score, icc)
    unit = unit_of(metric)
    made = sizes(parts, spread, share or SHARES)
    needed = None
    if difference is not None:
        needed = spread.needed(difference / 100 if unit == "fraction" else difference)
    if as_json:
        write_json(
            {
                "task": task,
                "metric": metric,
                "unit": unit,
                "basis": spread.basis,
                "needed": None if difference is None else {"difference": difference, "clusters": needed},
                "left_out": left_out,
                "subsets": made,
            }
        )
        return
    rows = [
        (
            f"{one.share:g}",
            f"{one.clusters:,}",
            f"{one.documents:,}",
            "none is significant" if one.detectable is None else number(one.detectable, unit),
            "" if one.share == 1 else f"MEDTASKS_SUBSET={one.share:g}@0",
        )
        for one in made
    ]
    write(f"{task}, {metric} ({UNITS[unit]}): minimum detectable difference of two models (80 % power, level 0.05)\n")
    table(("share", "clusters", "documents", "detectable", "run with"), rows)
    write(f"\n  Basis: {spread.basis}.")
    write("  Runs of a subset are comparable with runs of the same subset only, and are marked as such.")
    if difference is not None:
        every = len({one["cluster"] for one in documents})
        enough = "" if needed is None or needed <= every else f", and the data have {every:,}"
        clusters = "more than a million" if needed is None else f"{needed:,}"
        write(f"  A difference of {difference:g} needs about {clusters} clusters{enough}.")
