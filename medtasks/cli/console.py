"""Options that commands share; output: tables and progress bars on a terminal, plain lines when piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from medtasks.text import printable

if TYPE_CHECKING:
    from rich.progress import TaskID


PROSE = 24
"""Minimum width of a column of prose, in characters."""
GAP = 3
"""Characters between two columns."""


class Layout(str, Enum):
    """Format of findings."""

    table = "table"
    json = "json"


Format = Annotated[Layout, typer.Option("--format", help="table or json.")]
Results = Annotated[
    list[Path],
    typer.Argument(help="Result directories (…_medtasks), or directories that contain some.", show_default=False),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices", help="YAML or JSON file with the price of each model: per million tokens, or per device hour."
    ),
]


def write(text: str) -> None:
    """Print ``text`` unchanged; untrusted parts must have been passed through `medtasks.text.printable`."""
    print(text, flush=True)


def fail(error: object) -> None:
    """Print an error as one plain line to standard error."""
    print(f"medtasks: {printable(str(error))}", file=sys.stderr, flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table that fits the terminal, or aligned columns when piped.

    Only prose wraps: a name or a number is never split. If the terminal is too narrow for that, each row is printed as
    lines of ``column  value``. Cells may be untrusted: line breaks and control characters in them are replaced.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if title:
        print(title)
    if not sys.stdout.isatty():
        _print_aligned([list(columns), *rows])
        return
    console = Console()
    cells = [(column, *(row[number] for row in rows)) for number, column in enumerate(columns)]
    widths = [min(max(map(cell_len, column)), PROSE if _is_prose(column) else sys.maxsize) for column in cells]
    if sum(widths) + GAP * len(widths) <= console.width:
        drawn = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column, width in zip(cells, widths, strict=True):
            drawn.add_column(column[0], overflow="fold", no_wrap=not _is_prose(column), min_width=width)
        for row in rows:
            drawn.add_row(*map(Text, row))  # as text: "[learned]" is not markup
        console.print(drawn)
        return
    width = max(map(len, columns))
    for row in rows:
        for heading, cell in zip(columns, row, strict=True):
            console.print(Text(f"{heading:<{width}}  {cell}"))
        print()


def _print_aligned(rows: Sequence[Sequence[str]]) -> None:
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True))
        print("  ".join(padded).rstrip())


def _is_prose(cells: Sequence[str]) -> bool:
    """Whether a column has sentences or lists, which may wrap."""
    return any(len(cell) > PROSE and cell.count(" ") > 2 for cell in cells)


class _Bar:
    """A progress bar, called with (done, total)."""

    def __init__(self, label: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self._task = self.progress.add_task(label, total=None)

    def __call__(self, done: int, total: int) -> None:
        self.progress.update(self._task, completed=done, total=total)

    def stage(self, label: str) -> Callable[[int, int], None]:
        """A second bar for part of the work, shown from its first call."""
        tasks: list[TaskID] = []

        def update(done: int, total: int) -> None:
            if not tasks:
                tasks.append(self.progress.add_task(label))
            self.progress.update(tasks[0], completed=done, total=total)

        return update


@contextmanager
def progress(label: str) -> Iterator[_Bar]:
    """A progress bar on standard error while the block runs; none if that is not a terminal."""
    bar = _Bar(label)
    with bar.progress:
        yield bar
