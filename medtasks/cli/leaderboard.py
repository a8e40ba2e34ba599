"""``medtasks leaderboard``: pages of result directories."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli import submissions
from medtasks.cli.console import table, write
from medtasks.cli.help import PlainCommand, PlainGroup
from medtasks.cli.options import Prices, Results
from medtasks.core.cache import cache_root
from medtasks.core.errors import UsageError
from medtasks.core.progress_bars import progress
from medtasks.core.text import counted, grouped_notes, printable

if TYPE_CHECKING:
    from medtasks.leaderboard.schema.board import Board

app = typer.Typer(
    cls=PlainGroup,
    help="Build a leaderboard from result directories, or check submissions.",
    no_args_is_help=True,
)


@app.command("build", cls=PlainCommand)
def build(
    results: Results,
    out: Annotated[
        Path, typer.Option(help="Directory for the pages; an earlier site there is replaced.")
    ],
    title: Annotated[str, typer.Option(help="Title of the board.")] = "medtasks leaderboard",
    models: Annotated[
        Path | None,
        typer.Option(
            help="YAML file with names, sizes and types of models, and what they were trained on."
        ),
    ] = None,
    demonstration: Annotated[
        bool, typer.Option(help="Also rank results on miniature data, marked as such.")
    ] = False,
    prices: Prices = None,
    published: Annotated[
        bool, typer.Option(help="Show the figures of the papers, unranked.")
    ] = True,
    claimed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OWNER/NAME=DIRECTORY",
            help="A copy of a model's repository: shows its `.eval_results` as claimed, unranked; "
            "can be repeated.",
        ),
    ] = None,
    rejudged: Annotated[
        Path | None,
        typer.Option(
            help="What `leaderboard check --rejudged` wrote; pages show it with each run."
        ),
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(
            help="Ratings by people (`medtasks rate`, or a CSV file): shows corrected scores "
            "beside judged ones."
        ),
    ] = None,
    without_wrong_golds: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="People's verdicts on gold answers (`medtasks audit`): a further table shows the "
            "headline scores and ranks without the questions found wrong.",
        ),
    ] = None,
    figures: Annotated[
        str,
        typer.Option(help="Also draw each figure as files: formats of svg, png, pdf, with commas."),
    ] = "",
    fresh: Annotated[
        bool, typer.Option(help="Read every directory again, without the cache.")
    ] = False,
) -> None:
    """Rank the runs in result directories, and write a static site with figures and exports.

    Example:
        medtasks leaderboard build results --out page
    """
    from medtasks.leaderboard.publish import BoardOptions, publish

    formats = _figure_formats(figures)
    options = BoardOptions(
        title=title,
        models=models,
        prices=prices,
        rejudged=rejudged,
        human=human,
        claimed=claimed or (),
        demonstration=demonstration,
        published=published,
        wrong_golds=without_wrong_golds,
    )
    cache = None if fresh else cache_root()
    with progress("reading results") as bar:
        board = publish(
            results,
            out,
            options,
            figures=formats,
            cache=cache,
            progress=bar,
        )
    report(board, out)
    if rejudged is not None:
        _show_absent(rejudged, board)
    if without_wrong_golds is not None:
        _show_without_table(without_wrong_golds, board)


def _figure_formats(text: str) -> list[str]:
    """The file formats in a list with commas."""
    from medtasks.leaderboard.schema.plot_data import FORMATS

    formats = [name.strip() for name in text.split(",") if name.strip()]
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"--figures {name}: unknown format; choose from {', '.join(FORMATS)}.")
    return formats


def _show_absent(rejudged: Path, board: Board) -> None:
    """The runs whose verdicts were compared, but which are not on the board."""
    from medtasks.leaderboard.verify.rejudging import read_rejudged

    on_board = {run.digest for run in board.runs.values()}
    for comparison in read_rejudged(rejudged):
        if comparison.run not in on_board:
            absent = f"{comparison.folder} is not on this board as it was checked; left out"
            write(printable(f"{rejudged}: {absent}"))


def _show_without_table(verdicts: Path, board: Board) -> None:
    """That no ranked score has a question whose gold answer people found wrong."""
    from medtasks.leaderboard.board.sensitivity import WITHOUT_WRONG_GOLDS
    from medtasks.leaderboard.verify.gold_verdicts import WRONG, read_verdicts

    for benchmark in board.benchmarks:
        if any(part.name == WITHOUT_WRONG_GOLDS for part in benchmark.tables):
            return
    questions = counted(len(read_verdicts(verdicts).found(WRONG)), "question")
    absent = f"most raters found {questions} wrong, of which no ranked headline score has any"
    write(printable(f"{verdicts}: no table without wrong gold answers: {absent}"))


def report(board: Board, out: Path) -> None:
    """Print what the rankings show, what is not comparable, what was refused, which ratings by
    people are not used, and where the pages are.
    """
    _show_findings(board)
    _show_not_comparable(board)
    if board.refused:
        rows = [(refused.folder, refused.reason) for refused in board.refused]
        table(("refused", "reason"), rows)
    if not board.demonstration and any(run.mini for run in board.runs.values()):
        write(
            "Runs on miniature data are not ranked. For a rehearsal, build and check with "
            "--demonstration."
        )
    for benchmark in board.benchmarks:
        if benchmark.published_problem:
            write(f"{benchmark.title}: published figures left out: {benchmark.published_problem}")
    write(*(printable(note) for note in board.human_notes))
    runs = counted(len(board.runs), "run")
    models = counted(len(board.models), "model")
    write(f"{runs} of {models}: {out / 'index.html'}")


def _show_findings(board: Board) -> None:
    """A row for each ranking of several models; why nothing else is ranked, grouped."""
    from medtasks.leaderboard.site.charts import charts

    rows: list[tuple[str, str, str]] = []
    notes: list[tuple[str, str]] = []
    for benchmark in board.benchmarks:
        for chart in charts(board, benchmark):
            title = chart.benchmark.title
            label = chart.ranking.column.label
            if len(chart.ranking.ranked) > 1:
                rows.append((title, label, chart.finding))
            else:
                notes.append((chart.finding.rstrip("."), f"{title}: {label}"))
    if rows:
        table(("benchmark", "score", "finding"), rows)
    write(*grouped_notes(notes))


def _show_not_comparable(board: Board) -> None:
    """A row for each model and reason, with the benchmarks that it holds for."""
    from medtasks.leaderboard.site.overview import not_comparable

    titles: dict[tuple[str, str], dict[str, None]] = {}
    for result in not_comparable(board):
        for reason in result.reasons:
            model_and_reason = (result.model.name, reason)
            titles.setdefault(model_and_reason, {})[result.benchmark.title] = None
    rows = []
    for (model, reason), benchmarks in titles.items():
        rows.append((model, ", ".join(benchmarks), reason))
    if rows:
        table(("not comparable", "benchmarks", "reason"), rows)


app.add_typer(submissions.app)
