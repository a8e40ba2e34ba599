"""``medtasks compare``: the differences between two runs on the same questions, and whether they are significant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks.cache import cache_root
from medtasks.cli.console import Prices, progress, table, write
from medtasks.errors import UsageError
from medtasks.text import first_names, printable

if TYPE_CHECKING:
    from medtasks.leaderboard.compare import Comparison, Line
    from medtasks.leaderboard.compare_pairs import LeaningTest
    from medtasks.results.usage import Usage

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
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compare two runs: differences item by item, 95 % intervals, corrected tests, and what both used."""
    from medtasks.leaderboard.compare import compare_runs, read_one
    from medtasks.leaderboard.models import read_by_model
    from medtasks.leaderboard.usage import Price, used_by

    if pairs:
        if first is not None or prices is not None:
            raise UsageError("--pairs takes the place of two directories, and of --prices; leave them out.")
        _compare_pairs(pairs, task, metric, as_json=as_json)
        return
    if first is None or second is None:
        raise UsageError("expected two directories of runs, or --pairs BASE:TUNED; give them.")
    known = {} if prices is None else read_by_model(prices, Price)

    with progress("reading results"):
        runs = [read_one(folder, task, cache_root() / "leaderboard") for folder in (first, second)]
    with progress("comparing") as bar:
        found = compare_runs(*runs, task=task, metric=metric, progress=bar)
    used = [used_by(one, known, task) for one in runs]
    if as_json:
        write(json.dumps({**_plain(found), "usage": _plain_usage(used)}, indent=1))
        return
    names = [f"{one.facts.model_facts.get('name', one.model)} ({one.facts.folder})" for one in runs]
    write(f"A: {printable(names[0])}\nB: {printable(names[1])}\n")
    columns = (
        *("task", "metric", "A", "B", "A - B", "95 % interval", "p", "p (Holm)"),
        *("items", "clusters", "unpaired", "detectable", "comparable"),
    )
    table(columns, [_row(line) for line in found.lines])
    write(_notes(found))
    _write_usage(used)


def _compare_pairs(pairs: Sequence[str], group: str | None, metric: str | None, *, as_json: bool) -> None:
    from medtasks.leaderboard.compare import read_one
    from medtasks.leaderboard.compare_pairs import compare_pairs

    folders = [one.split(":") for one in pairs]
    for given, parts in zip(pairs, folders, strict=True):
        if len(parts) != 2 or not all(parts):
            raise UsageError(f"--pairs {given}: expected BASE:TUNED, two directories of runs without a colon; fix it.")
    with progress("reading results"):
        read = {
            folder: read_one(Path(folder), cache=cache_root() / "leaderboard")
            for folder in dict.fromkeys(folder for parts in folders for folder in parts)
        }
    with progress("comparing") as bar:
        tests = compare_pairs(
            [(read[base], read[tuned]) for base, tuned in folders], group=group, metric=metric, progress=bar
        )
    if as_json:
        write(json.dumps({"tests": [{**asdict(test), "least_p": test.least_p} for test in tests]}, indent=1))
        return
    table(
        ("group", "metric", "base", "tuned", "task", "tuned - base"),
        [
            (test.group, test.metric, one.base, one.tuned, one.task, _signed(one.difference, DIGITS[test.unit]))
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
                *("" if p is None else f"{p:.3g}" for p in (test.sign_p, test.wilcoxon_p)),
                f"{test.least_p:.3g}",
            )
            for test in tests
        ],
    )
    write(_notes_on(tests))


def _signed(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:+.{digits}f}"


