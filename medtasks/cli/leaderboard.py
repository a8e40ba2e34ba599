"""``medtasks leaderboard``: build pages from result directories, and check submissions."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import Json, Prices, Results, notes, progress, table, write, write_json
from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.text import counted

if TYPE_CHECKING:
    from medtasks.leaderboard.board.board import Board

app = typer.Typer(help="Leaderboard pages from result directories.", no_args_is_help=True)

_VARYING = re.compile(r"[0-9a-f]{8,}…?|[\d,]+ of [\d,]+(?= documents)")
_OF_OTHERS = re.compile(r" \(and \d+ more of other tasks\)$")


@app.command("build")
def build(
    results: Results,
    out: Annotated[Path, typer.Option("--out", help="Directory for the pages; an earlier site there is replaced.")],
    title: Annotated[str, typer.Option("--title", help="Title of the board.")] = "medtasks leaderboard",
    models: Annotated[
        Path | None,
        typer.Option(
            "--models", help="YAML file with names, sizes and types of models, and what they were trained on."
        ),
    ] = None,
    demonstration: Annotated[
        bool, typer.Option("--demonstration", help="Also rank results on miniature data, marked as such.")
    ] = False,
    prices: Prices = None,
    published: Annotated[
        bool, typer.Option("--published/--no-published", help="Show the figures of the papers, unranked.")
    ] = True,
    figures: Annotated[
        str, typer.Option("--figures", help="Also draw each figure as files: formats of svg, png, pdf, with commas.")
    ] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Read every directory again, without the cache.")] = False,
) -> None:
    """Rank the runs in result directories, and write a static site with figures and exports."""
    from medtasks.leaderboard.board.board import FORMATS
    from medtasks.leaderboard.publish import publish

    formats = [one.strip() for one in figures.split(",") if one.strip()]
    if unknown := [one for one in formats if one not in FORMATS]:
        raise UsageError(f"--figures {unknown[0]}: unknown format; choose from {', '.join(FORMATS)}.")
    with progress("reading results") as bar:
        board = publish(
            results,
            out,
            title=title,
            models=models,
            demonstration=demonstration,
            published=published,
            prices=prices,
            figures=formats,
            cache=None if fresh else cache_root(),
            progress=bar,
        )
    report(board, out)


def report(board: Board, out: Path) -> None:
    """Print what the rankings show, what is not comparable, what was refused, and where the pages are."""
    from medtasks.leaderboard.site.tables import charts, is_beside_its_model

    shown = [(benchmark.title, one) for benchmark in board.benchmarks for one in charts(board, benchmark)]
    rows = [[title, one.ranking.column.label, one.finding] for title, one in shown if len(one.ranking.ranked) > 1]
    if rows:
        table(("benchmark", "score", "finding"), rows)
    alone = [(title, one) for title, one in shown if len(one.ranking.ranked) < 2]
    for line in notes((one.finding.rstrip("."), f"{title}: {one.ranking.column.label}") for title, one in alone):
        write(line)
    not_comparable = Counter(
        (board.models[one.row.model].name, _VARYING.sub("…", _OF_OTHERS.sub("", reason)))
        for benchmark in board.benchmarks
        for found in benchmark.tables
        for one in found.apart
        if not is_beside_its_model(found, one)
        for reason in set(one.reasons)
    )
    if not_comparable:
        rows = [[model, reason, str(count)] for (model, reason), count in sorted(not_comparable.items())]
        table(("not comparable", "reason", "rows"), rows)
    if board.refused:
        table(("refused", "reason"), [[one.folder, one.reason] for one in board.refused])
    write(f"{counted(len(board.runs), 'run')} of {counted(len(board.models), 'model')}: {out / 'index.html'}")


@app.command("check")
def check(
    results: Results,
    coverage: Annotated[
        float, typer.Option("--coverage", min=0, max=1, help="Share of a release's records that must be prepared.")
    ] = 0.95,
    demonstration: Annotated[bool, typer.Option("--demonstration", help="Allow miniature data.")] = False,
    private: Annotated[bool, typer.Option("--private", help="Only warn about rows that must not be public.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Do not compute learned metrics again.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 for warnings too.")] = False,
    as_json: Json = False,
) -> None:
    """Check that result directories can be submitted: complete, comparable, scored by today's rules, no secrets."""
    from medtasks.core.findings import COLUMNS, as_rows, summary
    from medtasks.leaderboard.intake.check import check_results
    from medtasks.runs.folder import no_run

    with progress("checking results") as bar:
        found = check_results(
            results,
            coverage=coverage,
            demonstration=demonstration,
            public=not private,
            rescore=not quick,
            progress=bar,
        )
    if not found.folders and {one.code for one in found.findings} == {"LB101"}:
        raise no_run(results[0])
    if as_json:
        write_json(found)
    else:
        if found.findings:
            table(COLUMNS, as_rows(found.findings))
        folders = counted(len(found.folders), "result directory", "result directories")
        write(f"{folders}: {summary(found.findings)}")
    if found.failed(strict):
        raise typer.Exit(1)


@app.command("strip")
def strip(
    results: Annotated[
        Path, typer.Argument(help="A result directory (…_medtasks), or one that contains it.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", help="Directory to create.")],
) -> None:
    """Copy a result directory without the rows that must not be shared; the scores do not change."""
    from medtasks.leaderboard.intake.remove_rows import remove_rows

    written = remove_rows(results, out, write)
    write(f"written: {written} (its scores are claimed: boards list them below those of responses)")
