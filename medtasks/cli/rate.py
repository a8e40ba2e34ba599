"""``medtasks rate``: people rate answers in a browser, without knowing whose they are."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import webbrowser
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import fail, write
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Results
from medtasks.core.errors import UsageError
from medtasks.core.process_end import end_process
from medtasks.core.text import counted

if TYPE_CHECKING:
    from medtasks.leaderboard.rate.session import RatingSession

app = typer.Typer()


@app.command("rate", cls=PlainCommand)
def rate(
    results: Results,
    rater: Annotated[
        str, typer.Option(show_default=False, help="Your name or initials; names your file.")
    ],
    rubric: Annotated[str | None, typer.Option(help="Rubric under which to rate answers.")] = None,
    questions: Annotated[
        Path | None,
        typer.Option(
            help="Check the gold answers of the questions in this CSV file of `medtasks audit`."
        ),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(min=1, help="Number of answers to draw (default: 200; questions: all)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of the draw, the same for all raters (default: 0).")
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(min=0, help="Answers that all raters get (default: 50; questions: all)."),
    ] = None,
    hide_reference: Annotated[
        bool | None,
        typer.Option(
            "--hide-reference/--show-reference",
            show_default=False,
            help="Whether to hide the reference until the rater asks for it (default: show it).",
        ),
    ] = None,
    ratings: Annotated[
        Path | None,
        typer.Option(help="Folder of rating files (default: ratings/ beside the first results)."),
    ] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any.")] = 0,
    no_browser: Annotated[bool, typer.Option(help="Only print the address.")] = False,
) -> None:
    """Rate answers blindly in a browser: a random sample of them, with known probabilities.

    Example:
        medtasks rate results --rubric kvasir_aspects --rater ann
    """
    from medtasks.judge.rating_file import ratings_beside
    from medtasks.judge.rating_records import GOLD
    from medtasks.leaderboard.rate.opening import answers_to_rate, questions_to_rate
    from medtasks.leaderboard.rate.options import RatingOptions

    if (rubric is None) == (questions is None):
        raise UsageError(
            "medtasks rate needs either --rubric, to rate answers, or --questions, to check gold "
            "answers; give one of them."
        )
    options = RatingOptions(
        rubric=rubric or GOLD,
        rater=rater,
        folder=ratings or ratings_beside(results[0]),
        sample=sample,
        seed=seed,
        overlap=overlap,
        hide_reference=hide_reference,
    )
    if questions is None:
        opened = answers_to_rate(results, options)
    else:
        opened = questions_to_rate(results, questions, options)
    with opened as session:
        _describe(session, options.path)
        _serve(session, port, open_browser=not no_browser)
        progress = session.progress()
        write(f"{progress.rated:,} of {progress.total:,} rated: {options.path}")
        if questions is None and not progress.open:
            write(f"next: medtasks score RUN --human {options.folder}")
        elif not progress.open:
            write(f"next: medtasks audit RESULTS --verdicts {options.folder}")
    sys.stdout.flush()
    end_process(0)  # without waiting for a thread that still reads


def _serve(session: RatingSession, port: int, *, open_browser: bool) -> None:
    """Serve the session until Ctrl+C."""
    from medtasks.leaderboard.rate.server import serve
    from medtasks.leaderboard.view.server import in_background

    def ready(address: str) -> None:
        write(f"{address} (only from this computer; Ctrl+C ends it)")
        if open_browser:
            in_background(partial(webbrowser.open, address))

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(session, port, ready, fail))


def _describe(session: RatingSession, path: Path) -> None:
    """Print what was drawn, what is left out, and where ratings are written."""
    plan, progress = session.plan, session.progress()
    population = sum(stratum.population for stratum in plan.strata)
    strata = counted(len(plan.strata), "stratum", "strata")
    write(f"{progress.total:,} of {population:,} drawn, from {strata}: {path}")
    for reason, count in sorted(plan.left_out.items()):
        write(f"  {count:,} left out: {reason}")
    if session.was_torn:
        write("  the last line of the file was cut off and is removed; its answer is asked again")
    if progress.rated:
        write(f"  {progress.rated:,} already rated; continuing with the others")
