"""The ``medtasks`` commands; errors become one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import medtasks
from medtasks.catalog.guest_code import raised_at
from medtasks.cli import (
    audit,
    benchmark_folders,
    compare,
    console,
    demo,
    doctor,
    export,
    fetch,
    judge,
    leaderboard,
    packages,
    plan,
    prepare,
    rate,
    run,
    score,
    tasks,
    view,
)
from medtasks.cli.help import PlainGroup
from medtasks.core.errors import (
    INTERRUPTED,
    MedtasksError,
    UsageError,
    interrupts_arrive,
    machine_fault,
)

app = typer.Typer(
    name="medtasks",
    cls=PlainGroup,
    help="Medical vision-language benchmarks as task plug-ins for lmms-eval.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for module in (tasks, plan, run, score, compare, judge, rate, audit, view, packages):
    app.add_typer(module.app)
for module in (benchmark_folders, doctor, fetch, demo):
    app.add_typer(module.app)
app.add_typer(prepare.app, name="prepare")
app.add_typer(leaderboard.app, name="leaderboard")
app.add_typer(export.app, name="export")

STOPPED = "stopped; finished work is kept: run the same command again to continue"


def _print_version(asked: bool) -> None:
    """Print the version and end, if ``--version`` is given."""
    if asked:
        console.write(f"medtasks {medtasks.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Medical vision-language benchmarks as task plug-ins for lmms-eval."""
    del version  # its callback has ended the program


def main() -> None:
    """Run the command line. Exit codes: 0 done, 1 the command failed, 2 wrong usage, 130
    interrupted.
    """
    # read as numpy is imported: its threads would spin between small products, for up to a quarter
    # of the CPU time
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _open_closed_streams()
    try:
        with interrupts_arrive():
            typer.main.get_command(app)()
    except MedtasksError as error:
        console.fail(error)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except (OSError, RuntimeError, MemoryError) as error:
        sentence = _sentence_of(error)
        if sentence is None:
            raise
        console.fail(sentence)
        sys.exit(1)
    except KeyboardInterrupt:  # before or after the command, which click guards
        console.fail(STOPPED)
        sys.exit(INTERRUPTED)
    except SystemExit as end:
        if end.code == INTERRUPTED:
            console.fail(STOPPED)
            raise
        place = raised_at(end)
        if place is None:
            raise
        # its code 0 would pass for success
        console.fail(f"{place}: the package ended the program ({end!r}); fix or uninstall it.")
        sys.exit(1)


def _sentence_of(error: BaseException) -> str | None:
    """An error of the machine or of a file in one sentence; None for any other, which is a mistake
    of ours.
    """
    fault = machine_fault(error)
    if fault is not None:
        return str(fault)
    if isinstance(error, MemoryError):
        return (
            "this needs more memory than the process may have; free some, or split the input into "
            "smaller files."
        )
    if not isinstance(error, OSError):
        return None
    if error.filename is None:
        return f"{type(error).__name__}: {error}"
    name = os.fsdecode(error.filename)
    reason = error.strerror or error
    return f"{name}: cannot be read or written ({reason}); fix that, or give another path."


def _open_closed_streams() -> None:
    """Let output go nowhere where the caller closed it: Python has no stream then."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # open until the process ends
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
            setattr(sys, name, nowhere)
