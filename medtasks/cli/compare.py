"""``medtasks compare`` and ``plan``: whether runs differ on the same questions, and how small a difference a task, or a
subset of it, can show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import Json, Prices, progress, read_runs, table, write, write_json
from medtasks.core.errors import UsageError
from medtasks.core.tables import grouped_notes, p_text
from medtasks.core.text import printable


def compare(
    first: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    second: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    pairs: Annotated[list[str] | None, typer.Option(metavar="BASE:TUNED")] = None,
    task: str | None = None,
    metric: str | None = None,
    prices: Prices = None,
    as_json: Json = False,
) -> None:
    """Compare two runs: differences item by item, 95 % intervals, corrected tests, and what both used."""
    from medtasks.analysis.results import compare as compare_two
    from medtasks.leaderboard.board.models import read_by_model
    from medtasks.leaderboard.board.usage import Price, amount, measured, used_by

    if pairs:
        if first is not None or prices is not None:
            raise UsageError("--pairs takes the place of two directories, and of --prices; leave them out.")
        _compare_pairs(pairs, task, metric, as_json=as_json)
        return
    if first is None or second is None:
        raise UsageError("expected two directories of runs, or --pairs BASE:TUNED; give them.")
    known = {} if prices is None else read_by_model(prices, Price)
    runs = read_runs((first, second))
    with progress("comparing") as bar:
        found = compare_two(*runs, task=task, metric=metric, progress=bar)
    used = [used_by(one, known, task) for one in runs]
    if as_json:
        from pydantic_core import to_jsonable_python

        usage = [{**usage.model_dump(mode="json"), **({} if cost is None else {"cost": cost})} for usage, cost in used]
        write_json({**to_jsonable_python(found), "usage": dict(zip(("first", "second"), usage, strict=True))})
        return
    names = [f"{one.public.model_facts.get('name', one.model)} ({one.public.folder})" for one in runs]
    write(f"A: {printable(names[0])}\nB: {printable(names[1])}\n")
    table(found.table.columns, found.table.rows)
    write("\n".join(found.table.notes))
    if usage_rows := [(one.label, one.unit, *map(amount, values)) for one, values in measured(used)]:
        write("")
        table(("usage", "unit", "A", "B"), usage_rows)


def _compare_pairs(pairs: Sequence[str], group: str | None, metric: str | None, *, as_json: bool) -> None:
    from medtasks.leaderboard.rank.compare import compare_pairs, signed_number

    folders = [one.split(":") for one in pairs]
    for given, parts in zip(pairs, folders, strict=True):
        if len(parts) != 2 or not all(parts):
            raise UsageError(f"--pairs {given}: expected BASE:TUNED, two directories of runs without a colon; fix it.")
    names = list(dict.fromkeys(folder for parts in folders for folder in parts))
    read = dict(zip(names, read_runs(map(Path, names)), strict=True))
    with progress("comparing") as bar:
        tests = compare_pairs(
            [(read[base], read[tuned]) for base, tuned in folders], group=group, metric=metric, progress=bar
        )
    if as_json:
        write_json({"tests": tests})
        return
    differences, signs, reasons = [], [], []
    for test in tests:
        head = test.group, test.metric
        for one in test.differences:
            shown = signed_number(one.difference, test.unit, "+")
            differences.append((*head, one.base, one.tuned, one.task, shown))
            place = f"{one.tuned} - {one.base} {one.task} {test.metric}"
            if one.reason:
                reasons.append((f"no difference: {one.reason}", place))
            reasons += [(f"not comparable: {reason}", place) for reason in one.unlike]
        equal = sum(one.difference == 0 for one in test.differences)
        p_values = map(p_text, (test.sign_p, test.wilcoxon_p, test.least_p))
        signs.append((*head, f"{len(pairs)}", f"{test.better}", f"{test.worse}", f"{equal}", *p_values))
    table(("group", "metric", "base", "tuned", "task", "tuned - base"), differences)
    write("")
    columns = ("group", "metric", "pairs", "better", "worse", "equal", "sign p", "Wilcoxon p", "lowest possible p")
    table(columns, signs)
    write(
        "  One difference per pair and task, over the items with a value in both runs; p is two-sided, not corrected."
    )
    write("  A task with few items counts as much as one with many; differences of one pair are not independent.")
    write(*grouped_notes(reasons))


def plan(
    task: Annotated[str, typer.Argument(show_default=False)],
    pilot: list[Path] | None = None,
    metric: str | None = None,
    score: Annotated[float | None, typer.Option(min=0, max=1)] = None,
    icc: Annotated[float, typer.Option(min=0, max=1)] = 0.1,
    difference: Annotated[float | None, typer.Option(min=0)] = None,
    share: list[float] | None = None,
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
    write(*(f"left out: {printable(reason)}" for reason in found.left_out))
    write(f"{found.table.title}\n")
    table(found.table.columns, found.table.rows)
    write("\n" + "\n".join(found.table.notes))
