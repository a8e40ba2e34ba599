"""``medtasks view``: results in a browser."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import webbrowser
from functools import partial
from typing import Annotated

import typer

from medtasks.cli.console import write
from medtasks.cli.help import PlainCommand
from medtasks.cli.options import Results
from medtasks.core.process_end import end_process

app = typer.Typer()


@app.command("view", cls=PlainCommand)
def view(
    results: Results,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 for any.")] = 0,
    no_browser: Annotated[bool, typer.Option(help="Only print the address.")] = False,
) -> None:
    """Show results in a browser: the leaderboard, every sample with its images, and live runs.

    Example:
        medtasks view results
    """
    from medtasks.leaderboard.view.results_view import View
    from medtasks.leaderboard.view.server import in_background, serve
    from medtasks.runs.find import NO_RUN

    viewer = View(results)
    if not viewer.has_results:
        write(f"{', '.join(map(str, results))}: {NO_RUN} and no run under way yet.")

    def ready(address: str) -> None:
        write(f"{address} (only from this computer; Ctrl+C ends it)")
        if not no_browser:
            in_background(partial(webbrowser.open, address))

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(viewer, port, ready))
    viewer.close()
    sys.stdout.flush()
    end_process(0)  # without waiting for a thread that still reads or draws
