"""``medtasks new NAME --from ROWS``: what is guessed, asked and written, and what is said about
typical mistakes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml
from openpyxl import Workbook
from PIL import Image

from medtasks.catalog import folders_in_use
from medtasks.catalog.benchmark_folder import load_benchmark_folder
from medtasks.catalog.contents import forget_packages
from medtasks.catalog.rubric_files import load_rubric
from medtasks.cli.from_table.columns import TableColumns
from medtasks.cli.from_table.new_folder import Request, new_folder
from medtasks.cli.from_table.proposal import Proposal, propose
from medtasks.cli.from_table.review import decided
from medtasks.cli.from_table.undecided import Undecided
from medtasks.cli.from_table.wishes import Wishes
from medtasks.core.errors import MedtasksError
from medtasks.data.folder_rows import FolderRecord, read_folder
from medtasks.data.release import Release

HEADER = ["id", "patient", "image", "question", "A", "B", "answer", "modality"]
ROWS = [
    ["q0", "p0", "pics/0.png", "Which lung?", "left", "right", "A", "CT"],
    ["q1", "p0", "pics/0.png", "Is it round?", "yes", "no", "B", "CT"],
    ["q2", "p1", "pics/1.png", "Is it big?", "yes", "no", "A", "MR"],
    ["q3", "p1", "pics/1.png", "Is it old?", "yes", "no", "A", "MR"],
]


def text_of(rows: Sequence[Sequence[str]], header: Sequence[str] = HEADER) -> str:
    stream = io.StringIO()
    csv.writer(stream).writerows([header, *rows])
    return stream.getvalue()


def changed(row: int, column: str, text: str) -> list[list[str]]:
    """The rows with another text in one cell."""
    rows = [list(cells) for cells in ROWS]
    rows[row][HEADER.index(column)] = text
    return rows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with pictures, in the directory in which commands run."""
    (tmp_path / "pics").mkdir()
    for number in range(2):
        Image.effect_noise((24, 24), 90).save(tmp_path / "pics" / f"{number}.png")
    (tmp_path / "rows.csv").write_text(text_of(ROWS), encoding="utf-8")
    return tmp_path / "rows.csv"


def records(folder: Path) -> list[FolderRecord]:
    loaded = load_benchmark_folder(folder)
    reading = read_folder(loaded, Release(loaded.data))
    assert reading.faults == []
    return reading.records


def proposed(
    header: Sequence[str], rows: Sequence[Sequence[str]], folder: Path, **wishes: Any
) -> Proposal:
    path = folder / "table.csv"
    path.write_text(text_of(rows, header), encoding="utf-8")
    return propose(TableColumns.of_file(path), Wishes(**wishes))


# --- the folder ---


def test_a_folder_without_code_is_written(medtasks: Any, table: Path) -> None:
    rows = [[f"q{number}", *ROWS[number % 4][1:]] for number in range(12)]
    table.write_text(text_of(rows), encoding="utf-8")
    done = medtasks("new", "my_vqa", "--from", "rows.csv", "--no-add")
    assert done.returncode == 0, done.stderr
    folder = table.parent / "my_vqa"
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["benchmark.yaml", "pics", "question.j2", "rows.csv"]
    content = yaml.safe_load((folder / "benchmark.yaml").read_text(encoding="utf-8"))
    assert content["columns"] == {
        "question": "question",
        "image": "image",
        "options": {"A": "A", "B": "B"},
        "answer": "answer",
        "id": "id",
        "cluster": "patient",
    }
    assert (content["answers"], content["breakdowns"]) == ("options", ["modality"])
    assert [record.answer for record in records(folder)] == ["A", "B", "A", "A"] * 3
    for line in ("cluster     patient", "its name", "2 values that repeat"):
        assert line in done.stdout


@pytest.fixture
def added(monkeypatch: pytest.MonkeyPatch, table: Path) -> Iterator[Path]:
    """The directory of the table, in which folders are added without lasting effects."""
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(table.parent / variable))
    monkeypatch.setattr(folders_in_use, "_INCLUDED", {})
    yield table.parent
    forget_packages()


