"""``medtasks compare``: the differences between two runs on the same questions, and whether they are significant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import Json, Prices, notes, progress, table, write, write_json
from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.text import counted, printable

if TYPE_CHECKING:
    from medtasks.leaderboard.rank.compare import Comparison, Line
    from medtasks.leaderboard.rank.compare_several import LeaningTest

DIGITS = {"fraction": 3, "points": 1, "seconds": 2, "score": 3}


def compare(
    first: Annotated[
        Path | None, typer.Argument(help="A run's directory (…_medtasks), or one that contains it.", show_default=False)
    ] = None,
    second: Annotated[Path | None, typer.Argument(help="Another run's directory.", show_default=False)] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pairs",
            metavar="BASE:TUNED",
            help="Two runs' directories; repeat it. Sign test and Wilcoxon's test over all pairs and a group's tasks.",
        ),
    ] = None,
    task: Annotated[str | None, typer.Option("--task", help="Only this task or group.")] = None,
    metric: Annotated[str | None, typer.Option("--metric", help="Only this metric.")] = None,
    prices: Prices = None,
    as_json: Json = False,
) -> None:
    """Compare two runs: differences item by item, 95 % intervals, corrected tests, and what both used."""
    from medtasks.leaderboard.board.models import read_by_model
    from medtasks.leaderboard.board.usage import Price, amount, measured, used_by
    from medtasks.leaderboard.rank.compare import compare_runs, read_one

    if pairs:
        if first is not None or prices is not None:
            raise UsageError("--pairs takes the place of two directories, and of --prices; leave them out.")
        _compare_pairs(pairs, task, metric, as_json=as_json)
        return
    if first is None or second is None:
        raise UsageError("expected two directories of runs, or --pairs BASE:TUNED; give them.")
    known = {} if prices is None else read_by_model(prices, Price)

    with progress("reading results"):
        runs = [read_one(folder, cache_root()) for folder in (first, second)]
    with progress("comparing") as bar:
        found = compare_runs(*runs, task=task, metric=metric, progress=bar)
    used = [used_by(one, known, task) for one in runs]
    if as_json:
        from pydantic_core import to_jsonable_python

        usage = [{**usage.model_dump(mode="json"), **({} if cost is None else {"cost": cost})} for usage, cost in used]
        write_json({**to_jsonable_python(found), "usage": dict(zip(("first", "second"), usage, strict=True))})
        return
    names = [f"{one.shown.model_facts.get('name', one.model)} ({one.shown.folder})" for one in runs]
    write(f"A: {printable(names[0])}\nB: {printable(names[1])}\n")
    columns = (
        *("task", "metric", "A", "B", "A - B", "95 % interval", "p", "p (Holm)"),
        *("items", "comparable", "clusters", "unpaired", "detectable"),
    )
    table(columns, [_row(line) for line in found.lines])
    write("\n".join(_notes(found)))
    if usage_rows := [(one.label, one.unit, *map(amount, values)) for one, values in measured(used)]:
        write("")
        table(("usage", "unit", "A", "B"), usage_rows)


def _compare_pairs(pairs: Sequence[str], group: str | None, metric: str | None, *, as_json: bool) -> None:
    from medtasks.leaderboard.rank.compare import read_one
    from medtasks.leaderboard.rank.compare_several import compare_pairs

    folders = [one.split(":") for one in pairs]
    for given, parts in zip(pairs, folders, strict=True):
        if len(parts) != 2 or not all(parts):
            raise UsageError(f"--pairs {given}: expected BASE:TUNED, two directories of runs without a colon; fix it.")
    with progress("reading results"):
        read = {
            folder: read_one(Path(folder), cache_root())
            for folder in dict.fromkeys(folder for parts in folders for folder in parts)
        }
    with progress("comparing") as bar:
        tests = compare_pairs(
            [(read[base], read[tuned]) for base, tuned in folders], group=group, metric=metric, progress=bar
        )
    if as_json:
        write_json({"tests": tests})
        return
    table(
        ("group", "metric", "base", "tuned", "task", "tuned - base"),
        [
            (test.group, test.metric, one.base, one.tuned, one.task, _number(one.difference, test.unit, "+"))
            for test in tests
            for one in test.differences
        ],
    )
    write("")
    table(
        ("group", "metric", "pairs", "better", "worse", "equal", "sign p", "Wilcoxon p", "lowest possible p"),
        [
            (
                *(test.group, test.metric, f"{len(pairs)}", f"{test.better}", f"{test.worse}"),
                f"{sum(one.difference == 0 for one in test.differences)}",
                *map(_p_value, (test.sign_p, test.wilcoxon_p, test.least_p)),
            )
            for test in tests
        ],
    )
    write(
        "  One difference per pair and task, over the items with a value in both runs; p is two-sided, not corrected."
    )
    write("  A task with few items counts as much as one with many; differences of one pair are not independent.")
    for line in notes(_reasons(tests)):
        write(line)


def _reasons(tests: Sequence[LeaningTest]) -> Iterator[tuple[str, str]]:
    for test in tests:
        for one in test.differences:
            place = f"{one.tuned} - {one.base} {one.task} {test.metric}"
            if one.reason:
                yield f"no difference: {one.reason}", place
            yield from ((f"not comparable: {reason}", place) for reason in one.unlike)


def _number(value: float | None, unit: str, sign: str = "") -> str:
    return "" if value is None else f"{value:{sign}.{DIGITS[unit]}f}"


def _p_value(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _row(line: Line) -> tuple[str, ...]:
    pair, comparable = line.pair, "no" if line.unlike else "yes"
    if pair is None:
        return (line.task, line.metric, *[""] * 6, "0", comparable, "0", f"{line.unpaired:,}", "")
    ends = [_number(end, line.unit, "+") for end in (pair.low, pair.high)]
    return (
        line.task,
        line.metric,
        _number(line.first, line.unit),
        _number(line.second, line.unit),
        _number(pair.difference, line.unit, "+"),
        f"[{', '.join(ends)}]" if all(ends) else "none",
        _p_value(pair.p_value),
        _p_value(pair.p_holm),
        f"{pair.items:,}",
        comparable,
        f"{pair.clusters:,}",
        f"{line.unpaired:,}",
        _number(line.detectable, line.unit),
    )


def _notes(found: Comparison) -> list[str]:
    """Notes below the table: how to read it, and why rows are empty or not comparable."""
    tests = sum(line.pair is not None and line.pair.p_value is not None for line in found.lines)
    several = [f"  p (Holm) is corrected over the {counted(tests, 'test')} of this table."] if tests > 1 else []
    texts: dict[str, list[tuple[str, str]]] = {"no difference": [], "no interval": [], "warning": [], "unlike": []}
    for line in found.lines:
        place, pair = f"{line.task} {line.metric}", line.pair
        if line.reason is not None:
            kind = "no difference" if pair is None or pair.p_value is None else "no interval"
            texts[kind].append((f"{kind}: {line.reason}", place))
        if pair is not None and pair.warning is not None:
            texts["warning"].append((f"warning: {pair.warning}", place))
        texts["unlike"] += [(f"not comparable: {reason}", place) for reason in line.unlike]
    return [
        "  Scores are over the items with a value in both runs; intervals and p are from the cluster sign-flip test.",
        *several,
        "  detectable: the minimum detectable difference (80 % power); smaller ones are likely to be missed.",
        *(line for kind in texts.values() for line in notes(kind)),
    ]
