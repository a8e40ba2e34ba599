"""Workbooks as XlsxWriter writes them (the default of pandas), put together by hand: openpyxl
writes others.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>'
    '<Override PartName="/xl/worksheets/sheet1.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
    "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
    '<sheets><sheet name="Sheet1" sheetId="1" r:id="rId1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
    f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>',
}


def text(value: str) -> str:
    """A cell with a text, as it is in the XML."""
    return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def formula(written: str, result: str = "<v>0</v>", kind: str = "") -> str:
    """A cell with a formula; XlsxWriter does not compute its result and writes 0."""
    return f"<c{kind}><f>{escape(written)}</f>{result}</c>"


def write_workbook(path: Path, rows: Sequence[Sequence[str]], dimension: str = "") -> Path:
    """A workbook with these cells."""
    lines = "".join(
        f'<row r="{number}">{"".join(row)}</row>' for number, row in enumerate(rows, start=1)
    )
    stated = f'<dimension ref="{dimension}"/>' if dimension else ""
    return write_sheet(path, f"{stated}<sheetData>{lines}</sheetData>")


def write_sheet(path: Path, content: str) -> Path:
    """A workbook whose only sheet has this XML."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in _PARTS.items():
            archive.writestr(name, part)
        archive.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{_MAIN}">{content}</worksheet>'
        )
    return path