@pytest.mark.slow
@pytest.mark.usefixtures("added")
def test_the_folder_is_added_and_the_next_commands_are_named(medtasks: Any) -> None:
    done = medtasks("new", "my_vqa", "--from", "rows.csv")
    assert done.returncode == 0, done.stderr
    assert "prepared my_vqa: 4 rows, 2 media files, 2 clusters" in done.stdout
    *_, run, view = done.stdout.splitlines()
    assert run.startswith("  lmms-eval --model medtasks_baseline")
    assert "--tasks my_vqa,my_vqa_circular" in run
    assert view == "  medtasks view results"


def test_nothing_is_overwritten(medtasks: Any, table: Path) -> None:
    (table.parent / "my_vqa").mkdir()
    done = medtasks("new", "my_vqa", "--from", "rows.csv")
    assert done.returncode == 2
    assert "my_vqa: exists already" in done.stderr


def test_the_name_of_a_task_of_the_harness_is_refused(medtasks: Any, table: Path) -> None:
    done = medtasks("new", "mme", "--from", "rows.csv")
    assert done.returncode == 2
    assert "mme: lmms-eval has a task mme already; give another name." in done.stderr
    assert not (table.parent / "mme").exists()


def test_the_name_of_a_task_of_a_package_is_refused(medtasks: Any, table: Path) -> None:
    done = medtasks("new", "mi_cxr_icr", "--from", "rows.csv")
    assert done.returncode == 2
    assert "mi_cxr_icr: its task mi_cxr_icr is already defined by medtasks; give" in done.stderr
    assert not (table.parent / "mi_cxr_icr").exists()


def test_rows_and_pictures_may_stay_where_they_are(medtasks: Any, table: Path) -> None:
    arguments = (
        "--no-copy",
        "--no-add",
        "--out",
        "folders/mine",
        "--title",
        "Lungs: left or right",
    )
    done = medtasks("new", "my_vqa", "--from", "rows.csv", *arguments)
    assert done.returncode == 0, done.stderr
    assert f"not copied: {table}" in done.stdout
    assert f"not copied: {table.parent}\n" in done.stdout
    folder = table.parent / "folders" / "mine"
    assert sorted(path.name for path in folder.iterdir()) == ["benchmark.yaml", "question.j2"]
    content = yaml.safe_load((folder / "benchmark.yaml").read_text(encoding="utf-8"))
    assert content["title"] == "Lungs: left or right"
    assert len(records(folder)) == 4


def test_pictures_are_found_in_another_directory(medtasks: Any, table: Path) -> None:
    rows = [[cell.removeprefix("pics/") for cell in cells] for cells in ROWS]
    table.write_text(text_of(rows), encoding="utf-8")
    done = medtasks("new", "my_vqa", "--from", "rows.csv", "--no-add")
    assert done.returncode == 0, done.stderr
    assert sorted((table.parent / "my_vqa" / "images").iterdir())[0].name == "0.png"
    assert len(records(table.parent / "my_vqa")) == 4


