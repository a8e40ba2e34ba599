"""Cells of a LaTeX table: names, headings, numbers and intervals."""

from __future__ import annotations

from medtasks.core.text import one_line

from ..schema.numbers import UNITS, column_note, shown, shown_interval
from ..schema.published_figures import Published
from ..schema.score_tables import BoardColumn, Cell
from .latex_filters import latex_escaped
from .latex_widths import text_width

_HEADING_WIDTH = 42.0
"""Points after which a heading goes on in its next line."""
_EMPHASES = {1: r"\textbf{%s}", 2: r"\underline{%s}"}
"""Emphasis of the best value and of the second."""
_ARROW = " ^"
"""Stands for the arrow of a heading, which is about as wide."""
_NAME_SEPARATORS = ("/", "-", r"\_")


def latex_name(name: str) -> str:
    """A name that may be broken after separators."""
    escaped = latex_escaped(name)
    for separator in _NAME_SEPARATORS:
        escaped = escaped.replace(separator, rf"{separator}\allowbreak{{}}")
    return escaped


def heading_lines(column: BoardColumn) -> list[str]:
    """The heading in lines of limited width; the last one has the unit, and room for an arrow."""
    lines: list[str] = []
    for word in one_line(column.label).split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_width(longer) <= _HEADING_WIDTH:
            lines[-1] = longer
        else:
            lines.append(word)
    note = column_note(column) if column.signed else UNITS[column.unit]
    return [*lines, f"({note}){_ARROW}"]


def latex_heading(column: BoardColumn) -> str:
    """The heading with its unit and, if a value can be the best, an arrow to better values."""
    *label, note = heading_lines(column)
    unit = latex_escaped(note.removesuffix(_ARROW))
    if column.has_best:
        unit += r" $\uparrow$" if column.higher_is_better else r" $\downarrow$"
    lines = [*map(latex_escaped, label), unit]
    stacked = r"\\".join(lines)
    return rf"\shortstack[r]{{{stacked}}}"


def latex_number(cell: Cell | None, column: BoardColumn, place: int | None) -> str:
    """A score, emphasised by its place; with a star if it is incomplete, a dash if it is absent."""
    if cell is None or cell.value is None:
        return "--"
    number = latex_minus(shown(cell.value, column.unit))
    if place is not None:
        number = _EMPHASES[place] % number
    return f"{number}*" if cell.incomplete else number


def latex_interval(cell: Cell | None, column: BoardColumn) -> str:
    """The interval of a score in small type; empty without one."""
    if cell is None or cell.value is None:
        return ""
    ends = shown_interval(cell, column.unit)
    if not ends:
        return ""
    with_minus = ", ".join(latex_minus(end) for end in ends.split(", "))
    return rf"{{\scriptsize [{with_minus}]}}"


def latex_minus(number: str) -> str:
    """A number with a true minus sign.

    >>> latex_minus("-1.5")
    '$-$1.5'
    """
    return f"$-${number[1:]}" if number.startswith("-") else number


def source_note(figure: Published) -> str:
    """The paper's table, and where it was read if not there."""
    elsewhere = "" if figure.source == "paper" else f" ({figure.source})"
    return latex_escaped(f"Published, not re-run: {figure.paper}, {figure.table}{elsewhere}")
