"""The papers' rows below a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..schema.board import BenchmarkBoard, BoardColumn, Published
from ..schema.numbers import shown


def published_rows(
    benchmark: BenchmarkBoard, columns: Sequence[BoardColumn]
) -> Iterator[tuple[Published, list[str]]]:
    """The published rows with a number in one of the columns; empty texts for the other columns."""
    for row in benchmark.published_rows:
        figures = [(row.get(column.key), column.unit) for column in columns]
        values = [(None if one is None else one.value, unit) for one, unit in figures]
        if any(value is not None for value, _ in values):
            first = next(iter(row.values()))
            yield first, ["" if value is None else shown(value, unit) for value, unit in values]
