"""VLMEvalKit's workbooks: what spreadsheets do to texts is undone, counted or refused, and no text
is replaced.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from openpyxl import Workbook, load_workbook
from written_workbooks import formula, text, write_sheet, write_workbook

from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import DataError, UsageError
from medtasks.core.files import MAX_JSON_BYTES
from medtasks.data.workbooks import MOST_TAGS
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.importers.prediction_files import read_predictions, recognise
from medtasks.importers.predictions import End

TASK = "mi_cxr_icr"
HEADER = [text("index"), text("question"), text("prediction")]


def responses(path: Path) -> list[str]:
    return [one.response for one in read_predictions(path, "vlmevalkit", {})]


def responses_in_cells(folder: Path, *cells: str) -> list[str]:
    """The responses in a workbook with these cells as predictions."""
    rows = [[text(f"{number}"), text("Why?"), cell] for number, cell in enumerate(cells)]
    return responses(write_workbook(folder / "p.xlsx", [HEADER, *rows]))


def written_by_openpyxl(folder: Path, predictions: Sequence[object]) -> Path:
    book = Workbook()
    book.active.append(["index", "question", "prediction"])
    for number, prediction in enumerate(predictions):
        book.active.append([number, "Why?", prediction])
    book.save(folder / "p.xlsx")
    return folder / "p.xlsx"


# --- escapes ---


@pytest.mark.parametrize(
    ("stored", "response"),
    [
        ("B_x000D_\n", "B\r\n"),
        ("_x000d_B", "\rB"),
        ("_x005F_x000D_", "_x000D_"),
        ("a_x0009_b_x0001_", "a\tb\x01"),
        ("_xD83D__xDE00_", "\U0001f600"),
        ("_xD83D_!", "\ufffd!"),
        ("_x00D_ and _xZZZZ_", "_x00D_ and _xZZZZ_"),
    ],
    ids=["line", "lower-case", "underscore", "controls", "pair", "half-a-pair", "no-escape"],
)
def test_escapes_are_characters(stored: str, response: str, tmp_path: Path) -> None:
    assert responses_in_cells(tmp_path, text(stored)) == [response]


def test_a_response_with_a_carriage_return_is_read_as_its_answer(tmp_path: Path) -> None:
    documents = task_documents(TASK)
    header = [text("index"), text("sample_id"), text("prediction")]
    rows = [
        [text("0"), text(one["sample_id"]), text(f"{one['target']}_x000D_\n")] for one in documents
    ]
    path = write_workbook(tmp_path / "p.xlsx", [header, *rows])
    scored = score_predictions(PredictionFile(path, recognise(path), TASK))
    assert scored.tasks[TASK].metrics["accuracy"].value == 1


# --- formulas ---


@pytest.mark.parametrize(
    ("cell", "response"),
    [
        (formula("> B"), "=> B"),
        (formula(" 5 mm polyp", "<v></v>"), "= 5 mm polyp"),
        (formula("> B", "<v>#NAME?</v>", ' t="e"'), "=> B"),
        (formula('"B"', "<v>B</v>", ' t="str"'), "B"),
        ('<c><f t="array" ref="C2">> B</f><v>0</v></c>', "{=> B}"),
        (formula("> B_x000D_"), "=> B\r"),
    ],
    ids=["XlsxWriter", "openpyxl", "error", "computed-text", "in-braces", "escape"],
)
def test_a_text_that_was_taken_for_a_formula_is_the_response(
    cell: str, response: str, tmp_path: Path
) -> None:
    assert responses_in_cells(tmp_path, text("A"), cell) == ["A", response]


def test_openpyxl_and_we_agree_on_texts_that_begin_like_formulas(tmp_path: Path) -> None:
    texts = ["=> B", "= 5 mm", "=", "==", "{=B}", "+1", "-1", "@A"]
    assert responses(written_by_openpyxl(tmp_path, texts)) == texts


# --- texts that are lost ---


@pytest.mark.parametrize(
    ("cell", "found"),
    [
        ("<c><f></f><v>0</v></c>", "a formula without its text"),
        ('<c><f t="shared" si="0"/><v>0</v></c>', "a formula without its text"),
        ('<c t="e"><v>#NAME?</v></c>', "the error #NAME?"),
    ],
)
def test_a_cell_without_its_text_refuses_the_file(cell: str, found: str, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=rf"p\.xlsx, row 3: field `prediction` is {found}.*again, as \.tsv or JSONL"
    ):
        responses_in_cells(tmp_path, text("A"), cell)


def test_a_response_that_became_a_date_refuses_the_file(tmp_path: Path) -> None:
    path = written_by_openpyxl(tmp_path, ["11-20 mm", datetime(2026, 11, 20)])
    with pytest.raises(DataError, match="row 3: field `prediction` is the date or time 2026-11-20"):
        responses(path)


def test_a_date_in_another_column_does_not_matter(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["index", "question", "prediction", "made"])
    book.active.append([0, "Why?", "A", datetime(2026, 11, 20)])
    book.save(tmp_path / "p.xlsx")
    assert responses(tmp_path / "p.xlsx") == ["A"]


def test_a_response_in_merged_cells_refuses_the_file(tmp_path: Path) -> None:
    path = written_by_openpyxl(tmp_path, ["A", "B", "C"])
    book = load_workbook(path)
    book.active.merge_cells("C3:C4")
    book.save(path)
    with pytest.raises(
        DataError, match=r"row 4: field `prediction` is one of the merged cells C3:C4, expected"
    ):
        responses(path)


def test_a_workbook_without_the_column_of_responses_says_how_to_call_it(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "p.xlsx", [[text("response")], [text("A")]])
    with pytest.raises(
        DataError,
        match=r"among 'response'; call the column of responses `prediction` in the first row\.",
    ):
        responses(path)


# --- cells that are full ---


@pytest.mark.parametrize(
    ("response", "end"),
    [
        ("x" * 32_767, End.CELL_LIMIT),
        ("\U0001f600" * 16_383 + "x", End.CELL_LIMIT),
        ("x" * 32_766, None),
        ("x" * 32_768, None),
    ],
    ids=["characters", "UTF-16-units", "one-less", "one-more"],
)
def test_a_response_that_fills_its_cell_was_cut(
    response: str, end: End | None, tmp_path: Path
) -> None:
    path = write_workbook(tmp_path / "p.xlsx", [HEADER, [text("0"), text("Why?"), text(response)]])
    (found,) = read_predictions(path, "vlmevalkit", {})
    assert found.end == end


def test_cut_responses_are_counted_and_named(tmp_path: Path) -> None:
    documents = task_documents(TASK)
    header = [text("index"), text("sample_id"), text("prediction")]
    rows = [[text("0"), text(one["sample_id"]), text("A. It grows.")] for one in documents]
    rows[3][2] = text(("It grows. " * 5_000)[:32_767])
    path = write_workbook(tmp_path / "p.xlsx", [header, *rows])
    scored = score_predictions(PredictionFile(path, "vlmevalkit", TASK))
    assert scored.manifest.tasks[TASK].finish == {"length": 1, "unknown": len(documents) - 1}
    assert (
        "cut off at 32,767 characters, the most that a cell of a workbook holds: 1 response (p.xlsx, row 5)"
        in (scored.notes)
    )


# --- layouts of sheets ---


def test_rows_beyond_the_dimension_that_a_sheet_states_are_read(tmp_path: Path) -> None:
    rows = [[text(f"{number}"), text("Why?"), text("A")] for number in range(5)]
    path = write_workbook(tmp_path / "p.xlsx", [HEADER, *rows], dimension="A1:C2")
    assert responses(path) == ["A"] * 5


def test_a_column_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    path = write_workbook(tmp_path / "p.xlsx", [[*HEADER, text("prediction")], [text("0")] * 4])
    with pytest.raises(
        DataError, match=r"p\.xlsx, row 1: column 'prediction' is duplicated in the header; rename"
    ):
        responses(path)


def test_an_empty_cell_is_an_empty_response(tmp_path: Path) -> None:
    assert responses_in_cells(tmp_path, text(""), "<c/>", text("A")) == ["", "", "A"]


# --- sizes ---


@pytest.mark.slow
def test_the_limit_counts_unpacked_bytes(tmp_path: Path) -> None:
    """A workbook of 1 MB that has 1 GiB when it is unpacked."""
    path = write_sheet(tmp_path / "p.xlsx", "<sheetData/>")
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/sharedStrings.xml", "w") as part,
    ):
        for _ in range(MAX_JSON_BYTES // 2**24):
            part.write(b" " * 2**24)
    assert path.stat().st_size < 2 * 2**20
    with pytest.raises(
        DataError, match=r"p\.xlsx: unpacked, it has more than 1,073,741,824 bytes.*as \.tsv"
    ):
        responses(path)


def test_a_sheet_of_millions_of_empty_cells_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = write_sheet(
        tmp_path / "p.xlsx", f"<sheetData><row>{'<c/>' * MOST_TAGS}</row></sheetData>"
    )
    with pytest.raises(DataError, match=r"more than .* 5,000,000 XML tags"):
        responses(path)


# --- other spreadsheets ---


@pytest.mark.parametrize(
    ("member", "message"),
    [
        ("xl/workbook.bin", r"is a binary workbook \(.xlsb\).*save it as .xlsx"),
        ("content.xml", r"is an OpenDocument spreadsheet.*save it as .xlsx or .csv"),
    ],
)
def test_an_archive_of_another_program_is_named(member: str, message: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p", "w") as archive:
        archive.writestr(member, "")
    with pytest.raises(UsageError, match=message):
        recognise(tmp_path / "p")


def test_an_old_workbook_or_one_with_a_password_is_named(tmp_path: Path) -> None:
    (tmp_path / "p.xls").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(
        UsageError, match=r"an old \.xls workbook, or one with a password.*without a password"
    ):
        recognise(tmp_path / "p.xls")
