"""A board as files: JSON with a documented schema, and each benchmark as CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from medtasks.files import canonical_json

from ..board import Board
from ..numbers import safe_name
from .tables import as_latex, as_markdown
from .tidy import as_csv

__all__ = ["board_schema", "write_exports"]


def board_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``board.json``."""
    schema: dict[str, Any] = Board.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def write_exports(board: Board, directory: Path) -> None:
    """Write ``board.json`` and ``board.schema.json``, for each benchmark ``<name>/scores.csv``, and each of its tables
    as ``<name>/<table>.md`` and ``<name>/<table>.tex``.

    JSON and CSV have all digits and the board's own units; Markdown and LaTeX are rounded
    (`medtasks.leaderboard.numbers`). The same board gives the same bytes.
    """

    def write(name: str, text: str) -> None:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8", "replace"))  # as bytes, to keep each format's line endings

    write("board.json", canonical_json(board.model_dump(mode="json")) + "\n")
    write("board.schema.json", json.dumps(board_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    for benchmark in board.benchmarks:
        folder = safe_name(benchmark.name)
        write(f"{folder}/scores.csv", as_csv(board, benchmark))
        for table in benchmark.tables:
            stem = f"{folder}/{safe_name(table.name)}"
            write(f"{stem}.md", as_markdown(board, benchmark, table))
            write(f"{stem}.tex", as_latex(board, benchmark, table))
