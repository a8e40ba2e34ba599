"""A board as files: JSON with a documented schema; tables as Markdown, for a README or a model
card, and as LaTeX (``booktabs``), for a paper; scores as tidy CSV: a line for each, with all that
tells whether two are comparable.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from medtasks.core.files import canonical_json
from medtasks.scoring.scores import coverage_text

from ..schema.board import BenchmarkBoard, Board, BoardTable
from ..schema.numbers import safe_name, shown_name
from .export_templates import export_environment
from .latex_tables import as_latex
from .markdown_filters import MARKDOWN_FILTERS
from .methods import methods_latex, methods_markdown, references_of
from .published import published_rows


def board_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``board.json``."""
    schema: dict[str, Any] = Board.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


@dataclass(frozen=True)
class Export:
    """An exported file: ``title`` says what it is, ``make`` gives its text. ``benchmark`` is empty
    if the file is about the whole board."""

    title: str
    make: Callable[[], str]
    benchmark: str = ""


def exports_of(board: Board) -> dict[str, Export]:
    """The exported files, by path. JSON and CSV have all digits and the board's own units;
    Markdown and LaTeX are rounded. The same board gives the same bytes."""
    exports = {
        "board.json": Export("The whole board", partial(_board_json, board)),
        "board.schema.json": Export("Schema of the whole board", _schema_json),
    }
    for benchmark in board.benchmarks:
        exports |= _exports_of_benchmark(board, benchmark)
    return exports


def _board_json(board: Board) -> str:
    return canonical_json(board.model_dump(mode="json")) + "\n"


def _schema_json() -> str:
    return json.dumps(board_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _exports_of_benchmark(board: Board, benchmark: BenchmarkBoard) -> dict[str, Export]:
    folder = safe_name(benchmark.name)
    exports: dict[str, Export] = {}

    def add(file_name: str, title: str, make: Callable[..., str], *of: BoardTable) -> None:
        content = partial(make, board, benchmark, *of)
        exports[f"{folder}/{file_name}"] = Export(title, content, benchmark.name)

    add("scores.csv", "All scores", as_csv)
    add("methods.md", "Methods section", methods_markdown)
    add("methods.tex", "Methods section", methods_latex)
    add("methods.bib", "References", references_of)
    for table in benchmark.tables:
        stem = safe_name(table.name)
        add(f"{stem}.md", table.title, as_markdown, table)
        add(f"{stem}.tex", table.title, as_latex, table)
    return exports


def as_markdown(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> str:
    """The comparable rows, then those that are not comparable with the reasons, then the published
    ones.
    """
    published = list(published_rows(benchmark, table.columns))
    template = _ENVIRONMENT.get_template("table.md.j2")
    return template.render(board=board, benchmark=benchmark, table=table, published=published)


_ENVIRONMENT = export_environment(MARKDOWN_FILTERS)
_ENVIRONMENT.globals.update(shown_name=shown_name)


COLUMNS = (
    "benchmark", "table", "model", "name", "blind", "task", "metric", "breakdown", "group", "value", "low", "high",
    "items", "answered", "judged", "unit", "best", "signature", "set_apart", "reasons", "published", "demonstration",
)  # fmt: skip
"""``model`` is the slug; ``value``, ``low`` and ``high`` have all digits, in the board's own unit
(a fraction is 0 to 1); ``best`` is highest, lowest or, in a signed column, zero; ``set_apart``
marks scores that are not comparable. ``published`` names the paper's table of a row that was not
re-run.
"""

_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_Field = str | float | int | None
_Line = dict[str, _Field]


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
    shared: _Line = {
        "benchmark": benchmark.name,
        "demonstration": "yes" if board.demonstration else "no",
    }
    for line in _lines(board, benchmark):
        writer.writerow({key: csv_field(value) for key, value in {**shared, **line}.items()})
    return stream.getvalue()


def _lines(board: Board, benchmark: BenchmarkBoard) -> Iterator[_Line]:
    columns: dict[str, _Line] = {}
    for table in benchmark.tables:
        for column in table.columns:
            best = "zero" if column.signed else "highest" if column.higher_is_better else "lowest"
            columns[column.key] = column.model_dump(
                include={"task", "metric", "breakdown", "group", "unit"}
            )
            columns[column.key]["best"] = best
        for row, apart in (
            *((row, "no") for row in table.rows),
            *((row, "yes") for row in table.apart),
        ):
            cells = (
                (column.key, row.cells[column.key])
                for column in table.columns
                if column.key in row.cells
            )
            for key, cell in cells:
                coverage = coverage_text(cell.items, cell.answered, cell.judged)
                why = [
                    cell.reason or "",
                    f"incomplete: {coverage}" if cell.incomplete else "",
                    *row.reasons,
                ]
                yield {
                    "table": table.name,
                    "model": row.model,
                    "name": shown_name(board, row.model),
                    "blind": "yes" if row.blind else "no",
                    **columns[key],
                    **cell.model_dump(
                        include={"value", "low", "high", "items", "answered", "judged", "signature"}
                    ),
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
            "reasons": "; ".join(
                ("published, not re-run", *filter(None, (figure.why,)), *figure.notes)
            ),
            "published": f"{figure.paper}, {figure.source}",
        }


def csv_field(value: _Field) -> str:
    """A value of a CSV file: numbers with all digits, and no text that a spreadsheet would read as
    a formula.
    """
    if value is None:
        return ""
    if not isinstance(value, str):
        return repr(value)
    plain = value.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return (
        f"'{plain}"
        if plain.lstrip().startswith(_FORMULA) or plain.startswith(("\t", "\r", "\n"))
        else plain
    )
