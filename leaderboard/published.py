"""Published figures, matched with the columns of a board."""

from __future__ import annotations

from collections.abc import Mapping

from .board import BoardColumn, Published, PublishedCell
from .reference import Reference, ReferenceCell, ReferenceRow

Place = tuple[str, str, "str | None", "str | None"]
"""Task, metric, breakdown, group."""


def place_of(column: BoardColumn | ReferenceCell) -> Place:
    """What a column, or a published figure, scores."""
    return column.task, column.metric, column.breakdown, column.group


def published_rows(reference: Reference, keys: Mapping[Place, str]) -> tuple[Published, ...]:
    """The published rows; figures name the board's column if ``keys`` has one, otherwise the paper's own heading."""
    return tuple(_row(row, keys) for row in reference.rows)


def _row(row: ReferenceRow, keys: Mapping[Place, str]) -> Published:
    return Published(
        table=row.table,
        source=row.source,
        paper=f"arXiv {row.paper.arxiv}",
        label=row.label,
        model=row.model,
        family=row.family,
        size=row.size,
        type=row.type,
        trained=row.trained_on_benchmark,
        judge=row.judge,
        cells=tuple(
            PublishedCell(
                column=keys.get(place_of(cell), cell.column),
                printed=None if cell.printed is None else str(cell.printed),
                value=cell.value,
                rankable=cell.rankable,
                notes=cell.notes,
            )
            for cell in row.cells
        ),
        notes=row.notes,
    )