@pytest.mark.slow
@pytest.mark.usefixtures("added")
def test_a_judge_and_its_prompt_for_open_answers(medtasks: Any, table: Path) -> None:
    rows = [["What is it?", "a nodule of the lung"], ["Where?", "in the left lung"]]
    table.write_text(text_of(rows, ["question", "answer"]), encoding="utf-8")
    done = medtasks("new", "my_vqa", "--from", "rows.csv", "--judge")
    assert done.returncode == 0, done.stderr
    folder = load_benchmark_folder(table.parent / "my_vqa")
    assert folder.file.answers == "open"
    assert load_rubric("my_vqa_rubric").metrics == {"my_vqa_judged": "total"}
    checked = medtasks("validate", "my_vqa", "--quick")
    assert checked.returncode == 0, checked.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("my_vqa", "--answers", "open"),
            "--answers: has no effect without --from",
        ),
        (("my-vqa", "--from", "rows.csv"), "'my-vqa' cannot be the name of a benchmark, expected"),
        (("my_vqa", "--from", "rows.csv", "--column", "answer"), "expected ROLE=NAME"),
        (("my_vqa", "--from", "rows.csv", "--column", "anser=B"), "did you mean 'answer'?"),
        (("my_vqa", "--from", "rows.csv", "--cluster", "patent"), "did you mean 'patient'?"),
        (("my_vqa", "--from", "rows.csv", "--judge"), "--judge: answers are options"),
        (("my_vqa", "--from", "rows.csv", "--encoding", "utf9"), "--encoding utf9: is unknown"),
        (("my_vqa", "--from", "none.csv"), "none.csv: cannot be read (No such file"),
    ],
)
@pytest.mark.usefixtures("table")
def test_a_wrong_option_is_one_sentence(
    arguments: tuple[str, ...], sentence: str, medtasks: Any
) -> None:
    done = medtasks("new", *arguments)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_an_encoding_may_be_named(medtasks: Any, table: Path) -> None:
    text = text_of(changed(0, "question", "Läsion groß?"))
    table.write_bytes(text.encode("cp1252"))
    refused = medtasks("new", "my_vqa", "--from", "rows.csv", "--no-add")
    assert "rows.csv, line 2, column" in refused.stderr
    assert "Läsion groß?" in refused.stderr
    assert "pass --encoding cp1252" in refused.stderr
    done = medtasks("new", "my_vqa", "--from", "rows.csv", "--no-add", "--encoding", "cp1252")
    assert done.returncode == 0, done.stderr
    assert records(table.parent / "my_vqa")[0].question == "Läsion groß?"


# --- typical mistakes ---


def refusal(table: Path) -> str:
    """The sentence with which a folder for a table is refused; nothing is written then."""
    target = table.parent / "my_vqa"
    with pytest.raises(MedtasksError) as refused:
        new_folder(Request("my_vqa", table, target, Wishes(), add=False), ask=None)
    assert not target.exists()
    return str(refused.value)


SENTENCES = [
    (changed(1, "question", ""), "line 3: column 'question' is empty"),
    (changed(1, "answer", "E"), "line 3: the answer is 'E', expected"),
    (changed(1, "answer", "maybe"), "line 3: the answer is 'maybe', expected"),
    (changed(1, "answer", "#N/A"), "line 3: column 'answer' is the error #N/A"),
    (changed(1, "answer", "nan"), "line 3: column 'answer' is nan, which data frames write"),
    (
        changed(1, "image", "pics/7.png"),
        "line 3: column 'image' is 'pics/7.png', which is not a file",
    ),
    (changed(1, "image", "a" * 300 + ".png"), "line 3: column 'image' is 'aaa"),
    (changed(1, "image", "rows.csv"), "line 3: picture rows.csv: not a complete image"),
    (changed(1, "id", "q0"), "line 3: column 'id' repeats the id of line 2"),
    (changed(1, "patient", ""), "line 3: column 'patient' is empty"),
    (changed(1, "A", "no"), "line 3: option A is 'no', as is another option"),
    ([*ROWS, ["q9", "p1"]], "line 6: found 2 cells, expected 8"),
    ([*ROWS, HEADER], "line 6: the header is repeated"),
]


@pytest.mark.parametrize(("rows", "sentence"), SENTENCES, ids=[text[:40] for _, text in SENTENCES])
def test_a_faulty_row_is_one_sentence(rows: list[list[str]], sentence: str, table: Path) -> None:
    table.write_text(text_of(rows), encoding="utf-8")
    assert refusal(table).startswith(f"rows.csv, {sentence}")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("question", "qestion", "no column is named like the question"),
        ("answer", "Right answer (A or B)", "pass --column 'answer=Right answer (A or B)'"),
        ("A,B,answer", "Antwort A,Antwort B,Wert", "Wert, modality; pass --column answer=NAME."),
        ("A,B", "left,right", "has letters, but no columns are named like options"),
        ("A,B", "options,x", "line 2: column 'options' is 'left', expected options such as"),
        ("question", "", "(name (column 4) in the header)"),
        ("patient", "answer", "line 1: column 'answer' is duplicated in the header"),
        (",", "|", "the header is one cell, 'id|patient|"),
    ],
    ids=[
        *("no-question", "no-answer", "answers-are-options", "no-options", "no-lists"),
        *("blank-header", "duplicate", "separator"),
    ],
)
def test_a_faulty_header_is_one_sentence(old: str, new: str, sentence: str, table: Path) -> None:
    header, _, rest = text_of(ROWS).partition("\n")
    text = header.replace(old, new) + "\n" + (rest.replace(",", "|") if old == "," else rest)
    table.write_text(text, encoding="utf-8")
    assert sentence in refusal(table)


