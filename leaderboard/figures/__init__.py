"""Figures of a board, drawn with matplotlib."""
