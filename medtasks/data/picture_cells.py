"""The pictures that a cell of a table names or contains: paths, URLs, and files in base64."""

from __future__ import annotations

import ast
import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import TypeAlias

from medtasks.core.errors import DataError
from medtasks.core.schema import shown
from medtasks.data.media.pictures import begins_like_a_picture
from medtasks.data.tables import TableRow


@dataclass(frozen=True)
class PicturePath:
    """The path of a picture, as the table has it."""

    path: str


@dataclass(frozen=True)
class PictureUrl:
    """The address of a picture, which begins with ``http://`` or ``https://``."""

    url: str


@dataclass(frozen=True)
class PictureFile:
    """The content of a picture's file."""

    data: bytes


CellPicture: TypeAlias = PicturePath | PictureUrl | PictureFile

_URL = re.compile(r"https?://", re.IGNORECASE)
_DATA_URL = re.compile(r"data:image/[\w.+-]+;base64,", re.IGNORECASE)
_SHORTEST_FILE = 64
"""Characters of the shortest text that is read as a file in base64 without saying so."""


def cell_pictures(row: TableRow, column: str) -> tuple[CellPicture, ...]:
    """The pictures of a cell, in its order; none if it is blank.

    A cell is the file of a picture, its path, URL or base64 (also with ``data:image/png;base64,``),
    or a list of these in JSON or, as VLMEvalKit writes it, in Python's notation.

    Raises:
        DataError: the cell is something else; names file, line and column.
    """
    cell = row.cells.get(column, "")
    if isinstance(cell, bytes):
        return (PictureFile(cell),)
    if isinstance(cell, tuple):
        return tuple(PictureFile(data) for data in cell)
    text = cell.strip() if isinstance(cell, str) else row.text(column)
    if not text:
        return ()
    names = _listed_texts(text)
    if names is None:
        raise DataError(
            f"{row.where}: column `{column}` is {shown(text)}, expected a picture or a list of "
            'pictures, such as a.png or ["a.png", "b.png"]; fix the row.'
        )
    return tuple(_picture(name) for name in names)


def _listed_texts(text: str) -> list[str] | None:
    """The texts in a list, or the text itself if it is no list; None if it is another list."""
    if not (text.startswith("[") and text.endswith("]")):
        return [text]
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        try:
            values = ast.literal_eval(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
    texts = [value.strip() for value in values if isinstance(value, str) and value.strip()]
    return texts if len(texts) == len(values) else None


def _picture(text: str) -> CellPicture:
    """The picture that a text names, or contains in base64."""
    if _URL.match(text):
        return PictureUrl(text)
    statement = _DATA_URL.match(text)
    if statement is not None:
        return PictureFile(_decoded(text[statement.end() :]) or b"")
    if len(text) >= _SHORTEST_FILE:
        data = _decoded(text)
        if data is not None and begins_like_a_picture(data):
            return PictureFile(data)
    return PicturePath(text)


def _decoded(text: str) -> bytes | None:
    """The bytes that a text has in base64, which may be broken into lines; None if it has none."""
    joined = "".join(text.split())
    try:
        return base64.b64decode(joined + "=" * (-len(joined) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
