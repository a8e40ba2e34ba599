"""What a user sees: tables and progress on a terminal, plain lines where the output is piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from medtasks.text import printable

if TYPE_CHECKING:
    from rich.progress import TaskID

__all__ = ["Layout", "fail", "progress", "table", "write"]


class Layout(str, Enum):
    """How findings are printed."""

    table = "table"
    json = "json"
    sarif = "sarif"
    github = "github"


def write(text: str) -> None:
    """Print ``text`` as it is; what others wrote of it must be `medtasks.text.printable`."""
    print(text, flush=True)


def fail(error: object) -> None:
    """Print an error as one plain line on standard error."""
    print(f"medtasks: {printable(str(error))}", file=sys.stderr, flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table: ruled on a terminal, tab-separated where piped, so that other programs can read it.

    Cells may be what others wrote: nothing in them ends a line, a column, or steers a terminal or a log.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        if title:
            print(title)
        for row in (columns, *rows):
            print("\t".join(row))
        return
    drawn = Table(title=title, title_justify="left")
    for column in columns:
        drawn.add_column(column, overflow="fold")
    for row in rows:
        drawn.add_row(*map(Text, row))  # as text: "[learned]" is no markup
    Console().print(drawn)


class _Bar:
    """A progress bar that can be told (done, total)."""

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task(label, total=None)

    def __call__(self, done: int, total: int) -> None:
        self._progress.update(self._task, completed=done, total=total)

    def stage(self, label: str) -> Callable[[int, int], None]:
        """A bar of its own for a part of the work, below this one; shown once it is told something."""
        tasks: list[TaskID] = []

        def update(done: int, total: int) -> None:
            if not tasks:
                tasks.append(self._progress.add_task(label))
            self._progress.update(tasks[0], completed=done, total=total)

        return update

    def start(self) -> None:
        self._progress.start()

    def stop(self) -> None:
        self._progress.stop()


@contextmanager
def progress(label: str) -> Iterator[_Bar]:
    """A progress bar on standard error while the block runs; silent where that is no terminal."""
    bar = _Bar(label)
    bar.start()
    try:
        yield bar
    finally:
        bar.stop()
