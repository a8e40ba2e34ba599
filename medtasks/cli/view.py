"""``medtasks view``: the board, its samples with their media, and runs under way, in a browser on this computer."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import webbrowser
from functools import partial
from typing import Annotated

import typer

from medtasks.cli.console import Results, write


def view(
    results: Results,
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 for any.", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address.")] = False,
) -> None:
    """Show results in a browser: the board, every sample with its pictures, and runs under way."""
    from medtasks.leaderboard.view.server import View, in_background, serve
    from medtasks.runs.folder import NO_RUN

    shown = View(results)
    if not shown.found:
        write(f"{', '.join(map(str, results))}: {NO_RUN} and no run under way yet.")

    def ready(address: str) -> None:
        write(f"{address} (only from this computer; Ctrl+C ends it)")
        if not no_browser:
            in_background(partial(webbrowser.open, address))

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(shown, port, ready))
    shown.close()
    sys.stdout.flush()
    os._exit(0)  # a thread that still draws must neither delay the end nor be stopped within a library
