"""The environment of the templates of exports. Its delimiters are neither LaTeX nor Markdown."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def export_environment() -> Environment:
    """A new environment, which escapes nothing by itself: each format has filters of its own."""
    return Environment(
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
