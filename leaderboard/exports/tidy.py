"""Tidy CSV: one line per score, with everything needed to tell whether two scores are comparable."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from medtasks.runs.scores import coverage_text

from ..board.board import BenchmarkBoard, Board, BoardColumn
from ..board.numbers import shown_name

COLUMNS = (
    "benchmark", "table", "model", "name", "blind", "task", "metric", "breakdown", "group", "value", "low", "high",
    "items", "answered", "judged", "unit", "best", "signature", "set_apart", "reasons", "published", "demonstration",
)  # fmt: skip
"""``model`` is the slug; ``value``, ``low`` and ``high`` have all digits, in the board's own unit (a fraction is 0 to
1); ``best`` is highest, lowest or, in a signed column, zero; ``set_apart`` marks scores that are not comparable.
``published`` names the paper's table of a row that was not re-run."""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_Field = str | float | int | None


def as_csv(board: Board, benchmark: BenchmarkBoard) -> str:
    """All scores of one benchmark as in RFC 4180: a header, CR LF line endings, fields quoted if needed.

    Text that a spreadsheet would read as a formula is prefixed with an apostrophe; numbers stay as they are.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    shared: dict[str, _Field] = {"benchmark": benchmark.name, "demonstration": "yes" if board.demonstration else "no"}
    for line in (*_scores(board, benchmark), *_published(benchmark)):
        writer.writerow({key: csv_field(value) for key, value in {**shared, **line}.items()})
    return stream.getvalue()


def _scores(board: Board, benchmark: BenchmarkBoard) -> Iterator[dict[str, _Field]]:
    for table in benchmark.tables:
        rows = [*((row, None) for row in table.rows), *((one.row, one.reasons) for one in table.apart)]
        for row, reasons in rows:
            for column in table.columns:
                cell = row.cells.get(column.key)
                if cell is None:
                    continue
                coverage = coverage_text(cell.items, cell.answered, cell.judged)
                why = [cell.reason or "", f"incomplete: {coverage}" if cell.incomplete else "", *(reasons or ())]
                yield {
                    "table": table.name,
                    "model": row.model,
                    "name": shown_name(board, row.model),
                    "blind": "yes" if row.blind else "no",
                    **_column(column),
                    **cell.model_dump(include={"value", "low", "high", "items", "answered", "judged", "signature"}),
                    "set_apart": "no" if reasons is None else "yes",
                    "reasons": "; ".join(filter(None, why)),
                }


def _column(column: BoardColumn) -> dict[str, _Field]:
    best = "zero" if column.signed else "highest" if column.higher_is_better else "lowest"
    return {**column.model_dump(include={"task", "metric", "breakdown", "group", "unit"}), "best": best}


def _published(benchmark: BenchmarkBoard) -> Iterator[dict[str, _Field]]:
    """The published figures; in a column that the board lacks, the metric is the paper's heading, without a unit."""
    columns = {column.key: column for table in benchmark.tables for column in table.columns}
    for row in benchmark.published:
        for cell in row.cells:
            yield {
                "table": row.table,
                "name": row.model,
                "blind": "no",
                **(_column(columns[cell.column]) if cell.column in columns else {"metric": cell.column}),
                "value": cell.value,
                "set_apart": "yes",
                "reasons": "; ".join(("published, not re-run", *filter(None, (cell.why,)), *cell.notes)),
                "published": f"{row.paper}, {row.source}",
            }


def csv_field(value: _Field) -> str:
    """A value of a CSV file: numbers with all digits, and no text that a spreadsheet would read as a formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    plain = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA) or plain.startswith(("\t", "\r", "\n")) else plain
