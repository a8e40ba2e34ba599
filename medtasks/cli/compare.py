"""``medtasks compare`` and ``plan``: differences of runs, and those that can be detected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks.cli.console import Json, Prices, progress, table, write, write_json
from medtasks.core.errors import UsageError
from medtasks.core.text import grouped_notes, p_text, printable

if TYPE_CHECKING:
    from medtasks.leaderboard.rank.several_pairs import LeaningTest
    from medtasks.leaderboard.verify.scored_run import ScoredRun


def compare(
    first: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    second: Annotated[Path | None, typer.Argument(show_default=False)] = None,
    pairs: Annotated[list[str] | None, typer.Option(metavar="BASE:TUNED")] = None,
    task: str | None = None,
    metric: str | None = None,
    prices: Prices = None,
    as_json: Json = False,
) -> None:
    """Compare two runs: differences item by item, 95 % intervals, corrected tests, and what both
    used.
    """
    if pairs:
        if first is not None or prices is not None:
            raise UsageError(
                "--pairs takes the place of two directories, and of --prices; leave them out."
            )
        _compare_pairs(pairs, task, metric, as_json=as_json)
        return
    if first is None or second is None:
        raise UsageError("expected two directories of runs, or --pairs BASE:TUNED; give them.")
    from medtasks.leaderboard.board.models import read_by_model
    from medtasks.leaderboard.board.usage import Price, amount, measured, used_by
    from medtasks.leaderboard.rank.compare import compare_runs

    known_prices = {} if prices is None else read_by_model(prices, Price)
    runs = _read_runs((first, second))
    with progress("comparing") as bar:
        comparison = compare_runs(*runs, task=task, metric=metric, progress=bar)
    used = [used_by(run, known_prices, task) for run in runs]
    if as_json:
        usage: dict[str, Any] = {}
        for place, (run_usage, cost) in zip(("first", "second"), used, strict=True):
            usage[place] = run_usage.model_dump(mode="json")
            if cost is not None:
                usage[place]["cost"] = cost
        write_json({**vars(comparison), "usage": usage})
        return
    for letter, run in zip("AB", runs, strict=True):
        name = run.public.model_facts.get("name", run.model)
        write(f"{letter}: {printable(f'{name} ({run.public.folder})')}")
    write("")
    table(comparison.table.columns, comparison.table.rows)
    write("\n".join(comparison.table.notes))
    usage_rows = []
    for quantity, values in measured(used):
        usage_rows.append((quantity.label, quantity.unit, *map(amount, values)))
    if usage_rows:
        write("")
        table(("usage", "unit", "A", "B"), usage_rows)


def _compare_pairs(
    pairs: Sequence[str], group: str | None, metric: str | None, *, as_json: bool
) -> None:
    from medtasks.leaderboard.rank.several_pairs import compare_pairs

    names = [_two_directories(pair) for pair in pairs]
    distinct = list(dict.fromkeys(name for pair in names for name in pair))
    runs = dict(zip(distinct, _read_runs(map(Path, distinct)), strict=True))
    paired_runs = [(runs[base], runs[tuned]) for base, tuned in names]
    with progress("comparing") as bar:
        tests = compare_pairs(paired_runs, group=group, metric=metric, progress=bar)
    if as_json:
        write_json({"tests": tests})
        return
    _show_differences(tests)
    write("")
    _show_leaning(tests, len(pairs))
    write(
        "  One difference per pair and task, over the items with a value in both runs; p is "
        "two-sided, not corrected.",
        "  A task with few items counts as much as one with many; differences of one pair are not "
        "independent.",
    )
    write(*grouped_notes(_notes_on_differences(tests)))


def _two_directories(pair: str) -> tuple[str, str]:
    """The directories of the base and the tuned model."""
    parts = pair.split(":")
    if len(parts) != 2 or not all(parts):
        raise UsageError(
            f"--pairs {pair}: expected BASE:TUNED, two directories of runs without a colon; fix it."
        )
    base, tuned = parts
    return base, tuned


def _show_differences(tests: Sequence[LeaningTest]) -> None:
    from medtasks.leaderboard.rank.comparison import signed_number

    rows = []
    for test in tests:
        for pair in test.differences:
            difference = signed_number(pair.difference, test.unit, "+")
            rows.append((test.group, test.metric, pair.base, pair.tuned, pair.task, difference))
    table(("group", "metric", "base", "tuned", "task", "tuned - base"), rows)


def _show_leaning(tests: Sequence[LeaningTest], pairs: int) -> None:
    """The tests of whether the differences lean to one side."""
    rows = []
    for test in tests:
        compared = [pair for pair in test.differences if pair.difference is not None]
        equal = len(compared) - test.better - test.worse
        counts = (f"{pairs}", f"{test.better}", f"{test.worse}", f"{equal}")
        p_values = map(p_text, (test.sign_p, test.wilcoxon_p, test.least_p))
        rows.append((test.group, test.metric, *counts, *p_values))
    columns = (
        "group",
        "metric",
        "pairs",
        "better",
        "worse",
        "equal",
        "sign p",
        "Wilcoxon p",
        "lowest possible p",
    )
    table(columns, rows)


def _notes_on_differences(tests: Sequence[LeaningTest]) -> list[tuple[str, str]]:
    """Why differences are missing or not comparable, each with its place."""
    notes = []
    for test in tests:
        for pair in test.differences:
            place = f"{pair.tuned} - {pair.base} {pair.task} {test.metric}"
            if pair.reason:
                notes.append((f"no difference: {pair.reason}", place))
            for reason in pair.unlike:
                notes.append((f"not comparable: {reason}", place))
    return notes


def _read_runs(folders: Iterable[Path]) -> list[ScoredRun]:
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import finished_run
    from medtasks.scoring.run_cache import user_store

    with progress("reading results"):
        return [scored_run(finished_run(folder), user_store()) for folder in folders]


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

    runs = _read_runs(pilot) if pilot else []
    shares = share or SHARES
    planned = plan_task(
        task, metric, runs, score=score, icc=icc, difference=difference, shares=shares
    )
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
