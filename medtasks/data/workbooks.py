"""The texts in a workbook's first sheet, as a program wrote them or as a person sees them.

Spreadsheets change texts: control characters are written as ``_x000D_`` (ECMA-376, ST_Xstring), a
text that begins with ``=`` becomes a formula, one like *11-20* a date, and a cell ends after 32,767
characters. Escapes are turned back into texts. A formula is the text that a program wrote, or the
result that a person sees. What is lost is marked as such, and never read as another text.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import ROUND_HALF_UP, Context, Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from xml.etree import ElementTree
from zipfile import ZipFile

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError, first_line
from medtasks.core.files import MAX_JSON_BYTES
from medtasks.data.archives import member_blocks, open_archive
from medtasks.data.csv_rows import require_distinct, with_all_named
from medtasks.data.lost_text import LostText
from medtasks.data.sources import SourceRow

if TYPE_CHECKING:
    from openpyxl.worksheet.cell_range import CellRange

MOST_TAGS = 5_000_000
"""Maximum number of tags in a workbook's XML; each takes up to 300 bytes of memory."""
CELL_LIMIT = 32_767
"""Characters that a cell holds at most: writers cut what is longer."""

_UNNAMED_COLUMNS = 20
"""Columns to the right of the header whose cells are read: one may be a column without a name."""

_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")


_Texts: TypeAlias = dict[str, str | LostText]
"""The texts of a row, by column."""
_CellPlace: TypeAlias = tuple[int, str]
"""A cell's row, by its number, and column, by its name."""


def is_cut(text: str) -> bool:
    """Whether a text is as long as a cell can be: in characters, or in units of UTF-16, in which
    spreadsheet programs count."""
    units = len(text.encode("utf-16-le", "surrogatepass")) // 2
    return CELL_LIMIT in (len(text), units)


def read_workbook(path: Path, *, as_displayed: bool = False) -> list[SourceRow]:
    """The rows of the first sheet that are not blank: texts, or :class:`LostText`, by the names in
    its first row. An empty cell is an empty text.

    By default, a formula is the text that a program wrote, and of several merged cells, all but the
    first have lost their texts. With ``as_displayed``, a formula is its result, numbers are as a
    spreadsheet program displays them, and each of several merged cells has their text.

    Raises:
        DataError: the file is damaged or too large, or has no such row.
    """
    _check_size(path)
    text_of = _displayed_text if as_displayed else _text
    rows: dict[int, _Texts] = {}
    formulas: set[_CellPlace] = set()
    with _first_sheet(path) as sheet:
        names = _header(path, sheet)
        if as_displayed and names:
            names = with_all_named([*names, *[""] * _UNNAMED_COLUMNS])
        empty: _Texts = dict.fromkeys(filter(None, names), "")
        for number, cells in _filled_rows(sheet, names):
            rows[number] = dict(empty)
            for name, cell in cells.items():
                rows[number][name] = text_of(cell)
                if cell.data_type == "f":
                    formulas.add((number, name))
        merged = _merged_ranges(sheet)
    if formulas:
        _replace_formulas(path, names, rows, formulas, as_displayed=as_displayed)
    for cells_range in merged:
        _fill_range(cells_range, names, rows, as_displayed=as_displayed)
    if not rows:
        problem = "its first sheet has no row below the header; write or fetch it again."
        raise DataError(f"{path}: {problem}")
    return [
        SourceRow(Where(path.name, number, unit="row"), texts) for number, texts in rows.items()
    ]


def sheet_names(path: Path) -> tuple[str, ...]:
    """The names of a workbook's sheets.

    Raises:
        DataError: the file is damaged.
    """
    with _open_workbook(path) as book:
        return tuple(sheet.title for sheet in book.worksheets)