def _notes_on(tests: Sequence[LeaningTest]) -> str:
    lines = [
        "One difference per pair and task, over the items with a value in both runs; p is two-sided and not corrected.",
        "A task with few items counts as much as one with many; differences of one pair are not independent.",
    ]
    found = [(test, one) for test in tests for one in test.differences]
    reasons: dict[str, dict[str, None]] = {}
    for test, one in found:
        for what, texts in (("no difference", filter(None, [one.reason])), ("not comparable", one.unlike)):
            for reason in texts:
                place = f"{one.tuned} - {one.base} {one.task} {test.metric}"
                reasons.setdefault(f"{what}: {reason}", {})[place] = None
    lines += [f"{reason} ({first_names(places)})" for reason, places in reasons.items()]
    return "\n".join(f"  {printable(line)}" for line in lines)


def _plain_usage(used: Sequence[tuple[Usage, float | None]]) -> dict[str, Any]:
    return {
        name: {**usage.model_dump(mode="json"), **({} if cost is None else {"cost": cost})}
        for name, (usage, cost) in zip(("first", "second"), used, strict=True)
    }


def _write_usage(used: Sequence[tuple[Usage, float | None]]) -> None:
    """What both runs used; nothing if neither reports any."""
    from medtasks.leaderboard.usage import amount, measured

    rows = [(one.label, one.unit, *map(amount, values)) for one, values in measured(used)]
    if rows:
        write("")
        table(("usage", "unit", "A", "B"), rows)


def _plain(found: Comparison) -> dict[str, Any]:
    lines = [
        {**asdict(line), "pair": None if line.pair is None else line.pair.model_dump(mode="json")}
        for line in found.lines
    ]
    return {"first": found.first, "second": found.second, "lines": lines}


def _row(line: Line) -> tuple[str, ...]:
    digits = DIGITS[line.unit]
    pair = line.pair

    def number(value: float | None, sign: str = "") -> str:
        return "" if value is None else f"{value:{sign}.{digits}f}"

    def chance(value: float | None) -> str:
        return "" if value is None else f"{value:.3g}"

    comparable = "no" if line.unlike else "yes"
    if pair is None:
        return (line.task, line.metric, *[""] * 6, "0", "0", f"{line.unpaired:,}", "", comparable)
    has_interval = pair.low is not None and pair.high is not None
    return (
        line.task,
        line.metric,
        number(line.first),
        number(line.second),
        number(pair.difference, "+"),
        f"[{number(pair.low, '+')}, {number(pair.high, '+')}]" if has_interval else "none",
        chance(pair.p_value),
        chance(pair.p_holm),
        f"{pair.items:,}",
        f"{pair.clusters:,}",
        f"{line.unpaired:,}",
        number(line.detectable),
        comparable,
    )


def _notes(found: Comparison) -> str:
    """Notes below the table: how to read it, and why rows are empty or not comparable."""
    tests = sum(line.pair is not None and line.pair.p_value is not None for line in found.lines)
    lines = [
        "Scores are over the items with a value in both runs; intervals and p are from the cluster sign-flip test.",
        f"p (Holm) is corrected over the {tests} tests of this table.",
        "detectable: the minimum detectable difference (80 % power); smaller ones are likely to be missed.",
    ]
    reasons = [(line, line.reason) for line in found.lines if line.reason is not None]
    tested = [one for one in reasons if one[0].pair is not None and one[0].pair.p_value is not None]
    lines += _grouped("no difference", [one for one in reasons if one not in tested])
    lines += _grouped("no interval", tested)
    few = [(line, line.pair.warning) for line in found.lines if line.pair is not None and line.pair.warning is not None]
    lines += _grouped("warning", few)
    unlike = [(line, reason) for line in found.lines for reason in line.unlike]
    lines += _grouped("not comparable", unlike)
    return "\n".join(f"  {printable(line)}" for line in lines)


def _grouped(what: str, reasons: list[tuple[Line, str]]) -> list[str]:
    """One line per reason, with the rows of the table that it applies to."""
    places: dict[str, dict[str, None]] = {}
    for line, reason in reasons:
        places.setdefault(reason, {})[f"{line.task} {line.metric}"] = None
    return [f"{what}: {reason} ({first_names(names)})" for reason, names in places.items()]
