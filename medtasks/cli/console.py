"""What commands share: options, help, tables and progress bars on a terminal, plain lines when
piped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from medtasks.core.text import printable, well_formed
from medtasks.data.sources import read_table

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn

LEAST = 14
"""Width to which a column of words may shrink; columns of numbers, and the first one, keep
theirs.
"""
GAP = 2

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Results = Annotated[
    list[Path],
    typer.Argument(
        help="Result directories (…_medtasks), or directories that contain some.",
        show_default=False,
    ),
]
Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        help="YAML or JSON file with the price of each model: per million tokens, or per device hour.",
    ),
]

TEXTS = read_table(__file__, "help.yaml", dict[str, dict[str, Any]])
"""By command: ``examples`` to copy, and what its ``options`` (and arguments) mean."""


def plain_help(command: Any, name: str = "", examples: Sequence[str] = ()) -> Any:
    """The click ``command`` with short placeholders, full summaries and examples in its help, and
    those below it.

    ``name`` is its name below ``medtasks``; ``examples`` are lines to copy if ``help.yaml`` has
    none.
    """
    texts = TEXTS.get(name, {})
    for param in command.params:
        option = max(param.opts, key=len).lstrip("-").replace("-", "_")
        param.help = texts.get("options", {}).get(option, param.help)
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None  # noqa: ARG005  (newer typer shows its Python type)
        if not getattr(
            param, "is_flag", False
        ):  # --task TASK, as in argparse, instead of a Python type
            param.metavar = param.metavar or option.upper()
        elif not param.default:  # without --no-…, which would be the default
            param.secondary_opts = []
    command.short_help = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    lines = texts.get("examples", examples)
    if lines:
        shown = ["Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)]
        command.epilog = "\n".join(
            ["\b", *shown]
        )  # click keeps the lines of such a paragraph as they are
    for child in getattr(command, "commands", {}).values():
        plain_help(child, f"{name} {child.name}".strip())
    return command


def write(*texts: str) -> None:
    """Print each text; untrusted parts must have been passed through
    `medtasks.core.text.printable`.

    Bytes of arguments that are not UTF-8 are printed as U+FFFD.
    """
    for text in texts:
        print(well_formed(text), flush=True)


def write_json(content: Any) -> None:
    """Print the content of a command's ``--json``: records and models as objects, numbers that are
    none as null.
    """
    from pydantic_core import to_jsonable_python

    print(
        json.dumps(to_jsonable_python(content, inf_nan_mode="null"), indent=1, ensure_ascii=False),
        flush=True,
    )


def fail(error: object) -> None:
    """Print an error as one plain line to standard error."""
    print(f"medtasks: {printable(str(error))}", file=sys.stderr, flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table that fits the terminal, or whole aligned columns when piped.

    Words wrap; numbers, and names in the first column, are shown whole. On a narrow terminal the
    last columns are left out and named below. Cells may be untrusted: line breaks and control
    characters in them are replaced.
    """
    rows = [[printable(cell) for cell in row] for row in rows]
    if title:
        print(title)
    if not sys.stdout.isatty():
        longest = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
        for row in (columns, *rows):
            padded = (
                cell + " " * (width - cell_len(cell))
                for cell, width in zip(row, longest, strict=True)
            )
            print("  ".join(padded).rstrip())
        return
    console, room = Console(), 0
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    for number, column in enumerate(columns):
        cells = [row[number] for row in rows]
        width = max(map(cell_len, (*column.split(), *cells)), default=1)
        has_words = number > 0 and any(map(str.isalpha, "".join(cells)))
        room += GAP + (min(width, LEAST) if has_words else width)
        if room - GAP > console.width and number > 0:
            break
        drawn.add_column(column, overflow="fold", width=None if has_words else width)
    shown = len(drawn.columns)
    for row in rows:
        drawn.add_row(*map(Text, row[:shown]))  # as text: "[learned]" is not markup
    console.print(drawn)
    if shown < len(columns):
        print(f"  not shown for lack of width: {', '.join(columns[shown:])}")


def bars(*more: ProgressColumn) -> Progress:
    """Progress bars on standard error, with ``more`` columns; disabled if that is not a
    terminal.
    """
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
    """A progress bar on standard error, called with (done, total) in the block; none if that is not
    a terminal.
    """
    with bars() as shown:
        task = shown.add_task(label, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
