"""A board's table in Markdown, for a README or a model card."""

from __future__ import annotations

from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import shown_name
from ..schema.score_tables import BoardTable
from .export_templates import export_environment
from .markdown_filters import MARKDOWN_FILTERS
from .published import published_rows

_ENVIRONMENT = export_environment(MARKDOWN_FILTERS)
_ENVIRONMENT.globals.update(shown_name=shown_name)


def as_markdown(board: Board, benchmark: BenchmarkBoard, table: BoardTable) -> str:
    """The comparable rows, then those that are not comparable with the reasons, then the published
    ones.
    """
    published = list(published_rows(benchmark, table.columns))
    template = _ENVIRONMENT.get_template("table.md.j2")
    return template.render(board=board, benchmark=benchmark, table=table, published=published)