def test_all_faulty_rows_are_named_together(medtasks: Any, table: Path) -> None:
    rows = [[*cells[:6], "E" if number else "A", cells[7]] for number, cells in enumerate(ROWS * 8)]
    for number, cells in enumerate(rows):
        cells[0] = f"q{number}"
    table.write_text(text_of(rows), encoding="utf-8")
    done = medtasks("new", "my_vqa", "--from", "rows.csv", "--column", "options=A,B")
    assert "neither letter, text nor number of an option" in done.stderr
    form = ("--answer-form", "letter")
    done = medtasks("new", "my_vqa", "--from", "rows.csv", *form)
    assert "31 faults (21 more are not shown): nothing was written" in done.stderr


def test_a_formula_without_its_result_is_named(table: Path) -> None:
    book = Workbook()
    for cells in [HEADER, *changed(2, "question", "=A1")]:
        book.active.append(cells)
    book.save(table.parent / "rows.xlsx")
    sentence = "rows.xlsx, row 4: column 'question' is a formula without a computed result"
    assert refusal(table.with_suffix(".xlsx")).startswith(sentence)


# --- guesses ---


@pytest.mark.parametrize(
    ("header", "options"),
    [
        (["A", "B", "C"], {"A": "A", "B": "B", "C": "C"}),
        (
            ["option_a", "option_b", "option_c"],
            dict(zip("ABC", ("option_a", "option_b", "option_c"), strict=True)),
        ),
        (
            ["Choice 1", "Choice 2", "Choice 3"],
            dict(zip("ABC", ("Choice 1", "Choice 2", "Choice 3"), strict=True)),
        ),
        (["opa", "opb", "opc"], {"A": "opa", "B": "opb", "C": "opc"}),
    ],
)
def test_columns_of_options(header: list[str], options: dict[str, str], tmp_path: Path) -> None:
    rows = [["Which?", "left", "right", "both", "A"], ["Where?", "up", "down", "none", "C"]]
    proposal = proposed(["question", *header, "answer"], rows, tmp_path)
    assert proposal.options == options


@pytest.mark.parametrize(
    ("answers", "kind", "form"),
    [
        (["A", "b", "C"], "options", "letter or text"),
        (["left", "Down", "c2"], "options", "letter or text"),
        (["0", "1", "2"], "options", "index0"),
        (["1", "2.0", "3"], "options", "index1"),
    ],
)
def test_forms_of_answers(answers: list[str], kind: str, form: str, tmp_path: Path) -> None:
    options = [["left", "right", "both"], ["up", "down", "none"], ["c0", "c1", "c2"]]
    rows = [
        ["Which?", json.dumps(texts), answer]
        for texts, answer in zip(options, answers, strict=True)
    ]
    proposal = proposed(["question", "choices", "answer"], rows, tmp_path)
    assert (proposal.answers.kind, proposal.answers.form) == (kind, form)


def test_answers_that_may_be_counted_from_0_or_1_are_not_guessed(tmp_path: Path) -> None:
    rows = [["Which?", "left", "right", "both", "1"], ["Where?", "up", "down", "none", "2"]]
    header = ["question", "A", "B", "C", "answer"]
    with pytest.raises(Undecided, match="pass --answer-form index0 or --answer-form index1"):
        proposed(header, rows, tmp_path)
    assert proposed(header, rows, tmp_path, answer_form="index1").answers.form == "index1"


