"""The environment of the view's templates: that of the site, with what the view's own pages
need.
"""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment

from ..schema.board import Board
from ..site.pages import page_environment
from .addresses import address, sample_address
from .selection_sql import OUTCOMES

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'"
)
"""Of the view's own pages, which have forms and fetch what changes."""
_SORTS = {
    "id": "by id",
    "low": "lowest score first",
    "high": "highest score first",
    "split": "most disputed first",
}


def view_environment(board: Board) -> Environment:
    """The templates of the site and of the view, with what every page shows."""
    environment = page_environment(board, served=True, further=[Path(__file__).parent / "pages"])
    environment.globals.update(
        policy=POLICY,
        outcomes=OUTCOMES,
        sorts=_SORTS,
        address=address,
        sample_address=sample_address,
    )
    return environment
