"""Output of commands: texts and tables, which fit the terminal, or are whole when piped."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from medtasks.core.text import printable, well_formed

LEAST_WIDTH = 14
"""Width to which a column of words may shrink; columns of numbers, and the first one, keep
theirs.
"""
GAP = 2
"""Blanks between columns."""


def write(*texts: str) -> None:
    """Print each text; untrusted parts must have been passed through
    `medtasks.core.text.printable`.

    Bytes of arguments that are not UTF-8 are printed as U+FFFD.
    """
    for text in texts:
        print(well_formed(text), flush=True)


def write_json(content: Any) -> None:
    """Print the content of a command's ``--json``: records and models as objects, NaN and infinity
    as null.
    """
    from pydantic_core import to_jsonable_python

    jsonable = to_jsonable_python(content, inf_nan_mode="null")
    print(json.dumps(jsonable, indent=1, ensure_ascii=False), flush=True)


def fail(error: object) -> None:
    """Print an error as one plain line to standard error."""
    print(f"medtasks: {printable(str(error))}", file=sys.stderr, flush=True)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    """Print a table that fits the terminal, or whole aligned columns when piped.

    Words wrap; numbers, and names in the first column, are shown whole. On a narrow terminal the
    last columns are left out and named below. Cells may be untrusted: line breaks and control
    characters in them are replaced.
    """
    printable_rows = []
    for row in rows:
        printable_rows.append([printable(cell) for cell in row])
    if title:
        print(title)
    if sys.stdout.isatty():
        _print_fitting(columns, printable_rows)
    else:
        _print_aligned(columns, printable_rows)


def _print_aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print whole columns, padded with blanks."""
    widths = []
    for cells in zip(columns, *rows, strict=True):
        widths.append(max(map(cell_len, cells)))
    for row in (columns, *rows):
        padded = []
        for cell, width in zip(row, widths, strict=True):
            padded.append(cell + " " * (width - cell_len(cell)))
        print("  ".join(padded).rstrip())


def _print_fitting(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print as many columns as fit the terminal, and the names of the others."""
    console = Console()
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    used_width = 0
    for number, column in enumerate(columns):
        cells = [row[number] for row in rows]
        width = max(map(cell_len, (*column.split(), *cells)), default=1)
        shrinks = number > 0 and any(map(str.isalpha, "".join(cells)))
        used_width += GAP + (min(width, LEAST_WIDTH) if shrinks else width)
        if used_width - GAP > console.width and number > 0:
            break
        drawn.add_column(column, overflow="fold", width=None if shrinks else width)
    drawn_count = len(drawn.columns)
    for row in rows:
        drawn.add_row(*map(Text, row[:drawn_count]))  # as text: "[learned]" is not markup
    console.print(drawn)
    if drawn_count < len(columns):
        print(f"  not shown for lack of width: {', '.join(columns[drawn_count:])}")
