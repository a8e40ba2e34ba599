"""A board as files: JSON with a documented schema, CSV, Markdown, LaTeX."""

from __future__ import annotations

from .files import ExportFile, board_schema, write_exports

__all__ = ["ExportFile", "board_schema", "write_exports"]
