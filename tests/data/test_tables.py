"""Tables of questions: every format gives the texts that their author sees, or one sentence."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openpyxl import Workbook
from PIL import Image

from medtasks.core.errors import DataError, UsageError
from medtasks.data.tables import Cell, SourceTable, read_table_file

Grid = Sequence[Sequence[str]]


def png(shade: int = 0) -> bytes:
    stream = io.BytesIO()
    Image.new("L", (8, 8), shade).save(stream, "PNG")
    return stream.getvalue()


def columns_of(table: SourceTable) -> list[list[Cell]]:
    return [[row.row[name] for name in table.columns] for row in table.rows]


def table_of(text: str | bytes, folder: Path, name: str = "rows.csv") -> SourceTable:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_table_file(path)


# --- the same table in every format ---


def write_csv(path: Path, header: Sequence[str], grid: Grid) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL).writerows([header, *grid])


def write_tsv(path: Path, header: Sequence[str], grid: Grid) -> None:
    with path.open("w", newline="", encoding="utf-16") as stream:
        csv.writer(stream, quoting=csv.QUOTE_ALL, delimiter="\t").writerows([header, *grid])


def write_jsonl(path: Path, header: Sequence[str], grid: Grid) -> None:
    rows = [json.dumps(dict(zip(header, cells, strict=True))) for cells in grid]
    path.write_text("\n".join(rows), encoding="utf-8")


def write_json(path: Path, header: Sequence[str], grid: Grid) -> None:
    rows = [dict(zip(header, cells, strict=True)) for cells in grid]
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")


def write_parquet(path: Path, header: Sequence[str], grid: Grid) -> None:
    rows = [dict(zip(header, cells, strict=True)) for cells in grid]
    pq.write_table(pa.Table.from_pylist(rows), path)


def write_xlsx(path: Path, header: Sequence[str], grid: Grid) -> None:
    book = Workbook()
    for number, cells in enumerate([header, *grid], start=1):
        for column, text in enumerate(cells, start=1):
            cell = book.active.cell(number, column, text)
            cell.data_type = "s"
    book.save(path)


WRITERS = (write_csv, write_tsv, write_jsonl, write_json, write_parquet, write_xlsx)
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=8)
ODD_TEXTS = [
    ("1.0", "1"),
    ("007", "=A1"),
    ("TRUE", "2026-11-30"),
    ("a,b;c\td", ' "q" '),
    ("a\nb", ""),
    ("Läsion 图像", "# a"),
]
"""What spreadsheet programs and libraries like to change."""


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_gives_the_same_texts(write: Callable[..., None], tmp_path: Path) -> None:
    grid = [[str(number), *texts] for number, texts in enumerate(ODD_TEXTS)]
    write(tmp_path / "rows", ["number", "question", "answer"], grid)
    table = read_table_file(tmp_path / "rows")
    assert table.columns == ("number", "question", "answer")
    assert columns_of(table) == grid


@pytest.mark.slow
@settings(
    max_examples=80,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(WRITERS), st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=3))
def test_texts_are_read_as_they_were_written(
    tmp_path: Path, write: Callable[..., None], pairs: list[tuple[str, str]]
) -> None:
    grid = [["row", *pair] for pair in pairs]
    write(tmp_path / "rows", ["kind", "question", "answer"], grid)
    assert columns_of(read_table_file(tmp_path / "rows")) == grid


# --- text files ---


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_encodings_and_separators_of_spreadsheet_programs(
    encoding: str, separator: str, tmp_path: Path
) -> None:
    lines = [separator.join(cells) for cells in (["question", "answer"], ["Läsion?", "ja"])]
    table = table_of("\r\n".join(lines).encode(encoding), tmp_path)
    assert columns_of(table) == [["Läsion?", "ja"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"question\nL\xe4sion?",
            "rows.csv, line 2: byte 0xe4 is not UTF-8; save the file as UTF-8",
        ),
        ("question,answer\nWhy?".encode("utf-16-le"), "rows.csv: contains NUL characters"),
        (b"question,answer\nWhy, then?,A", "line 2: found 3 cells, expected 2"),
        (
            b"question,answer\na,b\nquestion,answer",
            "line 3: the header is repeated; delete this line",
        ),
        (b"answer,answer\na,b", "line 1: column 'answer' is duplicated in the header"),
        (b'question,answer\n"a,b', "line 2: not CSV"),
        (b"question,answer\n\n", "only a header"),
        (b"", "the file is empty"),
        (b"[]", "the file is empty"),
        (b'[{"question": 1},]', "not valid JSON"),
    ],
)
def test_a_faulty_text_is_one_sentence(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        table_of(content, tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04", "not a complete ZIP"),
        (b"\x1f\x8b", "gzip"),
        (b"\xd0\xcf\x11\xe0", "old .xls"),
    ],
)
def test_other_formats_are_named(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises((UsageError, DataError), match=message):
        table_of(content, tmp_path)


def test_columns_without_a_name_are_kept_if_they_have_values(tmp_path: Path) -> None:
    table = table_of(",question,,\n0,Why?,x,\n1,How?,,\n,,,\n", tmp_path)
    assert table.columns == ("(column 1)", "question", "(column 3)")
    assert len(table.rows) == 2


def test_cells_of_json_that_are_no_texts(tmp_path: Path) -> None:
    rows = '{"a": 1.0, "b": null, "c": ["x", "ä"], "d": true}\n{"e": NaN, "a": 2}'
    table = table_of(rows, tmp_path)
    assert table.columns == ("a", "b", "c", "d", "e")
    assert dict(table.rows[0].row) == {"a": "1", "b": "", "c": '["x", "ä"]', "d": "true"}
    assert dict(table.rows[1].row) == {"e": "", "a": "2"}


def test_rows_in_the_only_object_of_a_file(tmp_path: Path) -> None:
    table = table_of(
        '{"version": 1, "data": [{"question": "Why?"}, {"question": "How?"}]}', tmp_path
    )
    assert columns_of(table) == [["Why?"], ["How?"]]
    assert str(table.rows[1].where) == "rows.csv, list 'data', row 2"


@pytest.mark.parametrize("error", ["#N/A", "#REF!"])
def test_errors_of_spreadsheets_are_not_texts(error: str, tmp_path: Path) -> None:
    table = table_of(f"question,answer\nWhy?,{error}", tmp_path)
    assert repr(table.rows[0].row["answer"]) == f"the error {error}"


# --- workbooks ---


def test_a_workbook_is_read_as_it_is_displayed(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    sheet.append(["patient", "index", "answer", "right"])
    sheet.append(["p1", 7, 1.0, True])
    sheet.append([None, 12, 0.5, False])
    sheet.append(["p2", 0.25, 0.125, True])
    sheet.append(["p3", 2.5, 0.285, True])  # halves, also as decimals, are rounded up
    sheet.append(["p4", 0.1 + 0.2, -5, True])
    sheet["C6"].number_format = "0000"
    sheet["B5"].number_format = "0"
    sheet["C5"].number_format = "0%"
    sheet["B2"].number_format = "0000"
    sheet["C3"].number_format = "0.00"
    sheet["B4"].number_format = "0%"
    sheet["C4"].number_format = "0.00%"
    sheet.merge_cells("A2:A3")
    book.save(tmp_path / "rows.xlsx")
    table = read_table_file(tmp_path / "rows.xlsx")
    assert columns_of(table) == [
        ["p1", "0007", "1", "TRUE"],
        ["p1", "12", "0.50", "FALSE"],
        ["p2", "25%", "12.50%", "TRUE"],
        ["p3", "3", "29%", "TRUE"],
        ["p4", "0.3", "-0005", "TRUE"],
    ]


def test_sheets_that_are_not_read_are_named(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["question"])
    book.active.append(["Why?"])
    book.create_sheet("Legend").append(["A note"])
    book.save(tmp_path / "rows.xlsx")
    table = read_table_file(tmp_path / "rows.xlsx")
    assert (len(table.rows), table.other_sheets) == (1, ("Legend",))


@pytest.mark.parametrize(
    ("value", "kind", "found"),
    [("=A1", "f", "a formula without a computed result"), ("#N/A", "e", "the error #N/A")],
)
def test_a_cell_of_a_workbook_without_its_text(
    value: str, kind: str, found: str, tmp_path: Path
) -> None:
    book = Workbook()
    book.active.append(["question", "answer"])
    book.active.append(["Why?", value])
    book.active["B2"].data_type = kind
    book.save(tmp_path / "rows.xlsx")
    table = read_table_file(tmp_path / "rows.xlsx")
    assert repr(table.rows[0].row["answer"]) == found


# --- pictures ---


def test_pictures_in_parquet_are_kept_once(tmp_path: Path) -> None:
    cells = [{"bytes": png(), "path": "a.png"}, {"bytes": None, "path": "b.png"}]
    lists = [[{"bytes": png(), "path": None}], []]
    pq.write_table(pa.table({"image": cells, "images": lists}), tmp_path / "rows.parquet")
    first, second = read_table_file(tmp_path / "rows.parquet").rows
    assert first.row == {"image": png(), "images": (png(),)}
    assert first.row["image"] is first.row["images"][0]
    assert second.row == {"image": "b.png", "images": "[]"}
