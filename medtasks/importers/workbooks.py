"""The texts in a workbook's first sheet, as whoever wrote them meant them.

Spreadsheets change texts: control characters are written as ``_x000D_`` (ECMA-376, ST_Xstring), a text that begins
with ``=`` becomes a formula, one like *11-20* a date, and a cell ends after 32,767 characters. Escapes and formulas
are turned back into texts. What is lost is marked as such, and never read as another text.
"""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError, first_line
from medtasks.core.files import MAX_JSON_BYTES
from medtasks.data.release import member_blocks, open_archive
from medtasks.data.sources import SourceRow

MOST_TAGS = 5_000_000
"""Tags in a workbook's XML at most, twenty times those of 16,000 predictions: each takes up to 300 bytes of memory."""
CELL_LIMIT = 32_767
"""Characters that a cell holds at most: writers cut what is longer."""

_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


@dataclass(frozen=True)
class LostText:
    """A cell whose text is not in the file any more, with what is there instead."""

    found: str

    def __repr__(self) -> str:
        return self.found


def is_cut(text: str) -> bool:
    """Whether a text is as long as a cell can be: in characters, or in UTF-16 units as spreadsheet programs count."""
    return CELL_LIMIT in (len(text), len(text.encode("utf-16-le", "surrogatepass")) // 2)


def read_workbook(path: Path) -> list[SourceRow]:
    """The rows of the first sheet that are not blank, by the names in its first row: texts, or :class:`LostText`.

    An empty cell is an empty text. Raises :class:`DataError` if the file is damaged, too large, or has no such row.
    """
    _check_size(path)
    rows: dict[int, dict[str, str | LostText]] = {}
    formulas: set[tuple[int, str]] = set()
    with _first_sheet(path) as sheet:
        names = _header(path, sheet)
        empty: dict[str, str | LostText] = dict.fromkeys(filter(None, names), "")
        for number, cells in _filled_rows(sheet, names):
            rows[number] = empty | {name: _text(cell) for name, cell in cells.items()}
            formulas.update((number, name) for name, cell in cells.items() if cell.data_type == "f")
    if formulas:
        with _first_sheet(path, computed=True) as sheet:
            for number, cells in _filled_rows(sheet, names):
                for name, cell in cells.items():
                    if (number, name) in formulas and cell.data_type == "s":  # a formula that gave a text
                        rows[number][name] = _unescaped(cell.value)
    if not rows:
        raise DataError(f"{path}: its first sheet has no row below the header; write or fetch it again.")
    return [SourceRow(Where(path.name, number, unit="row"), texts) for number, texts in rows.items()]


def _check_size(path: Path) -> None:
    """Refuse a workbook that is too large when it is unpacked."""
    unpacked, tags = 0, 0
    with open_archive(path) as archive:
        for member in archive.infolist():
            for block in member_blocks(archive, member.filename, MAX_JSON_BYTES) if _is_xml(member.filename) else ():
                unpacked += len(block)
                tags += block.count(b"<")
                if unpacked > MAX_JSON_BYTES or tags > MOST_TAGS:
                    raise DataError(
                        f"{path}: unpacked, it has more than {MAX_JSON_BYTES:,} bytes or {MOST_TAGS:,} XML tags, the "
                        "limits for a workbook; save the sheet as .tsv."
                    )


def _is_xml(member: str) -> bool:
    return member.endswith((".xml", ".rels"))


@contextmanager
def _first_sheet(path: Path, *, computed: bool = False) -> Iterator[Any]:
    """The first sheet, with formulas, or with what they ``computed`` when the file was written; what is wrong with it
    is a :class:`DataError`."""
    from openpyxl import load_workbook  # type: ignore[import-untyped]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions
            book = load_workbook(path, read_only=True, data_only=computed)
            try:
                sheet = book.worksheets[0]
                sheet.reset_dimensions()  # a sheet may state fewer rows than it has
                yield sheet
            finally:
                book.close()
    except DataError:
        raise
    except Exception as error:  # zipfile, XML or openpyxl may raise anything
        raise DataError(f"{path}: not a readable workbook ({first_line(error)}); save it again, or as .tsv.") from error


def _header(path: Path, sheet: Any) -> list[str]:
    first = next(sheet.iter_rows(max_row=1), ())
    names = ["" if cell.value is None else _unescaped(str(cell.value)).strip() for cell in first]
    repeated = next((name for name, times in Counter(filter(None, names)).items() if times > 1), None)
    if repeated is not None:
        place = Where(path.name, 1, unit="row")
        raise DataError(f"{place}: column {repeated[:60]!r} is duplicated in the header; rename one.")
    return names


def _filled_rows(sheet: Any, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The rows below the header with a cell that is not empty: their number, and these cells by name."""
    width = max(len(names), 1)  # a row may be 16,384 cells wide
    for number, row in enumerate(sheet.iter_rows(min_row=2, max_col=width), start=2):
        cells = {name: cell for name, cell in zip(names, row, strict=False) if name and cell.value is not None}
        if cells:
            yield number, cells


# --- cells ---


def _text(cell: Any) -> str | LostText:
    value = cell.value
    if cell.data_type == "f":
        return _formula_text(value)
    if cell.data_type == "e":
        return LostText(f"the error {value}")
    if isinstance(value, date | time | timedelta):
        return LostText(f"the date or time {value}")
    return _unescaped(str(value))


def _formula_text(formula: Any) -> str | LostText:
    """The text that was taken for a formula; XlsxWriter takes one in braces for a formula of an array."""
    written = getattr(formula, "text", formula)
    if not isinstance(written, str) or written in ("", "="):
        return LostText("a formula without its text")
    text = _unescaped(written)
    return text if written is formula else f"{{{text}}}"


def _unescaped(text: str) -> str:
    """``text`` with characters for their escapes.

    >>> _unescaped("B_x000D_"), _unescaped("_x005F_x000D_"), _unescaped("_xD83D__xDE00_") == "\U0001f600"
    ('B\\r', '_x000D_', True)
    """
    if "_x" not in text:
        return text
    decoded = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    return decoded.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")  # joins halves of pairs
