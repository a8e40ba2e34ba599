"""Options that commands share; output: tables and progress bars on a terminal, plain lines when piped."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from medtasks.core.cache import cache_root
from medtasks.core.text import printable

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

    from medtasks.leaderboard.verify.scored_run import ScoredRun


PROSE = (36, 28, 20)
"""Minimum widths of a column of prose, in characters: the first with which a table fits is used."""
SHORTEST = 14
"""Width to which names may be shortened, except those in the first column."""
GAP = 2
"""Characters between two columns."""

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
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


def write(*texts: str) -> None:
    """Print each text unchanged; untrusted parts must have been passed through `medtasks.core.text.printable`."""
    for text in texts:
        print(text, flush=True)


def write_json(content: Any) -> None:
    """Print the content of a command's ``--json``: records and models as objects, numbers that are none as null."""
    from pydantic_core import to_jsonable_python

    print(json.dumps(to_jsonable_python(content, inf_nan_mode="null"), indent=1, ensure_ascii=False), flush=True)


def fail(error: object) -> None:
    """Print an error as one plain line to standard error."""
    print(f"medtasks: {printable(str(error))}", file=sys.stderr, flush=True)


def table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None, *, wrap: bool = True
) -> None:
    """Print a table that fits the terminal, or whole aligned columns when piped.

    Prose wraps (or is cut, without ``wrap``); numbers, and names in the first column, are shown whole. On a narrow
    terminal other names are shortened in the middle; then the last columns are left out and named below. Cells may be
    untrusted: line breaks and control characters in them are replaced.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if title:
        print(title)
    if not sys.stdout.isatty():
        longest = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            padded = (cell + " " * (width - cell_len(cell)) for cell, width in zip(row, longest, strict=True))
            print("  ".join(padded).rstrip())
        return
    console = Console()
    cells = [(column, *(row[number] for row in rows)) for number, column in enumerate(columns)]
    shown = len(columns)
    while (widths := _fitting(cells[:shown], console.width)) is None:
        shown -= 1
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for column, width in zip(columns[:shown], widths, strict=True):
        drawn.add_column(column, overflow="fold", width=width)
    for row in rows:
        parts = zip(map(_is_prose, cells), row, widths, strict=False)
        # as text: "[learned]" is not markup
        drawn.add_row(
            *(Text(cell if prose and wrap else _shortened(cell, width, prose)) for prose, cell, width in parts)
        )
    console.print(drawn)
    if shown < len(columns):
        print(f"  not shown for lack of width: {', '.join(columns[shown:])}")


def _fitting(cells: Sequence[Sequence[str]], width: int) -> list[int] | None:
    """The widths of columns on a terminal, the widest reduced first; None if they do not fit, unless there is one."""
    natural = [max(*map(cell_len, column[1:]), *map(cell_len, column[0].split()), 1) for column in cells]
    for prose in PROSE:
        least = [min(one, _least(column[1:], prose)) for column, one in zip(cells, natural, strict=True)]
        least[0] = natural[0]
        widths = list(natural)
        while sum(widths) + GAP * (len(widths) - 1) > width and widths != least:
            widest = max((one, place) for place, one in enumerate(widths) if one > least[place])[1]
            widths[widest] -= 1
        if sum(widths) + GAP * (len(widths) - 1) <= width or len(widths) == 1:
            return widths
    return None


def _least(cells: Sequence[str], prose: int) -> int:
    """The width below which a column is useless: numbers are shown whole."""
    if _is_prose(cells):
        return prose
    return SHORTEST if any(map(_letters, cells)) else sys.maxsize


def _shortened(cell: str, width: int, prose: bool) -> str:
    """The beginning of a text that is too long, or the beginning and the end of a name."""
    end = 0 if prose else width // 2
    return cell if cell_len(cell) <= width else f"{cell[: width - end - 1]}…{cell[len(cell) - end :]}"


def _is_prose(cells: Sequence[str]) -> bool:
    """Whether a column has sentences, lists or commands, which may wrap."""
    return any(len(cell) > SHORTEST and " " in cell and _letters(cell) for cell in cells)


def _letters(cell: str) -> bool:
    return any(map(str.isalpha, cell))


def read_runs(folders: Iterable[Path]) -> list[ScoredRun]:
    """The one run in each of the directories, with a progress bar."""
    from medtasks.leaderboard.rank.compare import read_one

    with progress("reading results"):
        return [read_one(folder, cache_root()) for folder in folders]


def bars(*more: ProgressColumn) -> Progress:
    """Progress bars on standard error, with ``more`` columns; disabled if that is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *more, TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal)


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on standard error, called with (done, total) in the block; none if that is not a terminal."""
    with bars() as shown:
        task = shown.add_task(label, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
