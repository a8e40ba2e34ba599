"""The filters of the Markdown template, by name in `MARKDOWN_FILTERS`.

Text of a board must neither become markup nor end the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from medtasks.core.text import one_line

from ..board.floors import floors_text
from ..schema.numbers import column_note, shown, shown_interval
from ..schema.score_tables import BoardColumn, Cell

_SPECIAL = re.compile(r"([\\`*_\[\]<>|~#&$])")
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|www)([:.])")


def markdown_escaped(text: str) -> str:
    r"""``text`` without markup, HTML or links, on one line of a table.

    >>> print(markdown_escaped("a|b <i>x_y</i>"))
    a\|b \<i\>x\_y\</i\>
    """
    without_markup = _SPECIAL.sub(r"\\\1", one_line(text))
    return _LINK.sub(r"\1\\\2", without_markup)


def markdown_cell(cell: Cell | None, column: BoardColumn) -> str:
    """A score with its interval, or why it has no value; empty if the model was not run.

    >>> column = BoardColumn(key="k", task="t", metric="m", label="Accuracy", unit="fraction",
    ...                      higher_is_better=True)
    >>> cell = Cell(value=0.581, low=0.502, high=0.644, items=90, signature="", incomplete=True)
    >>> markdown_cell(cell, column)
    '58.1 [50.2, 64.4] (incomplete)'
    """
    if cell is None:
        return ""
    if cell.value is None:
        return f"no value: {markdown_escaped(cell.reason or 'no reason given')}"
    text = shown(cell.value, column.unit)
    ends = shown_interval(cell, column.unit)
    if ends:
        text += f" [{ends}]"
    if cell.incomplete:
        text += " (incomplete)"
    return text


_FILTERS: tuple[Callable[..., Any], ...] = (
    column_note,
    floors_text,
    markdown_cell,
    markdown_escaped,
    one_line,
)
MARKDOWN_FILTERS: Mapping[str, Callable[..., Any]] = {
    function.__name__: function for function in _FILTERS
}
"""The filters by the names of their functions."""
