"""``medtasks compare``: differences of two runs, or of several pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from medtasks.cli.console import table, write, write_json
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json, Prices
from medtasks.core.errors import UsageError
from medtasks.core.progress_bars import progress
from medtasks.core.text import grouped_notes, p_text, printable

if TYPE_CHECKING:
    from medtasks.leaderboard.rank.several_pairs import LeaningTest
    from medtasks.leaderboard.verify.scored_run import ScoredRun
    from medtasks.runs.usage import Usage


app = typer.Typer()


@app.command("compare", cls=PlainCommand)
def compare(
    first: Annotated[
        Path | None,
        typer.Argument(
            show_default=False,
            help="A run's directory (…_medtasks), or one that contains it.",
        ),
    ] = None,
    second: Annotated[
        Path | None, typer.Argument(show_default=False, help="Another run's directory.")
    ] = None,
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BASE:TUNED",
            help="Two runs' directories; repeat it. Sign test and Wilcoxon's test over all pairs "
            "and a group's tasks.",
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(help="Only this task or group.")] = None,
    metric: Annotated[str | None, typer.Option(help="Only this metric.")] = None,
    prices: Prices = None,
    human: Annotated[
        Path | None,
        typer.Option(
            help="Ratings by people (`medtasks rate`, or a CSV file) that correct differences in "
            "judged scores."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two runs item by item: differences, 95 % intervals, corrected tests, resources used.

    Example:
        medtasks compare results/A/TIME_medtasks results/B/TIME_medtasks --task mi_cxr
    """
    if pairs:
        if first is not None or prices is not None or human is not None:
            raise UsageError(
                "--pairs takes the place of two directories, and of --prices and --human; leave "
                "them out."
            )
        _compare_pairs(pairs, task, metric, as_json=as_json)
        return
    if first is None or second is None:
        raise UsageError("expected two directories of runs, or --pairs BASE:TUNED; give them.")
    _compare_two((first, second), task, metric, prices, human, as_json=as_json)


def _compare_two(
    folders: tuple[Path, Path],
    task: str | None,
    metric: str | None,
    prices: Path | None,
    human: Path | None,
    *,
    as_json: bool,
) -> None:
    """Print the comparison of two runs, corrected by people if they labelled them, and what both
    used.
    """
    from medtasks.cli.compared_latency import compared_latency, show_latency
    from medtasks.leaderboard.board.models import read_by_model
    from medtasks.leaderboard.board.usage import Price, used_by
    from medtasks.leaderboard.rank.compare import compare_runs
    from medtasks.leaderboard.rank.corrected_comparison import corrected_table, with_corrected

    price_of_model = {} if prices is None else read_by_model(prices, Price)
    first, second = read_runs(folders, whole=human is not None)
    with progress("comparing") as bar:
        comparison = compare_runs(first, second, task=task, metric=metric, progress=bar)
    if human is not None:
        comparison = with_corrected(comparison, (first, second), human, task=task, metric=metric)
    used = [used_by(run, price_of_model, task) for run in (first, second)]
    latency = compared_latency((first, second), folders, comparison.lines[0].task)
    if as_json:
        further = {"usage": _usage_in_json(used), "latency": latency}
        write_json({**vars(comparison), **further})
        return
    for letter, run in (("A", first), ("B", second)):
        name = run.public.model_facts.get("name", run.model)
        write(f"{letter}: {printable(f'{name} ({run.public.folder})')}")
    write("")
    table(comparison.table.columns, comparison.table.rows)
    write("\n".join(comparison.table.notes))
    if comparison.corrected:
        corrected = corrected_table(comparison.corrected, comparison.corrected_notes)
        table(corrected.columns, corrected.rows, title=f"\n{corrected.title}")
        write(*(f"  {printable(note.strip())}" for note in corrected.notes))
    _show_usage(used)
    show_latency(latency)


def _usage_in_json(used: Sequence[tuple[Usage, float | None]]) -> dict[str, Any]:
    """What each of two runs used, with its cost if it is known."""
    usage: dict[str, Any] = {}
    for place, (run_usage, cost) in zip(("first", "second"), used, strict=True):
        usage[place] = run_usage.model_dump(mode="json")
        if cost is not None:
            usage[place]["cost"] = cost
    return usage


def _show_usage(used: Sequence[tuple[Usage, float | None]]) -> None:
    """A row for each quantity that a run used."""
    from medtasks.leaderboard.board.usage import amount, measured

    rows = []
    for quantity, values in measured(used):
        rows.append((quantity.label, quantity.unit, *map(amount, values)))
    if rows:
        write("")
        table(("usage", "unit", "A", "B"), rows)


def _compare_pairs(
    pairs: Sequence[str], group: str | None, metric: str | None, *, as_json: bool
) -> None:
    """Print the tests over several pairs of runs."""
    from medtasks.leaderboard.rank.several_pairs import compare_pairs

    names = [_two_directories(pair) for pair in pairs]
    distinct: dict[str, None] = {}
    for base, tuned in names:
        distinct[base] = distinct[tuned] = None
    runs = dict(zip(distinct, read_runs(map(Path, distinct)), strict=True))
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
    """A row for each difference of a pair in a task."""
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


def read_runs(folders: Iterable[Path], *, whole: bool = False) -> list[ScoredRun]:
    """The scored runs in these directories, with ``whole`` with their samples, read while a bar is
    shown.
    """
    from medtasks.leaderboard.verify.scored_run import scored_run
    from medtasks.runs.find import finished_run
    from medtasks.scoring.run_cache import user_store

    with progress("reading results"):
        return [scored_run(finished_run(folder), user_store(), whole=whole) for folder in folders]
