"""A board's table in LaTeX (``booktabs``), as several tables if it is wider or longer than a page.

The interval of a score is in a line of its own below the score. These lines are the argument of a
macro, so that a document can leave them out: ``\\newcommand{\\medtasksintervals}[1]{}``.
"""

from __future__ import annotations

from ..schema.board import BenchmarkBoard, Board
from ..schema.numbers import safe_name, shown_name
from ..schema.score_tables import BoardTable
from .export_templates import export_environment
from .latex_filters import LATEX_FILTERS
from .latex_layout import TableLayout

INTERVAL_MACRO = r"\providecommand{\medtasksintervals}[1]{#1}"
_MOST_FLOATS = 10
"""Tables in a row after which the page is cleared; LaTeX keeps a limited number of floats."""

_ENVIRONMENT = export_environment(LATEX_FILTERS)
_ENVIRONMENT.globals.update(shown_name=shown_name, interval_macro=INTERVAL_MACRO)


def as_latex(
    board: Board, benchmark: BenchmarkBoard, table: BoardTable, *, intervals: bool = True
) -> str:
    """The comparable rows, then the published ones below a rule; comments name all other rows.

    The best comparable value is bold, the second underlined (`places`). Without ``intervals`` there
    are numbers alone.
    """
    layout = TableLayout(board, benchmark, table, intervals)
    return _ENVIRONMENT.get_template("table.tex.j2").render(
        board=board,
        benchmark=benchmark,
        table=table,
        label=f"{safe_name(benchmark.name)}-{safe_name(table.name)}",
        parts=list(layout.parts()),
        intervals=intervals,
        floats=_MOST_FLOATS,
    )
