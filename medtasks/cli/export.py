"""``medtasks export``: results in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import write
from medtasks.cli.help import PlainCommand, PlainGroup
from medtasks.cli.options import Results
from medtasks.core.extras import needs
from medtasks.core.progress_bars import progress
from medtasks.core.replacement import replaced
from medtasks.core.text import counted, printable

app = typer.Typer(
    cls=PlainGroup, help="Export results to the formats of other tools.", no_args_is_help=True
)


@app.command("inspect", cls=PlainCommand)
def inspect(
    results: Results, out: Annotated[Path, typer.Option(help="The new directory.")]
) -> None:
    """Write Inspect logs, one `.eval` file for each run and task, for `inspect view`.

    Example:
        medtasks export inspect results --out logs
    """
    from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs

    with progress("writing logs"):
        written = write_inspect_logs(results, out)
    write(*written.notes)
    write(f"{counted(len(written.files), 'log')}: {out} (inspect view --log-dir {out})")


@app.command("hub", cls=PlainCommand)
def hub(
    results: Results,
    model: Annotated[str, typer.Option(help="The model's repository on the hub: owner/name.")],
    out: Annotated[Path, typer.Option(help="Directory of the repository's files.")] = Path(),
    source_url: Annotated[
        str | None, typer.Option(help="Address of the evidence, such as a leaderboard.")
    ] = None,
    pull_request: Annotated[
        bool, typer.Option("--push", help="Open a pull request, and write nothing here.")
    ] = False,
) -> None:
    """Write a model's headline scores for its page on the hub: `.eval_results/BENCHMARK.yaml`.

    Example:
        medtasks export hub results/MODEL --model OWNER/NAME --push
    """
    with needs("hub", "medtasks export hub"):
        from medtasks.leaderboard.exports.hub import hub_files, push, write_hub_files

    with progress("reading results"):
        files, refused = hub_files(results, model, source_url=source_url)
    write(*map(printable, refused))
    if pull_request:
        write(f"pull request: {push(files, model)}")
        return
    write(*(f"written: {path}" for path in write_hub_files(files, out)))


@app.command("benchmark", cls=PlainCommand)
def benchmark(
    name: Annotated[str, typer.Argument(show_default=False, help="The benchmark.")],
    out: Annotated[Path, typer.Option(help="The file.")] = Path("eval.yaml"),
) -> None:
    """Write `eval.yaml`, with which a dataset's owner registers the benchmark on the hub.

    Example:
        medtasks export benchmark med_cmr
    """
    with needs("hub", "medtasks export benchmark"):
        from medtasks.leaderboard.exports.hub import benchmark_file

    content = benchmark_file(name)
    with replaced(out) as partial:
        partial.write_bytes(content)
    write(f"written: {out}; put it into the root of the dataset's repository")


@app.command("every-eval-ever", cls=PlainCommand)
def every_eval_ever(
    results: Results,
    model: Annotated[str, typer.Option(help="The model's name on the hub: owner/name.")],
    organization: Annotated[str, typer.Option(help="Who reports the results.")],
    relationship: Annotated[
        str,
        typer.Option(
            help="Of the evaluators to the model: first_party, third_party, collaborative or other."
        ),
    ] = "third_party",
    out: Annotated[Path, typer.Option(help="The directory `data` of the collection.")] = Path(
        "data"
    ),
) -> None:
    """Write records for Every Eval Ever: headline scores, and samples where the licence allows.

    Example:
        medtasks export every-eval-ever results/MODEL --model OWNER/NAME --organization LAB
    """
    from medtasks.leaderboard.exports.every_eval_ever import write_records

    with progress("writing records"):
        written = write_records(
            results, out, model=model, organization=organization, relationship=relationship
        )
    write(*map(printable, written.notes), *(f"written: {path}" for path in written.files))