@pytest.mark.parametrize(
    ("answers", "kind"),
    [
        (["yes", "No", "Yes."], "yes/no"),
        (["normal", "tumour", "normal", "tumour", "normal", "tumour"], "closed"),
        (["a nodule", "the left lung", "nothing"], "open"),
    ],
)
def test_kinds_of_answers(answers: list[str], kind: str, tmp_path: Path) -> None:
    rows = [["Which?", answer] for answer in answers]
    assert proposed(["question", "answer"], rows, tmp_path).answers.kind == kind


def test_labels_or_texts_are_not_guessed(tmp_path: Path) -> None:
    rows = [["Which?", answer] for answer in ("in", "on", "in", "at", "at")]
    with pytest.raises(Undecided, match="pass --answers closed or --answers open"):
        proposed(["question", "answer"], [*rows, ["Why?", "in"]], tmp_path)


@pytest.mark.parametrize(
    ("header", "row", "message"),
    [
        (["query", "prompt", "answer"], ["a", "b", "c"], "'query' and 'prompt' may each be"),
        (["question", "answer", "label"], ["a", "b", "c"], "'answer' and 'label' may each be"),
        (["question", "img", "path", "gt"], ["a", "1.png", "2.png", "b"], "'img' and 'path'"),
        (["question", "A", "B", "choices", "gt"], ["a", "b", "c", "[1, 2]", "A"], "'A,B' and"),
    ],
)
def test_two_plausible_columns_are_not_guessed(
    header: list[str], row: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(Undecided, match=message):
        proposed(header, [row, row], tmp_path)


@pytest.mark.parametrize("names", ["ABCDEFGHIJK", [f"option {n}" for n in range(11)]])
def test_more_options_than_letters_are_not_dropped(names: Sequence[str], tmp_path: Path) -> None:
    header = ["question", *names, "answer"]
    row = ["Which?", *"abcdefghijk", "b"]
    with pytest.raises(MedtasksError, match="are more than 10 options, expected at most 10"):
        proposed(header, [row], tmp_path)
    fewer = proposed(["question", "A", "B", "K", "answer"], [["Why?", *"xyz", "A"]], tmp_path)
    assert fewer.options == {"A": "A", "B": "B"}


def test_rows_of_blanks_at_the_end_of_a_sheet_are_no_rows(tmp_path: Path) -> None:
    book = Workbook()
    for cells in (["question", "answer"], ["Why?", "yes"], [None, None], ["  ", None]):
        book.active.append(cells)
    book.save(tmp_path / "rows.xlsx")
    assert TableColumns.of_file(tmp_path / "rows.xlsx").rows == 1


def test_answers_that_became_dates_are_named(tmp_path: Path) -> None:
    book = Workbook()
    book.active.append(["question", "answer"])
    book.active.append(["When?", date(2024, 1, 2)])
    book.save(tmp_path / "rows.xlsx")
    with pytest.raises(Undecided, match="row 2: column 'answer' is the date or time 2024-01-02"):
        propose(TableColumns.of_file(tmp_path / "rows.xlsx"), Wishes())


def test_vlmevalkits_layout(tmp_path: Path) -> None:
    header = ["index", "image", "image_path", "question", "hint", "A", "B", "answer", "category"]
    picture = "iVBORw0KGgo" * 30
    rows = [["0", picture, "0.jpg", "Which?", "An MR.", "left", "right", "A", "lung"]] * 5
    rows += [["1", "0", "0.jpg", "Where?", "", "up", "down", "B", "heart"]] * 5
    numbered = [[str(number), *row[1:]] for number, row in enumerate(rows)]
    proposal = proposed(header, numbered, tmp_path)
    assert (proposal.id, proposal.images, proposal.instructions) == ("index", ("image",), "hint")
    assert proposal.breakdowns == ("category",)


def test_values_of_few_rows_are_no_breakdown(tmp_path: Path) -> None:
    header = ["question", "answer", "of five", "of four"]
    rows = [["Which?", "yes", f"v{number // 5}", f"v{number // 4}"] for number in range(20)]
    assert proposed(header, rows, tmp_path).breakdowns == ("of five",)


def test_headers_in_other_languages(tmp_path: Path) -> None:
    header = ["Kennung", "Fall", "Bild", "Frage", "Antwort A", "Antwort B", "Antwort"]
    row = ["1", "F1", "1.png", "Welche Seite?", "links", "rechts", "A"]
    german = proposed(header, [row], tmp_path)
    assert (german.id, german.cluster, german.answer) == ("Kennung", "Fall", "Antwort")
    solution = proposed([*header[:6], "Lösung"], [row], tmp_path)
    assert solution.answer == "Lösung"
    header = ["Cas", "Question", "Choix 1", "Choix 2", "Réponse"]
    french = proposed(header, [["1", "Quel côté ?", "gauche", "droite", "A"]], tmp_path)
    assert (french.cluster, french.options) == ("Cas", {"A": "Choix 1", "B": "Choix 2"})
    header = ["病人", "图片", "问题", "选项A", "选项B", "答案"]
    chinese = proposed(header, [["1", "1.png", "哪一侧？", "左", "右", "A"]], tmp_path)
    assert (chinese.cluster, chinese.options) == ("病人", {"A": "选项A", "B": "选项B"})


# --- one question for all rows ---

LABELS = [["pics/0.png", "normal"], ["pics/1.png", "effusion"]] * 4


def test_a_sheet_of_labels_needs_the_question_of_all_rows(medtasks: Any, table: Path) -> None:
    table.write_text(text_of(LABELS, ["image", "Diagnosis"]), encoding="utf-8")
    arguments = ("new", "my_cxr", "--from", "rows.csv", "--no-add")
    refused = medtasks(*arguments)
    assert refused.returncode == 2
    assert "or --question '…' (the same for all rows)." in refused.stderr
    done = medtasks(*arguments, "--question", "Which finding: mass #1?")
    assert done.returncode == 0, done.stderr
    assert "Which finding: mass #1?  that of all rows" in done.stdout
    read = records(table.parent / "my_cxr")
    assert {record.question for record in read} == {"Which finding: mass #1?"}
    assert [record.answer for record in read[:2]] == ["normal", "effusion"]
    assert read[0].labels == ("effusion", "normal")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--question", " "), "--question: is blank"),
        (("--question", "Why?", "--column", "question=image"), "leave one out"),
    ],
)
def test_a_question_of_all_rows_is_not_blank_and_the_only_one(
    arguments: tuple[str, ...], message: str, medtasks: Any, table: Path
) -> None:
    done = medtasks("new", "my_cxr", "--from", table.name, *arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_person_may_enter_the_question_of_all_rows(table: Path) -> None:
    table.write_text(text_of(LABELS, ["image", "label"]), encoding="utf-8")
    answers = iter(["lable", "Which finding is shown?", ""])
    proposal = decided(TableColumns.of_file(table), Wishes(), lambda _: next(answers))
    assert proposal.fixed_question == "Which finding is shown?"
    assert next(answers, None) is None


# --- languages ---


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Welche Seite ist betroffen?", "de"),
        ("Quelle est la latéralité de la lésion ?", "fr"),
        ("图像中可见什么病变？", "zh"),
        ("Nodule?", "en"),
    ],
)
def test_the_language_of_questions(question: str, language: str, tmp_path: Path) -> None:
    assert proposed(["question", "answer"], [[question, "yes"]], tmp_path).language == language


# --- a person at a terminal ---


def test_a_person_is_asked_for_what_is_open_and_may_change_the_rest(table: Path) -> None:
    header = [*HEADER[:-1], "label"]
    rows = [[*cells[:-1], cells[6]] for cells in ROWS]
    table.write_text(text_of(rows, header), encoding="utf-8")
    answers = iter(["7", "2", "cluster=nobody", "cluster=", "language=de", ""])
    proposal = decided(TableColumns.of_file(table), Wishes(), lambda _: next(answers))
    assert (proposal.answer, proposal.cluster, proposal.language) == ("label", None, "de")
    assert next(answers, None) is None


def test_enter_accepts(table: Path) -> None:
    proposal = decided(TableColumns.of_file(table), Wishes(), lambda _: "")
    assert (proposal.question, proposal.cluster) == ("question", "patient")