def _replace_formulas(
    path: Path,
    names: Sequence[str],
    rows: Mapping[int, _Texts],
    formulas: AbstractSet[_CellPlace],
    *,
    as_displayed: bool,
) -> None:
    """Replace each of the ``formulas`` in ``rows`` whose result is a text by that text; with
    ``as_displayed``, also those with other results.
    """
    with _first_sheet(path, computed=True) as sheet:
        for number, cells in _filled_rows(sheet, names):
            for name, cell in cells.items():
                if (number, name) not in formulas:
                    continue
                if cell.data_type == "s":
                    rows[number][name] = _unescaped(cell.value)
                elif (
                    as_displayed and cell.value != 0
                ):  # programs write 0 for what they don't compute
                    rows[number][name] = _displayed_text(cell)


def _merged_ranges(sheet: Any) -> list[CellRange]:
    """The ranges of merged cells, which openpyxl omits when it reads a sheet in pieces."""
    from openpyxl.worksheet.cell_range import CellRange

    with sheet._get_source() as source:
        return [
            CellRange(element.get("ref"))
            for _, element in ElementTree.iterparse(source)
            if element.tag.endswith("}mergeCell")
        ]


def _fill_range(
    cells_range: CellRange, names: Sequence[str], rows: Mapping[int, _Texts], *, as_displayed: bool
) -> None:
    """Fill the cells of a range after its first one, which are empty in the file: with the text
    of the first one if they are filled ``as_displayed``, otherwise with a `LostText`.
    """
    first_row, first_column = cells_range.min_row, cells_range.min_col - 1
    if first_row not in rows or first_column >= len(names):
        return
    text: str | LostText = LostText(f"one of the merged cells {cells_range.coord}")
    if as_displayed:
        text = rows[first_row].get(names[first_column], "")
    for number in range(first_row, cells_range.max_row + 1):
        for column in range(first_column, min(cells_range.max_col, len(names))):
            is_first = (number, column) == (first_row, first_column)
            if names[column] and number in rows and not is_first:
                rows[number][names[column]] = text


def _check_size(path: Path) -> None:
    """Refuse a workbook that is too large when it is unpacked."""
    unpacked, tags = 0, 0
    with open_archive(path) as archive:
        names = [name for name in archive.namelist() if name.endswith((".xml", ".rels"))]
        for block in _blocks_of(archive, names):
            unpacked += len(block)
            tags += block.count(b"<")
            if unpacked > MAX_JSON_BYTES or tags > MOST_TAGS:
                size = f"more than {MAX_JSON_BYTES:,} bytes or {MOST_TAGS:,} XML tags"
                problem = f"unpacked, it has {size}, the limits for a workbook; save it as .tsv."
                raise DataError(f"{path}: {problem}")


def _blocks_of(archive: ZipFile, names: Sequence[str]) -> Iterator[bytes]:
    for name in names:
        yield from member_blocks(archive, name, MAX_JSON_BYTES)


@contextmanager
def _first_sheet(path: Path, *, computed: bool = False) -> Iterator[Any]:
    """The first sheet, with formulas, or with what they ``computed`` when the file was written.

    Raises:
        DataError: whatever openpyxl finds wrong, also in the block.
    """
    with _open_workbook(path, computed=computed) as book:
        sheet = book.worksheets[0]
        sheet.reset_dimensions()  # a sheet may state fewer rows than it has
        yield sheet


@contextmanager
def _open_workbook(path: Path, *, computed: bool = False) -> Iterator[Any]:
    """A workbook, as `_first_sheet` needs it."""
    from openpyxl import load_workbook

    try:
        # as a stream: openpyxl refuses paths with another suffix
        with path.open("rb") as stream, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about styles and extensions
            book = load_workbook(stream, read_only=True, data_only=computed)
            try:
                yield book
            finally:
                book.close()
    except DataError:
        raise
    except Exception as error:  # zipfile, XML or openpyxl may raise anything
        problem = f"not a readable workbook ({first_line(error)}); save it again, or as .tsv."
        raise DataError(f"{path}: {problem}") from error


def _header(path: Path, sheet: Any) -> list[str]:
    """The names in the first row, empty for columns without one; refuses a name that repeats."""
    names: list[str] = []
    for cell in next(sheet.iter_rows(max_row=1), ()):
        names.append("" if cell.value is None else _unescaped(str(cell.value)).strip())
    require_distinct(names, Where(path.name, 1, unit="row"))
    return names


