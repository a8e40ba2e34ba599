"""A board as files that others read: JSON with its schema, and each benchmark as CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medtasks.results.files import canonical_json

from ..board import Board
from .numbers import safe_name
from .tables import as_latex, as_markdown
from .tidy import as_csv

__all__ = ["ExportFile", "board_schema", "write_exports"]


@dataclass(frozen=True)
class ExportFile:
    """One file, by its path relative to the directory; ``benchmark`` and ``table`` are empty if it holds all."""

    path: str
    format: Literal["csv", "json", "markdown", "latex"]
    benchmark: str = ""
    table: str = ""


def board_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``board.json``."""
    schema: dict[str, Any] = Board.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def write_exports(board: Board, directory: Path) -> tuple[ExportFile, ...]:
    """Write ``board.json`` and ``board.schema.json``, for each benchmark ``<name>/scores.csv``, and each of its tables
    as ``<name>/<table>.md`` and ``<name>/<table>.tex``; return the files in the order of the board.

    JSON and CSV have all digits and the board's own units; Markdown and LaTeX are rounded
    (`medtasks.leaderboard.exports.numbers`). The same board gives the same bytes.
    """
    files: list[ExportFile] = []

    def write(file: ExportFile, text: str) -> None:
        path = directory / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "replace"))  # as bytes: line ends stay what the format wants
        files.append(file)

    schema = json.dumps(board_schema(), indent=1, sort_keys=True, ensure_ascii=False)
    write(ExportFile("board.json", "json"), canonical_json(board.model_dump(mode="json")) + "\n")
    write(ExportFile("board.schema.json", "json"), schema + "\n")
    for benchmark in board.benchmarks:
        folder, name = safe_name(benchmark.name), benchmark.name
        write(ExportFile(f"{folder}/scores.csv", "csv", name), as_csv(board, benchmark))
        for table in benchmark.tables:
            stem = f"{folder}/{safe_name(table.name)}"
            write(ExportFile(f"{stem}.md", "markdown", name, table.name), as_markdown(board, benchmark, table))
            write(ExportFile(f"{stem}.tex", "latex", name, table.name), as_latex(board, benchmark, table))
    return tuple(files)
