"""Tidy CSV: one line a score, with all that is needed to tell whether two of them may be compared."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from medtasks.results.scoring import coverage_text

from ..board import BenchmarkBoard, Board, BoardColumn, BoardRow, BoardTable, Cell, Published

__all__ = ["COLUMNS", "as_csv"]

COLUMNS = (
    "benchmark", "table", "model", "name", "blind", "task", "metric", "breakdown", "group", "value", "low", "high",
    "items", "answered", "judged", "unit", "best", "signature", "set_apart", "reasons", "published", "demonstration",
)  # fmt: skip
"""``model`` is the slug, ``name`` what the model is called; ``value``, ``low`` and ``high`` have all digits, in the
board's own unit (a fraction is 0 to 1); ``best`` says which end of the column is: highest, lowest, or zero of a signed
one. ``published`` names the paper's table; such a row was not re-run."""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")


def as_csv(board: Board, benchmark: BenchmarkBoard) -> str:
    """All scores of one benchmark, as RFC 4180 has it: a heading, lines that end with CR LF, fields quoted at need.

    A text that a spreadsheet would take for a formula gets an apostrophe before it; numbers do not.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    demonstration = "yes" if board.demonstration else "no"
    for line in (*_rows(board, benchmark), *_published(benchmark)):
        writer.writerow([_field(one) for one in (benchmark.name, *line, demonstration)])
    return stream.getvalue()


_Field = str | float | int | None


def _rows(board: Board, benchmark: BenchmarkBoard) -> Iterator[Sequence[_Field]]:
    for table in benchmark.tables:
        for row in table.rows:
            yield from _scores(board, table, row, None)
        for one in table.apart:
            yield from _scores(board, table, one.row, one.reasons)


def _scores(
    board: Board, table: BoardTable, row: BoardRow, reasons: Sequence[str] | None
) -> Iterator[Sequence[_Field]]:
    name = board.models[row.model].name if row.model in board.models else row.model
    for column in table.columns:
        cell = row.cells.get(column.key)
        if cell is None:
            continue
        why = [*([cell.reason] if cell.reason else []), *_incomplete(cell), *(reasons or ())]
        yield (
            table.name, row.model, name, "yes" if row.blind else "no", *_scored(column), cell.value, cell.low,
            cell.high, cell.items, cell.answered, cell.judged, column.unit, _best(column), cell.signature,
            "no" if reasons is None else "yes", "; ".join(why), "",
        )  # fmt: skip


def _scored(column: BoardColumn) -> tuple[_Field, ...]:
    return column.task, column.metric, column.breakdown, column.group


def _best(column: BoardColumn) -> str:
    if column.signed:
        return "zero"
    return "highest" if column.higher_is_better else "lowest"


def _incomplete(cell: Cell) -> list[str]:
    return [f"incomplete: {coverage_text(cell.items, cell.answered, cell.judged)}"] if cell.incomplete else []


def _published(benchmark: BenchmarkBoard) -> Iterator[Sequence[_Field]]:
    """A figure whose column is none of ours has the paper's own heading for its metric, and no unit."""
    columns = {column.key: column for table in benchmark.tables for column in table.columns}
    for row in benchmark.published:
        for cell in row.cells:
            column = columns.get(cell.column)
            scored = (None, cell.column, None, None) if column is None else _scored(column)
            yield (
                row.table, None, row.model, "no", *scored, cell.value, None, None, None, None, None,
                *((None, None) if column is None else (column.unit, _best(column))), None, "yes",
                "; ".join(("published, not re-run", *cell.notes)), _source(row),
            )  # fmt: skip


def _source(row: Published) -> str:
    return f"{row.paper}, {row.source}"


def _field(value: _Field) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    plain = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA) or plain.startswith(("\t", "\r", "\n")) else plain
