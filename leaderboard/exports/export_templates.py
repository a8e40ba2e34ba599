"""The environment of the templates of exports. Its delimiters are neither LaTeX nor Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined


def export_environment(filters: Mapping[str, Callable[..., Any]]) -> Environment:
    """A new environment with the ``filters`` of one format, which escapes nothing by itself."""
    environment = Environment(
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
    environment.filters.update(filters)
    return environment
