"""Options that the ``medtasks prepare`` commands share."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

if TYPE_CHECKING:
    from medtasks.data.prepare.job import Progress


class Bar(Protocol):
    """A progress bar, told (done, total)."""

    def __call__(self, done: int, total: int, /) -> None: ...

    def stage(self, label: str, /) -> Progress:
        """A bar of its own below this one."""


Bars = Callable[[str], AbstractContextManager[Bar]]
"""Opens a progress bar with that title."""

Out = Annotated[
    Path | None,
    typer.Option("--out", help="Folder to prepare into (default: below MEDTASKS_DATA).", show_default=False),
]
Missing = Annotated[
    bool, typer.Option("--allow-missing-media", help="Leave out rows without pictures, counted in the manifest.")
]
References = Annotated[
    bool,
    typer.Option(
        "--references-only", help="Questions and answers without media: enough to score predictions, not to run models."
    ),
]
Workers = Annotated[int, typer.Option("--workers", help="Threads that verify pictures; 0 picks a number.", min=0)]
