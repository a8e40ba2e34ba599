"""A board as files: JSON with a documented schema, tables in Markdown and LaTeX, scores as CSV."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from medtasks.core.files import canonical_json

from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import safe_name
from ..schema.score_tables import BoardTable
from .csv_scores import as_csv
from .latex_tables import as_latex
from .markdown_tables import as_markdown
from .methods import methods_latex, methods_markdown, references_of


@dataclass(frozen=True)
class Export:
    """An exported file: ``title`` says what it is, ``make`` gives its text.

    ``benchmark`` is empty if the file is about the whole board.
    """

    title: str
    make: Callable[[], str]
    benchmark: str = ""


def exports_of(board: Board) -> dict[str, Export]:
    """The exported files, by path.

    JSON and CSV have all digits and the board's own units; Markdown and LaTeX are rounded. The same
    board gives the same bytes.
    """
    exports = {
        "board.json": Export("The whole board", partial(_board_json, board)),
        "board.schema.json": Export("Schema of the whole board", _schema_json),
    }
    for benchmark in board.benchmarks:
        exports |= _exports_of_benchmark(board, benchmark)
    return exports


def board_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``board.json``."""
    schema: dict[str, Any] = Board.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def _board_json(board: Board) -> str:
    return canonical_json(board.model_dump(mode="json")) + "\n"


def _schema_json() -> str:
    return json.dumps(board_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def _exports_of_benchmark(board: Board, benchmark: BenchmarkBoard) -> dict[str, Export]:
    """The files about one benchmark, by path."""
    folder = safe_name(benchmark.name)
    exports: dict[str, Export] = {}

    def add(file_name: str, title: str, make: Callable[..., str], *table: BoardTable) -> None:
        content = partial(make, board, benchmark, *table)
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
