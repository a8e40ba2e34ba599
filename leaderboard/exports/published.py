"""The papers' rows below a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..schema.board import BenchmarkBoard
from ..schema.numbers import shown
from ..schema.published_figures import Published
from ..schema.score_tables import BoardColumn


class PublishedRow(NamedTuple):
    """A model's figures in a table of a paper: one of them, which names it, and all as texts."""

    source: Published
    values: list[str]


def published_rows(
    benchmark: BenchmarkBoard, columns: Sequence[BoardColumn]
) -> Iterator[PublishedRow]:
    """The published rows with a number in one of the columns; empty texts for the other columns."""
    for figures in benchmark.published_rows:
        values = []
        for column in columns:
            figure = figures.get(column.key)
            if figure is None or figure.value is None:
                values.append("")
            else:
                values.append(shown(figure.value, column.unit))
        if any(values):
            yield PublishedRow(next(iter(figures.values())), values)
