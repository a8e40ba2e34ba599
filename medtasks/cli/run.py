"""``medtasks run``: lmms-eval's command line, checked before anything is imported."""

from __future__ import annotations

import typer

PASSED_ON = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Context settings of the command: all of its options are lmms-eval's."""


def run(context: typer.Context) -> None:
    """Run tasks with a model: the options of lmms-eval, checked before it is loaded."""
    from medtasks.harness.command_line import run_harness

    run_harness(context.args)
