"""The cells of a table by column, and what they look like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where
from medtasks.core.text import shortened
from medtasks.data.folder_cells import CellError, cell_list, cell_text, listed_options
from medtasks.data.tables import SourceTable, read_table_file

_SUFFIXES = frozenset(
    {"bmp", "dcm", "gif", "jfif", "jp2", "jpeg", "jpg", "png", "tif", "tiff", "webp"}
)
_PICTURE = re.compile(r"https?://|data:image/|[A-Za-z0-9+/\r\n]{64,}={0,2}$", re.IGNORECASE)
_LONGEST_NAME = 200
"""Characters of a path or URL that is printed as an example; longer ones are files in base64."""
_MOST_GROUPS = 20
"""Values of a column by which scores are broken down, at most."""
_ROWS_OF_GROUP = 5
"""Rows with each of such values, on average and at least: scores of fewer say little."""
_LONGEST_GROUP = 40
"""Characters of such a value."""
_EXAMPLE_LENGTH = 36
"""Characters of an example that is printed."""


@dataclass(frozen=True)
class TableColumn:
    """One column of a table.

    Attributes:
        name: its name in the table.
        cells: its cell in each row; empty texts where a row has none.
        places: the place of each row.
    """

    name: str
    cells: Sequence[Any]
    places: Sequence[Where]

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The texts of the cells without blanks around them; empty for cells without a text."""
        return tuple(_text_of(cell) for cell in self.cells)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each text occurs that is not empty."""
        return Counter(filter(None, self.texts))

    @cached_property
    def pictures(self) -> int:
        """The number of cells that look like a picture or its path."""
        files = sum(isinstance(cell, bytes | tuple) for cell in self.cells)
        return files + sum(count for text, count in self.counts.items() if is_like_picture(text))

    @property
    def has_pictures(self) -> bool:
        """Whether nine of ten cells with content look like a picture or its path."""
        filled = sum(bool(cell) for cell in self.cells)
        return filled > 0 and self.pictures >= 0.9 * filled

    @property
    def has_groups(self) -> bool:
        """Whether the column has few short values, each with several rows on average."""
        values = self.counts
        if not 2 <= len(values) <= _MOST_GROUPS or self.has_pictures:
            return False
        is_short = max(map(len, values)) <= _LONGEST_GROUP
        are_large = _ROWS_OF_GROUP * len(values) <= values.total()
        return is_short and are_large and 2 * values.total() >= len(self.cells)

    @property
    def is_blank(self) -> bool:
        """Whether no cell has content."""
        return not any(self.cells)

    @property
    def example(self) -> str:
        """The first text that is not empty, shortened."""
        if not self.counts:
            return "(picture)" if self.has_pictures else ""
        first = next(iter(self.counts))
        is_file = len(first) > _LONGEST_NAME and is_like_picture(first)
        return "(picture in base64)" if is_file else shortened(first, _EXAMPLE_LENGTH)

    def first_repeated(self) -> tuple[Where, Where] | None:
        """The places of a text and of its first repetition; None if no text repeats."""
        first_places: dict[str, Where] = {}
        for text, where in zip(self.texts, self.places, strict=True):
            if text and text in first_places:
                return first_places[text], where
            first_places[text] = where
        return None

    def options(self, row: int) -> dict[str, str]:
        """The options by letter that a cell lists; none if it lists none."""
        try:
            return listed_options(self.cells[row], self.places[row])
        except CellError:
            return {}


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table by name, the file that they are from, its number of rows, and the
    sheets that are not read.
    """

    path: Path
    by_name: Mapping[str, TableColumn]
    rows: int
    other_sheets: tuple[str, ...] = ()

    @classmethod
    def of_file(cls, path: Path) -> TableColumns:
        """The columns of the table in a file; raises as `read_table_file` does."""
        table = read_table_file(path)
        columns = {name: _column(table, name) for name in table.columns}
        return cls(path, columns, len(table.rows), table.other_sheets)

    def __getitem__(self, name: str) -> TableColumn:
        return self.by_name[name]

    @property
    def names(self) -> list[str]:
        """The names of the columns in their order in the table."""
        return list(self.by_name)


def _column(table: SourceTable, name: str) -> TableColumn:
    """The column of a table with this name."""
    cells = [row.row.get(name, "") for row in table.rows]
    return TableColumn(name, cells, [row.where for row in table.rows])


def _text_of(cell: Any) -> str:
    """The text of a cell; empty if it has none."""
    try:
        return cell_text(cell)
    except CellError:
        return ""


def is_like_picture(cell: Any) -> bool:
    """Whether a cell is a picture, or a text that looks like one, its path or URL, or their
    list.
    """
    items = cell_list(cell)
    if items is not None:
        return bool(items) and all(is_like_picture(item) for item in items)
    if isinstance(cell, bytes):
        return True
    if not isinstance(cell, str):
        return False
    text = cell.strip()
    suffix = text[-5:].lower().rpartition(".")[2]
    return suffix in _SUFFIXES or _PICTURE.match(text) is not None
