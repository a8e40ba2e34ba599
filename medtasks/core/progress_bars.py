"""Progress bars on standard error, if that is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

_DRAWN: list[Progress] = []
"""The bars of the blocks of `progress` that are running."""


def bars(*more: ProgressColumn) -> Progress:
    """Return progress bars with ``more`` columns; they are disabled without a terminal."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        *more,
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, disable=not console.is_terminal)


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar for the block, and yield the function that updates it: (done, total).

    Without a terminal, the function does nothing.
    """
    with bars() as drawn:
        task = drawn.add_task(label, total=None)

        def update(done: int, total: int) -> None:
            drawn.update(task, completed=done, total=total)

        _DRAWN.append(drawn)
        try:
            yield update
        finally:
            _DRAWN.remove(drawn)


@contextmanager
def paused_bars() -> Iterator[None]:
    """Do not draw bars within the block, which asks a question that they would hide."""
    drawn = tuple(_DRAWN)
    for progress_bar in drawn:
        progress_bar.stop()
    try:
        yield
    finally:
        for progress_bar in drawn:
            progress_bar.start()
