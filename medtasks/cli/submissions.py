"""``medtasks leaderboard check`` and ``strip``: result directories made ready to be submitted."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from medtasks.cli.console import table, write, write_json
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Json, Results
from medtasks.core.errors import UsageError
from medtasks.core.progress_bars import progress
from medtasks.core.replacement import replaced
from medtasks.core.text import counted, printable

if TYPE_CHECKING:
    from medtasks.leaderboard.intake.check import CheckReport
    from medtasks.leaderboard.verify.rejudging import Rejudged
    from medtasks.leaderboard.verify.scored_run import ScoredRun

app = typer.Typer()


@app.command("check", cls=PlainCommand)
def check(
    results: Results,
    coverage: Annotated[
        float,
        typer.Option(min=0, max=1, help="Share of a release's records that must be prepared."),
    ] = 0.95,
    demonstration: Annotated[
        bool, typer.Option(help="Allow miniature data, as for `leaderboard build`.")
    ] = False,
    private: Annotated[
        bool, typer.Option(help="Only warn about rows that must not be public.")
    ] = False,
    quick: Annotated[bool, typer.Option(help="Do not compute learned metrics again.")] = False,
    strict: Annotated[bool, typer.Option(help="Exit with 1 for warnings too.")] = False,
    share: Annotated[
        str | None,
        typer.Option(
            "--rejudge",
            metavar="SHARE",
            help="Ask --judge again for a random share of the verdicts: 5%.",
        ),
    ] = None,
    judges: Annotated[
        list[str] | None,
        typer.Option("--judge", help="For --rejudge, as for `medtasks judge`; can be repeated."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Of --rejudge's choice, to repeat it (default: a random one)."),
    ] = None,
    rejudged: Annotated[
        Path | None,
        typer.Option(help="Write the result of --rejudge, for `leaderboard build`."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option(help="Show each finding with its place and fix.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check that result directories can be submitted: complete, comparable, scored by today's
    rules, no secrets.

    Examples:
        medtasks leaderboard check results
        medtasks leaderboard check results --json
    """
    from medtasks.core.findings import failed
    from medtasks.leaderboard.intake.check import check_results
    from medtasks.leaderboard.intake.submission import Requirements
    from medtasks.leaderboard.verify.rejudging import REJUDGED
    from medtasks.runs.find import no_run

    ask_again = None
    if share is not None:
        ask_again = _asking_again(share, judges or [], seed)
    elif rejudged is not None:
        raise UsageError("--rejudged writes what --rejudge finds; give --rejudge and --judge, too.")
    required = Requirements(coverage, demonstration=demonstration, public=not private)
    with progress("checking results") as bar:
        checked = check_results(
            results, required, rescore=not quick, ask_again=ask_again, progress=bar
        )
    if not checked.folders and {finding.code for finding in checked.findings} == {"LB101"}:
        raise no_run(results[0])
    if as_json:
        write_json(checked)
    else:
        _show_check(checked, verbose=verbose)
    if rejudged is not None:
        content = REJUDGED.dump_json(list(checked.rejudged), indent=1)
        with replaced(rejudged) as partial:
            partial.write_bytes(content + b"\n")
    if failed(checked.findings, strict):
        raise typer.Exit(1)


def _show_check(checked: CheckReport, *, verbose: bool) -> None:
    """Print the result for each submission, and the findings behind it if asked."""
    from medtasks.core.findings import COLUMNS, as_rows, summary
    from medtasks.leaderboard.intake.report import OVERVIEW, folded, overview

    table(OVERVIEW, overview(checked))
    if verbose:
        for name, findings in folded(checked).items():
            table(COLUMNS, as_rows(findings), title=f"\n{name}")
    if checked.rejudged:
        _show_rejudged(checked.rejudged)
    folders = counted(len(checked.folders), "result directory", "result directories")
    write(f"{folders}: {summary(checked.findings)}")
    if checked.findings and not verbose:
        write("--verbose shows each finding with its place and fix, --json all of them")


def _show_rejudged(comparisons: tuple[Rejudged, ...]) -> None:
    """How far verdicts agree with those that were asked again."""
    from medtasks.judge import agreement

    rows = []
    sentences = []
    for comparison in comparisons:
        for row in agreement.rows(comparison.agreement):
            rows.append((comparison.folder, comparison.rubric, *row))
        sentence = f"{comparison.folder}: {comparison.rubric}: {comparison}"
        sentences.append(printable(sentence))
    table(("directory", "rubric", *agreement.COLUMNS), rows)
    write("\n".join(sentences))


def _asking_again(
    text: str, judges: list[str], seed: int | None
) -> Callable[[ScoredRun], Iterator[Rejudged]]:
    """A function that asks the judges again for a random share of a run's verdicts."""
    from medtasks.judge.settings_sources import read_judges
    from medtasks.leaderboard.verify.rejudging import rejudge

    if not judges:
        raise UsageError(
            "--rejudge asks a judge again: name it with --judge, as for `medtasks judge`."
        )
    share = _share(text)
    chosen_seed = secrets.randbits(32) if seed is None else seed

    def ask_again(run: ScoredRun) -> Iterator[Rejudged]:
        return rejudge(run, read_judges(judges), share, chosen_seed)

    return ask_again


def _share(text: str) -> float:
    """The share in ``5%`` or ``0.05``."""
    whole = 100 if text.endswith("%") else 1
    try:
        share = float(text.removesuffix("%")) / whole
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(
            f"--rejudge is {text!r}, expected a share above 0 and at most 1, such as 5% or 0.05."
        )
    return share


@app.command("strip", cls=PlainCommand)
def strip(
    results: Annotated[
        Path,
        typer.Argument(
            show_default=False,
            help="A result directory (…_medtasks), or one that contains it.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Directory to create.")],
) -> None:
    """Copy a result directory without the rows that must not be shared; the scores do not
    change.

    Example:
        medtasks leaderboard strip results/MODEL/TIME_medtasks --out stripped
    """
    from medtasks.leaderboard.intake.remove_rows import remove_rows

    written = remove_rows(results, out, write)
    write(f"written: {written} (its scores are claimed: boards list them below those of responses)")
