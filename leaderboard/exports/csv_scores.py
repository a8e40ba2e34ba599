"""A benchmark's scores as tidy CSV: a line for each, with all that tells whether two are
comparable.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from medtasks.scoring.scores import coverage_text

from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import shown_name
from ..schema.published_figures import Published
from ..schema.score_tables import BoardColumn, BoardRow, Cell

COLUMNS = (
    "benchmark",
    "table",
    "model",
    "name",
    "blind",
    "trained",
    "task",
    "metric",
    "breakdown",
    "group",
    "value",
    "low",
    "high",
    "items",
    "answered",
    "judged",
    "unit",
    "best",
    "signature",
    "set_apart",
    "reasons",
    "published",
    "demonstration",
)
"""``model`` is the slug; ``trained`` is whether the model was trained on the benchmark's data;
``value``, ``low`` and ``high`` have all digits, in the board's own unit
(a fraction is 0 to 1); ``best`` is highest, lowest, zero in a signed column or none for counts;
``set_apart`` marks scores that are not comparable. ``published`` names the paper's table of a row
that was not re-run.
"""
_FIELDS_OF_COLUMN = {"task", "metric", "breakdown", "group", "unit"}
_FIELDS_OF_CELL = {"value", "low", "high", "items", "answered", "judged", "signature"}
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")

Field: TypeAlias = str | float | int | None
Line: TypeAlias = dict[str, Field]


def as_csv(board: Board, benchmark: BenchmarkBoard) -> str:
    """All scores of one benchmark as in RFC 4180: a header, CR LF line endings, fields quoted if
    needed.

    Text that a spreadsheet would read as a formula is prefixed with an apostrophe; numbers stay as
    they are. A paper's figure in a column that the board lacks has the paper's heading as its
    metric, and no unit.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    shared: Line = {
        "benchmark": benchmark.name,
        "demonstration": _yes_or_no(board.demonstration),
    }
    for line in _lines(board, benchmark):
        fields = {**shared, **line}
        writer.writerow({name: csv_field(value) for name, value in fields.items()})
    return stream.getvalue()


def csv_field(value: Field) -> str:
    """A value of a CSV file: numbers with all digits, and no text that a spreadsheet would read as
    a formula.

    >>> csv_field(0.1), csv_field("=1+1"), csv_field(None)
    ('0.1', "'=1+1", '')
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    text = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    is_formula = text.lstrip().startswith(_FORMULA)
    if is_formula or text.startswith(("\t", "\r", "\n")):
        return f"'{text}"
    return text


def _lines(board: Board, benchmark: BenchmarkBoard) -> Iterator[Line]:
    """The lines of all tables' rows, then those of published figures."""
    columns: dict[str, Line] = {}
    for table in benchmark.tables:
        for column in table.columns:
            columns[column.key] = _column_fields(column)
        for rows, set_apart in ((table.rows, "no"), (table.apart, "yes")):
            for row in rows:
                row_fields: Line = {
                    "table": table.name,
                    "model": row.model,
                    "name": shown_name(board, row.model),
                    "blind": _yes_or_no(row.blind),
                    "trained": _trained(board, benchmark, row.model),
                    "set_apart": set_apart,
                }
                for column in table.columns:
                    cell = row.cells.get(column.key)
                    if cell is not None:
                        yield {**row_fields, **columns[column.key], **_cell_fields(cell, row)}
    for figure in benchmark.published:
        yield _published_line(figure, columns)


def _trained(board: Board, benchmark: BenchmarkBoard, model: str) -> str:
    """Whether the model was trained on the benchmark's data: yes, no or unknown."""
    if model not in board.models:
        return "unknown"
    return board.models[model].trained.get(benchmark.name, "unknown")


def _column_fields(column: BoardColumn) -> Line:
    """The fields of a line that depend on its column."""
    best = "highest" if column.higher_is_better else "lowest"
    if column.signed:
        best = "zero"
    if column.unit == "count":
        best = "none"
    return {**column.model_dump(include=_FIELDS_OF_COLUMN), "best": best}


def _cell_fields(cell: Cell, row: BoardRow) -> Line:
    """The fields of a line that depend on its cell, and all reasons for caution."""
    reasons = []
    if cell.reason:
        reasons.append(cell.reason)
    if cell.incomplete:
        coverage = coverage_text(cell.items, cell.answered, cell.judged)
        reasons.append(f"incomplete: {coverage}")
    reasons += filter(None, row.reasons)
    return {**cell.model_dump(include=_FIELDS_OF_CELL), "reasons": "; ".join(reasons)}


def _published_line(figure: Published, columns: Mapping[str, Line]) -> Line:
    """The line of a paper's figure; ``columns`` are the board's, by key."""
    reasons = ["published, not re-run"]
    if figure.why:
        reasons.append(figure.why)
    return {
        "table": figure.table,
        "name": figure.model,
        "blind": "no",
        "trained": figure.trained,
        **columns.get(figure.column, {"metric": figure.column}),
        "value": figure.value,
        "set_apart": "yes",
        "reasons": "; ".join([*reasons, *figure.notes]),
        "published": f"{figure.paper}, {figure.source}",
    }


def _yes_or_no(condition: bool) -> str:
    return "yes" if condition else "no"
