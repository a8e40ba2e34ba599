"""A board as files that others read: JSON with its schema, and each benchmark as CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from medtasks.files import canonical_json

from ..board import Board
from .latex import as_latex
from .markdown import as_markdown
from .names import safe_name
from .tidy import as_csv

__all__ = ["ExportFile", "board_schema", "write_exports"]


@dataclass(frozen=True)
class ExportFile:
    """One file: its path relative to the folder, and what it holds; empty names mean all of them."""

    path: str
    format: Literal["csv", "json", "markdown", "latex"]
    benchmark: str = ""
    table: str = ""


def board_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``board.json``."""
    schema: dict[str, Any] = Board.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def write_exports(board: Board, directory: Path) -> tuple[ExportFile, ...]:
    """Write ``board.json``, ``board.schema.json``, and of every benchmark ``<name>/scores.csv`` with all its tables,
    and each table as ``<name>/<table>.md`` and ``<name>/<table>.tex``; the files, in the order of the board.

    JSON and CSV have all digits and the board's own units; Markdown and LaTeX are rounded
    (:mod:`medtasks.leaderboard.exports.numbers`). The same board gives the same bytes.
    """
    directory.mkdir(parents=True, exist_ok=True)
    schema = json.dumps(board_schema(), indent=1, sort_keys=True, ensure_ascii=False)
    _write(directory, "board.json", canonical_json(board.model_dump(mode="json")) + "\n")
    _write(directory, "board.schema.json", schema + "\n")
    files = [ExportFile("board.json", "json"), ExportFile("board.schema.json", "json")]
    for benchmark in board.benchmarks:
        folder = safe_name(benchmark.name)
        _write(directory, f"{folder}/scores.csv", as_csv(board, benchmark))
        files.append(ExportFile(f"{folder}/scores.csv", "csv", benchmark.name))
        for table in benchmark.tables:
            stem = f"{folder}/{safe_name(table.name)}"
            _write(directory, f"{stem}.md", as_markdown(board, benchmark, table))
            _write(directory, f"{stem}.tex", as_latex(board, benchmark, table))
            files.append(ExportFile(f"{stem}.md", "markdown", benchmark.name, table.name))
            files.append(ExportFile(f"{stem}.tex", "latex", benchmark.name, table.name))
    return tuple(files)


def _write(directory: Path, name: str, text: str) -> None:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode("utf-8", "replace"))  # as bytes: line ends stay what the format wants
