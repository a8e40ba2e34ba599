"""``medtasks export``: results in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from medtasks.cli.console import Results, progress, write
from medtasks.core.text import counted, printable

app = typer.Typer(help="Results in the formats of other tools.", no_args_is_help=True)


@app.callback()
def export() -> None:
    """Results in the formats of other tools."""


@app.command("inspect")
def inspect(
    results: Results,
    out: Annotated[Path, typer.Option("--out", help="The new directory.")],
) -> None:
    """Write Inspect logs, one `.eval` file for each run and task, for `inspect view`."""
    from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs

    with progress("writing logs"):
        written, notes = write_inspect_logs(results, out)
    for note in notes:
        write(note)
    write(f"{counted(len(written), 'log')}: {out} (inspect view --log-dir {out})")


@app.command("hub")
def hub(
    results: Results,
    model: Annotated[str, typer.Option("--model", help="The model's repository on the hub: owner/name.")],
    out: Annotated[Path, typer.Option("--out", help="Directory of the repository's files.")] = Path(),
    source_url: Annotated[
        str | None, typer.Option("--source-url", help="Address of the evidence, such as a leaderboard.")
    ] = None,
    pull_request: Annotated[bool, typer.Option("--push", help="Open a pull request, and write nothing here.")] = False,
) -> None:
    """Write a model's headline scores for its page on the hub: `.eval_results/BENCHMARK.yaml`."""
    from medtasks.leaderboard.exports.hub import hub_files, push, write_hub_files

    with progress("reading results"):
        files, refused = hub_files(results, model, source_url=source_url)
    for reason in refused:
        write(printable(reason))
    if pull_request:
        write(f"pull request: {push(files, model)}")
        return
    for path in write_hub_files(files, out):
        write(f"written: {path}")


@app.command("benchmark")
def benchmark(
    name: Annotated[str, typer.Argument(help="The benchmark.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", help="The file.")] = Path("eval.yaml"),
) -> None:
    """Write `eval.yaml`, with which a dataset's owner registers the benchmark on the hub."""
    from medtasks.leaderboard.exports.hub import benchmark_file

    out.write_bytes(benchmark_file(name))
    write(f"written: {out}; put it into the root of the dataset's repository")


@app.command("every-eval-ever")
def every_eval_ever(
    results: Results,
    model: Annotated[str, typer.Option("--model", help="The model's name on the hub: owner/name.")],
    organization: Annotated[str, typer.Option("--organization", help="Who reports the results.")],
    relationship: Annotated[
        str,
        typer.Option(
            "--relationship", help="Of the evaluators to the model: first_party, third_party, collaborative or other."
        ),
    ] = "third_party",
    out: Annotated[Path, typer.Option("--out", help="The directory `data` of the collection.")] = Path("data"),
) -> None:
    """Write records for Every Eval Ever: headline scores, and samples where the licence allows."""
    from medtasks.leaderboard.exports.every_eval_ever import write_records

    with progress("writing records"):
        written, notes = write_records(results, out, model=model, organization=organization, relationship=relationship)
    for note in notes:
        write(printable(note))
    for path in written:
        write(f"written: {path}")
