"""A board as files: JSON with a documented schema; tables as Markdown, for a README or a model card, and as LaTeX
(``booktabs``), for a paper; scores as tidy CSV: a line for each, with all that tells whether two are comparable."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from medtasks.core.files import canonical_json
from medtasks.core.text import one_line
from medtasks.runs.scores import coverage_text

from ..board.board import BenchmarkBoard, Board, BoardColumn, BoardTable, Cell, Published
from ..board.floors import floors_text
from ..board.numbers import UNITS, column_note, rounded, safe_name, shown, shown_interval, shown_name
from .escapes import latex_escaped, markdown_escaped
from .methods import methods_latex, methods_markdown, references_of

MOST_COLUMNS = 6
"""Score columns per LaTeX table; a wider table becomes several."""

_EMPHASES = {1: r"\textbf{%s}", 2: r"\underline{%s}"}


def board_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``board.json``."""
    schema: dict[str, Any] = Board.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def exports_of(board: Board) -> dict[str, Callable[[], str]]:
    """Functions that make the texts of exported files, by path. JSON and CSV have all digits and the board's own units;
    Markdown and LaTeX are rounded. The same board gives the same bytes."""
    found: dict[str, Callable[[], str]] = {
        "board.json": lambda: canonical_json(board.model_dump(mode="json")) + "\n",
        "board.schema.json": lambda: json.dumps(board_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n",
    }
    for benchmark in board.benchmarks:
        folder = safe_name(benchmark.name)
        found[f"{folder}/scores.csv"] = partial(as_csv, board, benchmark)
        found[f"{folder}/methods.md"] = partial(methods_markdown, board, benchmark)
        found[f"{folder}/methods.tex"] = partial(methods_latex, board, benchmark)
        found[f"{folder}/methods.bib"] = partial(references_of, board, benchmark)
        for table in benchmark.tables:
            stem = f"{folder}/{safe_name(table.name)}"
            found[f"{stem}.md"] = partial(as_markdown, board, benchmark, table)
            found[f"{stem}.tex"] = partial(as_latex, board, benchmark, table)
    return found


def as_markdown(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> str:
    """The comparable rows, then those that are not comparable with the reasons, then the published ones."""
    published = list(_published(benchmark, table.columns))
    template = _ENVIRONMENT.get_template("table.md.j2")
    return template.render(board=board, benchmark=benchmark, table=table, published=published)


def _markdown_cell(cell: Cell | None, column: BoardColumn) -> str:
    """The number with its interval; the reason if there is none; empty if the model was not run."""
    if cell is None:
        return ""
    if cell.value is None:
        return f"no value: {markdown_escaped(cell.reason or 'no reason given')}"
    ends = shown_interval(cell, column.unit)
    return shown(cell.value, column.unit) + f" [{ends}]" * bool(ends) + " (incomplete)" * cell.incomplete


def as_latex(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> str:
    """The comparable rows, then the published ones below a rule; comments name the rows that are not comparable.

    The best comparable value is bold, the second underlined (`places`).
    """
    starts = range(0, max(len(table.columns), 1), MOST_COLUMNS)
    parts = [table.columns[start : start + MOST_COLUMNS] for start in starts]
    return _ENVIRONMENT.get_template("table.tex.j2").render(
        board=board,
        benchmark=benchmark,
        table=table,
        label=f"{safe_name(benchmark.name)}-{safe_name(table.name)}",
        parts=[(columns, list(_published(benchmark, columns))) for columns in parts],
        best={column.key: places(table, column) for column in table.columns},
    )


def _latex_heading(column: BoardColumn) -> str:
    if column.signed:
        return f"{latex_escaped(column.label)} ({latex_escaped(column_note(column))})"
    arrow = r"$\uparrow$" if column.higher_is_better else r"$\downarrow$"
    return f"{latex_escaped(column.label)} ({latex_escaped(UNITS[column.unit])}) {arrow}"


def _latex_cell(cell: Cell | None, column: BoardColumn, place: int | None) -> str:
    if cell is None or cell.value is None:
        return "--"
    number = _EMPHASES.get(place or 0, "%s") % _minus(shown(cell.value, column.unit))
    ends = shown_interval(cell, column.unit)
    interval = rf" {{\scriptsize [{', '.join(_minus(end) for end in ends.split(', '))}]}}" if ends else ""
    return f"{number}{interval}{'*' if cell.incomplete else ''}"


def _minus(text: str) -> str:
    return f"$-${text[1:]}" if text.startswith("-") else text


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    undefined=StrictUndefined,
    keep_trailing_newline=True,
    variable_start_string="<<",
    variable_end_string=">>",
    block_start_string="<%",
    block_end_string="%>",
    trim_blocks=True,
    autoescape=False,
)
_ENVIRONMENT.globals.update(shown_name=shown_name)
_ENVIRONMENT.filters.update(
    column_note=column_note,
    floors=floors_text,
    latex=latex_escaped,
    latex_cell=_latex_cell,
    latex_heading=_latex_heading,
    markdown=markdown_escaped,
    markdown_cell=_markdown_cell,
    minus=_minus,
    one_line=one_line,
)


def _published(benchmark: BenchmarkBoard, columns: Sequence[BoardColumn]) -> Iterator[tuple[Published, list[str]]]:
    """The published rows with a number in one of the columns; empty texts for the other columns."""
    for row in benchmark.published_rows:
        figures = [(row.get(column.key), column.unit) for column in columns]
        values = [(None if one is None else one.value, unit) for one, unit in figures]
        if any(value is not None for value, _ in values):
            first = next(iter(row.values()))
            yield first, ["" if value is None else shown(value, unit) for value, unit in values]


def places(table: BoardTable, column: BoardColumn) -> dict[int, int]:
    """1 (best) or 2 (second) by index in ``table.rows``; equal printed numbers share a place.

    Incomplete values do not compete. Signed columns have no best value.
    """
    if column.signed:
        return {}
    cells = {number: row.cells.get(column.key) for number, row in enumerate(table.rows)}
    printed = {
        number: rounded(cell.value, column.unit)
        for number, cell in cells.items()
        if cell is not None and cell.value is not None and not cell.incomplete
    }
    ordered = sorted(set(printed.values()), reverse=column.higher_is_better)[:2]
    return {number: ordered.index(value) + 1 for number, value in printed.items() if value in ordered}


COLUMNS = (
    "benchmark", "table", "model", "name", "blind", "task", "metric", "breakdown", "group", "value", "low", "high",
    "items", "answered", "judged", "unit", "best", "signature", "set_apart", "reasons", "published", "demonstration",
)  # fmt: skip
"""``model`` is the slug; ``value``, ``low`` and ``high`` have all digits, in the board's own unit (a fraction is 0 to
1); ``best`` is highest, lowest or, in a signed column, zero; ``set_apart`` marks scores that are not comparable.
``published`` names the paper's table of a row that was not re-run."""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_Field = str | float | int | None
_Line = dict[str, _Field]


def as_csv(board: Board, benchmark: BenchmarkBoard) -> str:
    """All scores of one benchmark as in RFC 4180: a header, CR LF line endings, fields quoted if needed.

    Text that a spreadsheet would read as a formula is prefixed with an apostrophe; numbers stay as they are. A paper's
    figure in a column that the board lacks has the paper's heading as its metric, and no unit.
    """
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\r\n")
    writer.writeheader()
    shared: _Line = {"benchmark": benchmark.name, "demonstration": "yes" if board.demonstration else "no"}
    for line in _lines(board, benchmark):
        writer.writerow({key: csv_field(value) for key, value in {**shared, **line}.items()})
    return stream.getvalue()


def _lines(board: Board, benchmark: BenchmarkBoard) -> Iterator[_Line]:
    columns: dict[str, _Line] = {}
    for table in benchmark.tables:
        for column in table.columns:
            best = "zero" if column.signed else "highest" if column.higher_is_better else "lowest"
            columns[column.key] = column.model_dump(include={"task", "metric", "breakdown", "group", "unit"})
            columns[column.key]["best"] = best
        for row, apart in (*((row, "no") for row in table.rows), *((row, "yes") for row in table.apart)):
            cells = ((column.key, row.cells[column.key]) for column in table.columns if column.key in row.cells)
            for key, cell in cells:
                coverage = coverage_text(cell.items, cell.answered, cell.judged)
                why = [cell.reason or "", f"incomplete: {coverage}" if cell.incomplete else "", *row.reasons]
                yield {
                    "table": table.name,
                    "model": row.model,
                    "name": shown_name(board, row.model),
                    "blind": "yes" if row.blind else "no",
                    **columns[key],
                    **cell.model_dump(include={"value", "low", "high", "items", "answered", "judged", "signature"}),
                    "set_apart": apart,
                    "reasons": "; ".join(filter(None, why)),
                }
    for figure in benchmark.published:
        yield {
            "table": figure.table,
            "name": figure.model,
            "blind": "no",
            **columns.get(figure.column, {"metric": figure.column}),
            "value": figure.value,
            "set_apart": "yes",
            "reasons": "; ".join(("published, not re-run", *filter(None, (figure.why,)), *figure.notes)),
            "published": f"{figure.paper}, {figure.source}",
        }


def csv_field(value: _Field) -> str:
    """A value of a CSV file: numbers with all digits, and no text that a spreadsheet would read as a formula."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    plain = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return f"'{plain}" if plain.lstrip().startswith(_FORMULA) or plain.startswith(("\t", "\r", "\n")) else plain
