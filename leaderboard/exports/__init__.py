"""A board as files: JSON with a documented schema, and each benchmark as CSV, Markdown and LaTeX."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from medtasks.core.files import canonical_json

from ..board.board import Board
from ..board.numbers import safe_name
from .tables import as_csv, as_latex, as_markdown

__all__ = ["board_schema", "exports_of", "write_exports"]


def board_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of ``board.json``."""
    schema: dict[str, Any] = Board.model_json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


def write_exports(board: Board, directory: Path) -> None:
    """Write the files of :func:`exports_of` below ``directory``."""
    for name, content in exports_of(board).items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content())


def exports_of(board: Board) -> dict[str, Callable[[], bytes]]:
    """Functions that make the exported files, by path: ``board.json`` and ``board.schema.json``, for each benchmark
    ``<name>/scores.csv``, and each of its tables as ``<name>/<table>.md`` and ``<name>/<table>.tex``.

    JSON and CSV have all digits and the board's own units; Markdown and LaTeX are rounded
    (`medtasks.leaderboard.board.numbers`). The same board gives the same bytes.
    """
    found: dict[str, Callable[[], str]] = {
        "board.json": lambda: canonical_json(board.model_dump(mode="json")) + "\n",
        "board.schema.json": lambda: json.dumps(board_schema(), indent=1, sort_keys=True, ensure_ascii=False) + "\n",
    }
    for benchmark in board.benchmarks:
        folder = safe_name(benchmark.name)
        found[f"{folder}/scores.csv"] = partial(as_csv, board, benchmark)
        for table in benchmark.tables:
            stem = f"{folder}/{safe_name(table.name)}"
            found[f"{stem}.md"] = partial(as_markdown, board, benchmark, table)
            found[f"{stem}.tex"] = partial(as_latex, board, benchmark, table)
    return {name: partial(_encoded, make) for name, make in found.items()}


def _encoded(make: Callable[[], str]) -> bytes:
    return make().encode("utf-8", "replace")  # bytes, to keep each format's line endings
