"""The rows of a benchmark folder: typical mistakes are named with file, line and fix, all of them
at once.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from folder_bench import (
    LABEL_PROMPT,
    OPTIONS_YAML,
    FolderBuilder,
    option_rows,
    png,
    reading_of,
)

from medtasks.core.errors import DataError
from medtasks.core.findings import Finding
from medtasks.validate.folders import check_folder
from medtasks.validate.run import validate

LABEL_YAML = """\
name: my_vqa
title: My VQA
data: rows.csv
columns: {question: question, answer: answer, image: image}
answers: closed
"""


def test_rows_become_records(tmp_path: Path) -> None:
    reading = reading_of(FolderBuilder(tmp_path / "f").write())
    assert reading.faults == []
    record = reading.records[4]
    assert (record.sample_id, record.cluster, record.answer) == ("q4", "p2", "B")
    assert record.media == ("images/4.png",)
    assert record.choices == {"A": "red", "B": "green", "C": "blue"}
    assert record.further == {"modality": "CT"}


@pytest.mark.parametrize(
    ("column", "text", "code", "message"),
    [
        ("answer", "D", "MT307", "the answer is 'D', expected the letter or text of A: 'red'"),
        ("answer", "", "MT304", "column 'answer' is empty; fill the cell"),
        ("question", " ", "MT304", "column 'question' is empty; fill the cell"),
        ("patient", "", "MT304", "column 'patient' is empty"),
        ("id", "q0", "MT305", "the id 'q0' is that of line 2; make ids unique"),
        ("B", "Red", "MT311", "option A is 'red', as is another option"),
        ("image", "images/3.PNG", "MT402", "(did you mean '3.png'?)"),
        ("image", "images/99.png", "MT402", "which is not a file below"),
        ("image", "../x.png", "MT402", "which is outside of"),
        ("image", "../x.png", "MT402", "`images` in benchmark.yaml (--images of `medtasks new`)"),
        (
            "image",
            "images/3.png;images/4.png",
            "MT402",
            'write several pictures as a list: ["images/3.png", "images/4.png"].',
        ),
        ("image", "7.png", "MT402", "(did you mean 'images/7.png'?)"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    column: str, text: str, code: str, message: str, tmp_path: Path
) -> None:
    path = FolderBuilder(tmp_path / "f").set(3, column, text).write()
    _, findings = check_folder(path)
    assert [(finding.code, finding.line) for finding in findings] == [(code, 5)]
    assert findings[0].file == str(path / "rows.csv")
    assert message in findings[0].message


@pytest.mark.slow
def test_a_visible_column_with_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    builder = FolderBuilder(tmp_path / "f", OPTIONS_YAML + "visible: [hint]\n")
    builder.prompt = builder.prompt + "{{ hint }}"
    builder.header = [*builder.header, "hint"]
    for row in builder.rows:
        row.append(f"It is {row['ABC'.index(row[6]) + 3]}.")
    monkeypatch.setenv("MEDTASKS_BENCHMARKS", str(builder.write()))
    report = validate(["my_vqa"], quick=True)
    (finding,) = report.all
    assert (finding.code, finding.field) == ("MT219", "hint")
    assert finding.file == str(builder.path / "benchmark.yaml")


def test_all_faulty_rows_are_counted_and_ten_are_listed(tmp_path: Path) -> None:
    builder = FolderBuilder(tmp_path / "f")
    for row in range(13):
        builder.set(row, "answer", "D")
    builder.set(15, "question", "")
    _, findings = check_folder(builder.write())
    lines = [finding.line for finding in findings if finding.file.endswith("rows.csv")]
    assert lines == [*range(2, 12), 17]
    assert any("13 rows have this fault" in finding.message for finding in findings)


def test_a_picture_that_cannot_be_decoded_is_a_fault_of_its_row(tmp_path: Path) -> None:
    path = FolderBuilder(tmp_path / "f").write()
    (path / "images" / "6.png").write_bytes(png(6)[:60])
    _, findings = check_folder(path)
    assert [(finding.code, finding.line) for finding in findings] == [("MT402", 8)]
    _, findings = check_folder(path, decode=False)
    assert findings == []


def faults_with(yaml: str, tmp_path: Path) -> list[Finding]:
    return check_folder(FolderBuilder(tmp_path / "f", yaml).write())[1]


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("cluster: patient", "cluster: patients", 10, "(did you mean 'patient'?)"),
        ("[modality]", "[site]", 12, "field `breakdowns[0]` is 'site', which is not a column"),
        ("C: C", "C: D", 8, "field `columns.options.C` is 'D', which is not a column of rows.csv"),
    ],
)
def test_a_column_that_does_not_exist(
    old: str, new: str, line: int, message: str, tmp_path: Path
) -> None:
    (finding,) = faults_with(OPTIONS_YAML.replace(old, new), tmp_path)
    assert (finding.code, finding.line) == ("MT304", line)
    assert finding.file.endswith("benchmark.yaml")
    assert message in finding.message


def test_a_file_in_another_encoding(tmp_path: Path) -> None:
    path = FolderBuilder(tmp_path / "f").set(1, "A", "grün").write()
    text = (path / "rows.csv").read_text(encoding="utf-8")
    (path / "rows.csv").write_bytes(text.encode("cp1252"))
    (finding,) = check_folder(path)[1]
    assert finding.code == "MT401"
    assert "rows.csv, line 3: byte 0xfc is not UTF-8; save the file as UTF-8" in finding.message


# --- answers ---


@pytest.mark.parametrize("answer", ["B", "b", "(B)", "B.", "green", "Green", "B. green"])
def test_forms_of_a_gold_option(answer: str, tmp_path: Path) -> None:
    reading = reading_of(FolderBuilder(tmp_path / "f").set(0, "answer", answer).write())
    assert reading.records[0].answer == "B"


def test_an_answer_that_is_a_letter_and_another_text(tmp_path: Path) -> None:
    builder = FolderBuilder(tmp_path / "f").set(0, "A", "B").set(0, "answer", "B")
    (fault,) = reading_of(builder.write()).faults
    assert fault.message == "the answer 'B' is a letter, and also the text of A"
    builder.yaml = OPTIONS_YAML + "answer_form: letter\n"
    assert reading_of(builder.write()).records[0].answer == "B"


@pytest.mark.parametrize(
    "cell",
    ["A. left | B. right", "left|right", '["left", "right"]', "['left', 'right']", "left\nright"],
)
def test_options_in_one_column(cell: str, tmp_path: Path) -> None:
    yaml = OPTIONS_YAML.replace("{A: A, B: B, C: C}", "A")
    builder = FolderBuilder(tmp_path / "f", yaml)
    builder.rows = builder.rows[:1]
    builder.set(0, "A", cell).set(0, "answer", "right")
    reading = reading_of(builder.write())
    assert reading.faults == []
    assert reading.records[0].choices == {"A": "left", "B": "right"}
    assert reading.records[0].answer == "B"


def test_an_empty_option_does_not_exist_in_its_row(tmp_path: Path) -> None:
    builder = FolderBuilder(tmp_path / "f").set(0, "C", "")
    assert reading_of(builder.write()).records[0].choices == {"A": "red", "B": "green"}
    fault = reading_of(builder.set(0, "B", "").write()).faults[0]
    assert fault.message == "1 options have a text, expected at least two"


def labelled(answers: list[str], yaml: str, folder: Path) -> FolderBuilder:
    """A folder of rows with these gold answers."""
    rows = []
    for number, answer in enumerate(answers):
        rows.append([f"What is {number}?", answer, f"images/{number}.png"])
    return FolderBuilder(folder, yaml, LABEL_PROMPT, ("question", "answer", "image"), rows)


def test_labels_are_the_gold_answers_unless_they_are_listed(tmp_path: Path) -> None:
    answers = ["normal", "Fracture", "fracture", "effusion"]
    reading = reading_of(labelled(answers, LABEL_YAML, tmp_path / "a").write())
    assert {record.labels for record in reading.records} == {("Fracture", "effusion", "normal")}
    assert [record.answer for record in reading.records][1:3] == ["Fracture", "Fracture"]
    yaml = LABEL_YAML + "labels: [normal, fracture]\n"
    (fault,) = reading_of(labelled(answers, yaml, tmp_path / "b").write()).faults
    assert str(fault) == (
        "rows.csv, line 5: the answer is 'effusion', expected one of normal, fracture; fix the row."
    )


def test_a_full_stop_makes_no_other_label(tmp_path: Path) -> None:
    answers = ["ja", "Nein.", "Ja.", "nein"]
    reading = reading_of(labelled(answers, LABEL_YAML, tmp_path / "f").write())
    assert reading.records[0].labels == ("Nein.", "ja")
    assert [record.answer for record in reading.records] == ["ja", "Nein.", "ja", "Nein."]


def test_answers_of_yes_no_questions(tmp_path: Path) -> None:
    yaml = LABEL_YAML.replace("closed", "yes/no")
    reading = reading_of(labelled(["Yes", "no."], yaml, tmp_path / "a").write())
    assert [record.answer for record in reading.records] == ["yes", "no"]
    assert reading.records[0].labels == ("yes", "no")
    (fault,) = reading_of(labelled(["yes", "maybe"], yaml, tmp_path / "b").write()).faults
    assert "the answer is 'maybe', expected one of yes, no" in fault.message


def test_labels_that_are_one_or_too_many(tmp_path: Path) -> None:
    same = reading_of(labelled(["normal"] * 3, LABEL_YAML, tmp_path / "a").write())
    assert "the rows have 1 different answers" in same.faults[0].message
    builder = labelled([], LABEL_YAML, tmp_path / "b")
    builder.rows = [[f"What is {n}?", f"answer {n}", "images/0.png"] for n in range(101)]
    fault = reading_of(builder.write()).faults[0]
    assert fault.fix == "list `labels`, or write answers: open"


# --- ids and clusters ---


def test_rows_without_ids(tmp_path: Path) -> None:
    yaml = OPTIONS_YAML.replace("  id: id\n", "").replace("  cluster: patient\n", "")
    builder = FolderBuilder(tmp_path / "a", yaml)
    builder.rows[1] = list(builder.rows[0])
    records = reading_of(builder.write()).records
    assert records[1].sample_id == f"{records[0].sample_id}#2"
    assert records[0].cluster == "images/0.png"
    backwards = FolderBuilder(tmp_path / "b", yaml)
    backwards.rows = option_rows()[::-1]
    ids = {record.sample_id for record in reading_of(backwards.write()).records}
    assert {record.sample_id for record in records[2:]} < ids


# --- pictures ---


def test_a_file_name_may_encode_its_accents_in_another_way(tmp_path: Path) -> None:
    path = FolderBuilder(tmp_path / "f").set(3, "image", "images/R\u00f6ntgen.png").write()
    (path / "images" / "Ro\u0308ntgen.png").write_bytes(png(3))
    reading = reading_of(path)
    assert reading.faults == []
    assert reading.records[3].media == ("images/Ro\u0308ntgen.png",)


def inline(number: int) -> str:
    return base64.b64encode(png(number)).decode()


def test_pictures_in_rows_are_kept_and_shared(tmp_path: Path) -> None:
    builder = FolderBuilder(tmp_path / "f")
    builder.set(0, "image", inline(0)).set(1, "image", f"data:image/png;base64,{inline(1)}")
    builder.set(2, "image", "q0").set(3, "image", json.dumps(["images/3.png", inline(4)]))
    reading = reading_of(builder.write())
    assert reading.faults == []
    first, second, shared, both = (record.media for record in reading.records[:4])
    assert first == shared != second
    assert len(both) == 2
    kept = {path.name: path.read_bytes() for path in (tmp_path / "f" / "kept").iterdir()}
    assert kept[first[0]] == png(0)
    assert kept[both[0]] == png(3)


def test_a_picture_that_a_spreadsheet_has_cut(tmp_path: Path) -> None:
    cut = inline(0)[: len(inline(0)) // 8 * 4]
    reading = reading_of(FolderBuilder(tmp_path / "f").set(0, "image", cut).write())
    (fault,) = reading.faults
    assert (fault.code, fault.where and fault.where.line) == ("MT402", 2)


def test_paths_of_windows(tmp_path: Path) -> None:
    path = FolderBuilder(tmp_path / "f").set(0, "image", "images\\0.png").write()
    assert reading_of(path).records[0].media == ("images/0.png",)


def test_pictures_at_urls_need_consent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_DOWNLOAD", "no")
    path = FolderBuilder(tmp_path / "f").set(0, "image", "https://a.invalid/1.png").write()
    with pytest.raises(DataError, match=r"1 picture at URLs of a\.invalid are not downloaded"):
        reading_of(path)
