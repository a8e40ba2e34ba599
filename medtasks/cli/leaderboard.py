"""``medtasks leaderboard``, ``view`` and ``export``: pages of result directories, submissions,
other tools' formats.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import sys
import webbrowser
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import Json, Prices, Results, progress, table, write, write_json
from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.files import replaced
from medtasks.core.text import counted, grouped_notes, printable

if TYPE_CHECKING:
    from medtasks.leaderboard.schema.board import Board
    from medtasks.leaderboard.verify.rejudging import Rejudged
    from medtasks.leaderboard.verify.scored_run import ScoredRun

app = typer.Typer(help="Leaderboard pages from result directories.", no_args_is_help=True)
exports = typer.Typer(help="Results in the formats of other tools.", no_args_is_help=True)

Required = Annotated[Path, typer.Option()]
RequiredText = Annotated[str, typer.Option()]


@app.command("build")
def build(
    results: Results,
    out: Required,
    title: str = "medtasks leaderboard",
    models: Path | None = None,
    demonstration: bool = False,
    prices: Prices = None,
    published: bool = True,
    claimed: Annotated[list[str] | None, typer.Option(metavar="OWNER/NAME=DIRECTORY")] = None,
    rejudged: Path | None = None,
    figures: str = "",
    fresh: bool = False,
) -> None:
    """Rank the runs in result directories, and write a static site with figures and exports."""
    from medtasks.leaderboard.publish import publish
    from medtasks.leaderboard.schema.board import FORMATS

    formats = [one.strip() for one in figures.split(",") if one.strip()]
    if unknown := [one for one in formats if one not in FORMATS]:
        raise UsageError(
            f"--figures {unknown[0]}: unknown format; choose from {', '.join(FORMATS)}."
        )
    with progress("reading results") as bar:
        board = publish(
            results,
            out,
            title=title,
            models=models,
            demonstration=demonstration,
            published=published,
            prices=prices,
            claimed=claimed or (),
            rejudged=rejudged,
            figures=formats,
            cache=None if fresh else cache_root(),
            progress=bar,
        )
    report(board, out)
    if rejudged is not None:
        from medtasks.leaderboard.verify.rejudging import read_rejudged

        shown = {run.digest for run in board.runs.values()}
        absent = (one.folder for one in read_rejudged(rejudged) if one.run not in shown)
        write(
            *(
                printable(f"{rejudged}: {name} is not on this board as it was checked; left out")
                for name in absent
            )
        )


def report(board: Board, out: Path) -> None:
    """Print what the rankings show, what is not comparable, what was refused, and where the pages
    are.
    """
    from medtasks.leaderboard.site.charts import charts
    from medtasks.leaderboard.site.overview import not_comparable

    findings, notes = [], []
    for one in (chart for benchmark in board.benchmarks for chart in charts(board, benchmark)):
        title, label = one.benchmark.title, one.ranking.column.label
        if len(one.ranking.ranked) > 1:
            findings.append([title, label, one.finding])
        else:
            notes.append((one.finding.rstrip("."), f"{title}: {label}"))
    if findings:
        table(("benchmark", "score", "finding"), findings)
    write(*grouped_notes(notes))
    apart: dict[tuple[str, str], dict[str, None]] = {}
    for other in not_comparable(board):
        for reason in other.reasons:
            apart.setdefault((other.model.name, reason), {})[other.benchmark.title] = None
    if apart:
        rows = [(model, ", ".join(titles), reason) for (model, reason), titles in apart.items()]
        table(("not comparable", "benchmarks", "reason"), rows)
    if board.refused:
        table(("refused", "reason"), [[one.folder, one.reason] for one in board.refused])
    if not board.demonstration and any(run.mini for run in board.runs.values()):
        write(
            "Runs on miniature data are not ranked. For a rehearsal, build and check with --demonstration."
        )
    for benchmark in board.benchmarks:
        if benchmark.published_problem:
            write(f"{benchmark.title}: published figures left out: {benchmark.published_problem}")
    write(
        f"{counted(len(board.runs), 'run')} of {counted(len(board.models), 'model')}: {out / 'index.html'}"
    )


@app.command("check")
def check(
    results: Results,
    coverage: Annotated[float, typer.Option(min=0, max=1)] = 0.95,
    demonstration: bool = False,
    private: bool = False,
    quick: bool = False,
    strict: bool = False,
    share: Annotated[str | None, typer.Option("--rejudge", metavar="SHARE")] = None,
    judges: Annotated[list[str] | None, typer.Option("--judge")] = None,
    seed: Annotated[int | None, typer.Option(min=0)] = None,
    rejudged: Path | None = None,
    verbose: bool = False,
    as_json: Json = False,
) -> None:
    """Check that result directories can be submitted: complete, comparable, scored by today's
    rules, no secrets.
    """
    from medtasks.core.findings import COLUMNS, as_rows, failed, summary
    from medtasks.judge import agreement
    from medtasks.leaderboard.intake.check import check_results
    from medtasks.leaderboard.intake.report import OVERVIEW, folded, overview
    from medtasks.leaderboard.verify.rejudging import REJUDGED
    from medtasks.runs.find import no_run

    ask_again = None if share is None else _asking_again(share, judges or [], seed)
    if rejudged is not None and ask_again is None:
        raise UsageError("--rejudged writes what --rejudge finds; give --rejudge and --judge, too.")
    with progress("checking results") as bar:
        found = check_results(
            results,
            coverage=coverage,
            demonstration=demonstration,
            public=not private,
            rescore=not quick,
            ask_again=ask_again,
            progress=bar,
        )
    if not found.folders and {one.code for one in found.findings} == {"LB101"}:
        raise no_run(results[0])
    if as_json:
        write_json(found)
    else:
        table(OVERVIEW, overview(found))
        for name, findings in folded(found).items() if verbose else ():
            table(COLUMNS, as_rows(findings), title=f"\n{name}")
        if found.rejudged:
            rows = [
                (one.folder, one.rubric, *row)
                for one in found.rejudged
                for row in agreement.rows(one.agreement)
            ]
            table(("directory", "rubric", *agreement.COLUMNS), rows)
            write(
                "\n".join(printable(f"{one.folder}: {one.rubric}: {one}") for one in found.rejudged)
            )
        folders = counted(len(found.folders), "result directory", "result directories")
        write(f"{folders}: {summary(found.findings)}")
        if found.findings and not verbose:
            write("--verbose shows each finding with its place and fix, --json all of them")
    if rejudged is not None:
        with replaced(rejudged) as partial:
            partial.write_bytes(REJUDGED.dump_json([*found.rejudged], indent=1) + b"\n")
    if failed(found.findings, strict):
        raise typer.Exit(1)


def _asking_again(
    share: str, judges: list[str], seed: int | None
) -> Callable[[ScoredRun], Iterator[Rejudged]]:
    from medtasks.judge.settings import read_judges
    from medtasks.leaderboard.verify.rejudging import rejudge

    if not judges:
        raise UsageError(
            "--rejudge asks a judge again: name it with --judge, as for `medtasks judge`."
        )
    try:
        part = float(share.removesuffix("%")) / (100 if share.endswith("%") else 1)
    except ValueError:
        part = 0.0
    if not 0 < part <= 1:
        raise UsageError(
            f"--rejudge is {share!r}, expected a share above 0 and at most 1, such as 5% or 0.05."
        )
    chosen = secrets.randbits(32) if seed is None else seed
    return lambda run: rejudge(run, read_judges(judges), part, chosen)


@app.command("strip")
def strip(results: Annotated[Path, typer.Argument(show_default=False)], out: Required) -> None:
    """Copy a result directory without the rows that must not be shared; the scores do not
    change.
    """
    from medtasks.leaderboard.intake.remove_rows import remove_rows

    written = remove_rows(results, out, write)
    write(f"written: {written} (its scores are claimed: boards list them below those of responses)")


def view(
    results: Results,
    port: Annotated[int, typer.Option(min=0, max=65535)] = 0,
    no_browser: bool = False,
) -> None:
    """Show results in a browser: the board, every sample with its pictures, and runs under way."""
    from medtasks.leaderboard.view.server import View, in_background, serve
    from medtasks.runs.find import NO_RUN

    shown = View(results)
    if not shown.found:
        write(f"{', '.join(map(str, results))}: {NO_RUN} and no run under way yet.")

    def ready(address: str) -> None:
        write(f"{address} (only from this computer; Ctrl+C ends it)")
        if not no_browser:
            in_background(partial(webbrowser.open, address))

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(shown, port, ready))
    shown.close()
    sys.stdout.flush()
    os._exit(
        0
    )  # a thread that still draws must neither delay the end nor be stopped within a library


@exports.command("inspect")
def inspect(results: Results, out: Required) -> None:
    """Write Inspect logs, one `.eval` file for each run and task, for `inspect view`."""
    from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs

    with progress("writing logs"):
        written, notes = write_inspect_logs(results, out)
    write(*notes)
    write(f"{counted(len(written), 'log')}: {out} (inspect view --log-dir {out})")


@exports.command("hub")
def hub(
    results: Results,
    model: RequiredText,
    out: Path = Path(),
    source_url: str | None = None,
    pull_request: Annotated[bool, typer.Option("--push")] = False,
) -> None:
    """Write a model's headline scores for its page on the hub: `.eval_results/BENCHMARK.yaml`."""
    from medtasks.leaderboard.exports.hub import hub_files, push, write_hub_files

    with progress("reading results"):
        files, refused = hub_files(results, model, source_url=source_url)
    write(*map(printable, refused))
    if pull_request:
        write(f"pull request: {push(files, model)}")
        return
    write(*(f"written: {path}" for path in write_hub_files(files, out)))


@exports.command("benchmark")
def benchmark(
    name: Annotated[str, typer.Argument(show_default=False)], out: Path = Path("eval.yaml")
) -> None:
    """Write `eval.yaml`, with which a dataset's owner registers the benchmark on the hub."""
    from medtasks.leaderboard.exports.hub import benchmark_file

    content = benchmark_file(name)
    with replaced(out) as partial:
        partial.write_bytes(content)
    write(f"written: {out}; put it into the root of the dataset's repository")


@exports.command("every-eval-ever")
def every_eval_ever(
    results: Results,
    model: RequiredText,
    organization: RequiredText,
    relationship: str = "third_party",
    out: Path = Path("data"),
) -> None:
    """Write records for Every Eval Ever: headline scores, and samples where the licence allows."""
    from medtasks.leaderboard.exports.every_eval_ever import write_records

    with progress("writing records"):
        written, notes = write_records(
            results, out, model=model, organization=organization, relationship=relationship
        )
    write(*map(printable, notes), *(f"written: {path}" for path in written))
