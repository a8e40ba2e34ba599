"""Figures of a board, drawn with matplotlib: SVG that follows a dark page, PNG and PDF; the same bytes every time."""

from __future__ import annotations

from .draw import FORMATS, FigureFiles, draw_all

__all__ = ["FORMATS", "FigureFiles", "draw_all"]