def _filled_rows(sheet: Any, names: Sequence[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The number of each row below the header that is not blank, and its cells by name."""
    width = max(len(names), 1)  # a row may be 16,384 cells wide
    for number, row in enumerate(sheet.iter_rows(min_row=2, max_col=width), start=2):
        named = zip(names, row, strict=False)
        cells = {name: cell for name, cell in named if name and cell.value is not None}
        if any(str(cell.value).strip() for cell in cells.values()):
            yield number, cells


# --- cells ---


def _text(cell: Any) -> str | LostText:
    """The text of a cell as it was written; `LostText` if the sheet has a value in its place."""
    value = cell.value
    if cell.data_type == "f":
        return _formula_text(value)
    if cell.data_type == "e":
        return LostText(f"the error {value}")
    if isinstance(value, date | time | timedelta):
        return LostText(f"the date or time {value}")
    return _unescaped(str(value))


_ZEROS = re.compile(r"0+(?:\.(?P<decimals>0+))?(?P<percent>%)?")
"""A number format that states how many digits are displayed at least, such as 0000, 0.00 or 0%."""
_EXACT = Context(prec=100_000)
"""More digits than any number or format has."""


def _displayed_text(cell: Any) -> str | LostText:
    """The text of a cell as a spreadsheet program displays it."""
    value = cell.value
    if cell.data_type == "f":
        return LostText("a formula without a computed result")
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, int | float):
        return _displayed_number(value, cell.number_format)
    text = _text(cell)
    if isinstance(text, str) and is_cut(text):
        return LostText(f"a text that was probably cut: {CELL_LIMIT:,} characters fit into a cell")
    return text


def _displayed_number(value: int | float, number_format: str) -> str:
    """A number without the decimals of a whole one, or in a format of zeros, also of percentages.

    >>> (_displayed_number(7.0, "General"),
    ...  _displayed_number(7, "0000"),
    ...  _displayed_number(1.5, "0.00"),
    ...  _displayed_number(0.125, "0%"),
    ...  _displayed_number(0.1 + 0.2, "General"))
    ('7', '0007', '1.50', '13%', '0.3')
    """
    if isinstance(value, float):
        value = float(f"{value:.15g}")  # spreadsheet programs use 15 digits
    zeros = _ZEROS.fullmatch(number_format or "")
    if zeros is not None:
        return _in_zeros(value, zeros)
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if is_whole else value)


def _in_zeros(value: int | float, zeros: re.Match[str]) -> str:
    """A number in a format of zeros, rounded as spreadsheet programs do: halves away from zero, of
    the decimal digits and not of the binary fraction.
    """
    decimals = len(zeros["decimals"] or "")
    percent = zeros["percent"] or ""
    exact = Decimal(str(value)).scaleb(2 if percent else 0, _EXACT)
    if not exact.is_finite():
        return str(value)
    rounded = exact.quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP, _EXACT)
    sign = "-" if rounded < 0 else ""
    digits = f"{rounded.copy_abs():f}".zfill(len(zeros[0]) - len(percent))
    return f"{sign}{digits}{percent}"


def _formula_text(formula: Any) -> str | LostText:
    """The text that was taken for a formula, by XlsxWriter also if it is in braces."""
    written = getattr(formula, "text", formula)
    if not isinstance(written, str) or written in ("", "="):
        return LostText("a formula without its text")
    text = _unescaped(written)
    return text if written is formula else f"{{{text}}}"


def _unescaped(text: str) -> str:
    """``text`` with characters for their escapes.

    >>> _unescaped("B_x000D_"), _unescaped("_x005F_x000D_"), _unescaped("_xD83D__xDE00_")
    ('B\\r', '_x000D_', '😀')
    """
    if "_x" not in text:
        return text
    decoded = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    units = decoded.encode("utf-16-le", "surrogatepass")
    return units.decode("utf-16-le", "replace")  # joins the halves of surrogate pairs
