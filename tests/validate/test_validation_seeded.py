"""Planted defects: each is found under its own code, on its own line, and nothing is found where none is planted."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from defects import Defect, read
from seeded_bench import (
    OUR_TEMPLATES,
    Change,
    Documents,
    codes,
    copy_records,
    copy_tasks,
    copy_template,
    of_documents,
    of_records,
)

from medtasks.catalog.contents import task_directory
from medtasks.core.findings import RULES, as_rows
from medtasks.validate.run import validate

GOLDEN = Path(__file__).parent / "defects.txt"
IN_FILES = read(GOLDEN)

# what no planted file can show: the benchmark's own description, and states of the machine
ELSEWHERE = {"MT140", "MT141", "MT215", "MT300", "MT302"}
OF_PACKAGES = {"MT150", "MT217", "MT218"}
OF_PREPARED_DATA = {"MT401", "MT402", "MT403", "MT404", "MT405"}


# --- defects of records and documents: name, code of the finding, what is changed, and the task ---

MCQ, KVASIR, OPEN = "mi_cxr_tel_single", "kvasir_vqa_x1_level1", "med_cmr_open_su"
PRESENT, PROACTIVE = "medstreambench_present", "medstreambench_proactive"
LONG = "the cardiomegaly has become worse"


def _first(**changed: Any) -> Change:
    """The first row gets other values."""

    def change(rows: Documents) -> None:
        rows[0].update(changed)

    return change


def _without(field: str) -> Change:
    def change(rows: Documents) -> None:
        del rows[0][field]

    return change


def _choices(**changed: str) -> Change:
    def change(rows: Documents) -> None:
        rows[0]["choices"] = {**rows[0]["choices"], **changed}

    return change


def _second_like_first(*but: str) -> Change:
    """The second row becomes the first but for its id and the fields ``but``."""

    def change(rows: Documents) -> None:
        rows[1].update({key: value for key, value in rows[0].items() if key not in ("sample_id", *but)})

    return change


def _many(make: Callable[[Any, int], None], number: int = 60) -> Change:
    """``number`` copies of the first row, each made different."""

    def change(rows: Documents) -> Documents:
        copies = []
        for position in range(number):
            row = {**rows[0], "choices": dict(rows[0].get("choices", {})), "sample_id": f"row-{position}"}
            row["question"] = f"{row['question']} (case {position})"
            make(row, position)
            copies.append(row)
        return copies

    return change


def _always_a(row: dict[str, Any], position: int) -> None:
    del position
    row["target"] = "A"


def _longest_is_right(row: dict[str, Any], position: int) -> None:
    row["target"] = "ABCDE"[position % 5]
    row["choices"] = {letter: f"finding {letter}" for letter in "ABCDE"}
    row["choices"][row["target"]] += ", with all that belongs to it"


def _same_ids(rows: Documents) -> None:
    rows[1]["sample_id"] = rows[0]["sample_id"]


def _question_with_answer(rows: Documents) -> None:
    rows[0]["question"] = f"Is it true that {rows[0]['target']}"


def _every_question_with_its_answer(rows: Documents) -> None:
    for row in rows:
        row["question"] += f" ({row['choices'][row['target']]})"


def _every_question_with_its_letter(rows: Documents) -> None:
    for row in rows:
        row["question"] += f" [gold {row['target']}]"


def _late_frame(rows: Documents) -> None:
    rows[0]["times"] = [*rows[0]["times"][:-1], rows[0]["window_end"] + 1]


def _frames_out_of_order(rows: Documents) -> None:
    row = next(row for row in rows if len(row["times"]) > 1)
    row["times"] = row["times"][::-1]


def _option_nobody_has(rows: Documents) -> None:
    row = next(row for row in rows if row["options"])
    row["target"] = "something else"


RECORD_DEFECTS: list[tuple[str, str, Change, str]] = [
    ("answer outside the options", "MT301", _first(answer="F"), MCQ),
    ("field missing", "MT301", _without("qtype"), MCQ),
    ("field nobody knows", "MT301", _first(hint="the left one"), MCQ),
    ("no record of the subtask", "MT303", lambda rows: [row for row in rows if row["qtype"] == "icr_multi_abn"], MCQ),
    ("blank answer", "MT308", _first(answer=""), KVASIR),
]

DOCUMENT_DEFECTS: list[tuple[str, str, Change, str]] = [
    ("no sample id", "MT304", _without("sample_id"), MCQ),
    ("sample id is a number", "MT304", _first(sample_id=7), MCQ),
    ("media are one text", "MT304", _first(media="a.jpg"), MCQ),
    ("no cluster", "MT309", _without("cluster"), MCQ),
    ("blank cluster", "MT309", _first(cluster=""), MCQ),
    ("id twice", "MT305", _same_ids, OPEN),
    ("document twice", "MT306", _second_like_first(), KVASIR),
    ("right option left out", "MT307", _first(choices={"A": "one", "B": "two", "C": "three", "D": "four"}), MCQ),
    ("target is an option's text", "MT307", _first(target="T1 → T2"), MCQ),
    ("target of a list of options", "MT307", _option_nobody_has, PRESENT),
    ("blank target", "MT308", _first(target="  "), MCQ),
    ("question is nothing", "MT310", _first(question=None), KVASIR),
    ("blank question", "MT310", _first(question=" "), MCQ),
    ("no options", "MT311", _first(choices={}), MCQ),
    ("only one option", "MT311", _first(choices={"E": "none"}), MCQ),
    ("all options equal", "MT312", _first(choices=dict.fromkeys("ABCDE", "no change")), MCQ),
    ("options differ in case", "MT313", _choices(A="Left lung", B="left  lung"), MCQ),
    ("option misspelt", "MT313", _choices(A=LONG, B=LONG.replace("gal", "ggal")), MCQ),
    ("right answer is always A", "MT314", _many(_always_a), MCQ),
    ("right answer is the longest", "MT315", _many(_longest_is_right), MCQ),
    ("blank option", "MT316", _choices(B=" "), MCQ),
    ("no media", "MT317", _first(media=[]), MCQ),
    ("option too many", "MT318", _choices(F="none"), MCQ),
    ("two answers to one question", "MT319", _second_like_first("target"), KVASIR),
    ("document of another benchmark", "MT320", _first(benchmark="med_cmr"), MCQ),
    ("not a number", "MT321", _first(weight=float("nan")), MCQ),
    ("half a surrogate pair", "MT321", _first(note="\ud800"), MCQ),
    ("number and text", "MT322", lambda rows: [{**rows[0], "age": 7}, {**rows[1], "age": "7"}], MCQ),
    ("question holds its answer", "MT323", _question_with_answer, KVASIR),
    ("every question holds the answer", "MT219", _every_question_with_its_answer, MCQ),
    ("every question holds the letter", "MT219", _every_question_with_its_letter, MCQ),
    (
        "reference denies what was annotated",
        "MT325",
        _first(target="No text is visible.", original=[{"q": "Is there text?", "a": "Yes"}]),
        KVASIR,
    ),
    ("visible field is missing", "MT208", _without("question"), KVASIR),
    ("frame after the window's end", "MT330", _late_frame, PRESENT),
    ("frames out of order", "MT330", _frames_out_of_order, PROACTIVE),
]


@pytest.mark.parametrize("defect", IN_FILES, ids=lambda defect: defect.name)
def test_a_defect_of_a_file_is_found(defect: Defect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if defect.file.endswith(".j2"):
        copy_template(tmp_path, defect.file)
        monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
        what = defect.checked
    else:
        copy_tasks(tmp_path, defect.file.partition("/")[0])
        what = str(tmp_path / defect.checked)
    defect.plant(tmp_path)
    rows = as_rows(validate([what], quick=True).tasks)
    text = "\n".join("  ".join(row) for row in rows).replace(f"{tmp_path}/", "").replace(str(tmp_path), "(overlay)")
    defect.check(GOLDEN, re.sub(rf"{task_directory()}/\w+/tasks/", "", text.replace(str(OUR_TEMPLATES), "templates")))


@pytest.mark.parametrize(
    ("code", "change", "task"), [one[1:] for one in DOCUMENT_DEFECTS], ids=[one[0] for one in DOCUMENT_DEFECTS]
)
def test_a_defect_of_documents_is_found(code: str, change: Change, task: str) -> None:
    findings = of_documents(task, change)
    assert code in codes(findings), findings


@pytest.mark.parametrize(
    ("code", "change", "task"), [one[1:] for one in RECORD_DEFECTS], ids=[one[0] for one in RECORD_DEFECTS]
)
def test_a_defect_of_records_is_found(code: str, change: Change, task: str, tmp_path: Path) -> None:
    findings = of_records(task, change, tmp_path)
    assert code in codes(findings), findings


def test_there_is_a_defect_of_every_code() -> None:
    static = {code for code in RULES if code < "MT500"}  # how scores behave has a file of its own
    known = {one[1] for one in (*DOCUMENT_DEFECTS, *RECORD_DEFECTS)} | set(re.findall(r"MT\d+", GOLDEN.read_text()))
    assert known == static - ELSEWHERE - OF_PREPARED_DATA - OF_PACKAGES


def test_nothing_is_found_in_our_own_tasks() -> None:
    assert validate(["mi_cxr", "med_cmr", "kvasir_vqa_x1", "medstreambench"], quick=True).tasks == []


@pytest.mark.slow
def test_nothing_is_found_in_copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy_tasks(tmp_path / "tasks", "mi_cxr")
    assert validate([str(tmp_path / "tasks" / "mi_cxr")], quick=True).tasks == []
    copy_records(tmp_path / "data", "mi_cxr", lambda rows: rows)
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    assert validate(["mi_cxr"], quick=True).tasks == []
