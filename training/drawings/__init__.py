"""Draws the miniature data that the benchmarks ship (``python -m training.drawings``).

Tables beside the code say what the pictures show; the rows, which were written by hand, ask about
it. Lessons for the tiny model draw other scenes with the same code.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

BENCHMARKS = Path(__file__).parents[2] / "medtasks" / "benchmarks"

T = TypeVar("T")


def read_table(name: str, kind: type[T]) -> T:
    """The table ``name``, as a ``kind``; lists become (named) tuples."""
    return TypeAdapter(kind).validate_json(Path(__file__).with_name(name).read_bytes())
