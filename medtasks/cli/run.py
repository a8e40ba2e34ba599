"""``medtasks run``: lmms-eval's command line, checked before anything is imported."""

from __future__ import annotations

import typer

from medtasks.cli.help import PlainCommand

app = typer.Typer()


@app.command(
    "run",
    cls=PlainCommand,
    # all options of the command are lmms-eval's
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
)
def run(context: typer.Context) -> None:
    """Run tasks with a model: lmms-eval's options, checked before lmms-eval is loaded.

    Example:
        medtasks run --model medtasks_vlm --model_args pretrained=MODEL --tasks med_cmr_mcq
            --output_path results
    """
    from medtasks.harness.command_line import run_harness

    run_harness(context.args)
