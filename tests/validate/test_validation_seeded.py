"""Planted defects: each is found under its own code, on its own line, and nothing is found where
none is planted.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from seeded_bench import (
    OUR_TEMPLATES,
    Change,
    Defect,
    Documents,
    codes,
    copy_tasks,
    copy_template,
    of_documents,
    of_records,
    read,
)

from medtasks.catalog.contents import task_directory
from medtasks.core.findings import RULES, as_rows
from medtasks.validate.run import validate

GOLDEN = Path(__file__).parent / "defects.txt"
IN_FILES = read(GOLDEN)

# what no planted file can show: the benchmark's own description, and states of the machine
ELSEWHERE = {"MT140", "MT215", "MT300", "MT302"}
OF_PACKAGES = {"MT150", "MT218"}
OF_PREPARED_DATA = {"MT401", "MT402", "MT404", "MT405"}


# --- defects of records and documents: name, code of the finding, what is changed, and the task ---

MCQ, KVASIR, OPEN = "mi_cxr_tel_single", "kvasir_vqa_x1_level1", "med_cmr_open_su"
PRESENT, PROACTIVE = "medstreambench_present", "medstreambench_proactive"
LONG = "the cardiomegaly has become worse"


def _first(**changed: Any) -> Change:
    """The first row gets other values, given or made of the row."""
    return lambda rows: rows[0].update(_made(rows[0], changed))


def _every(**changed: Any) -> Change:
    """Every row gets other values."""
    return lambda rows: [{**row, **_made(row, changed)} for row in rows]


def _made(row: dict[str, Any], changed: dict[str, Any]) -> dict[str, Any]:
    return {key: value(row) if callable(value) else value for key, value in changed.items()}


def _without(field: str) -> Change:
    return lambda rows: rows[0].pop(field) and None


def _choices(**changed: str) -> Change:
    return _first(choices=lambda row: {**row["choices"], **changed})


def _second_like_first(*but: str) -> Change:
    """The second row becomes the first but for its id and the fields ``but``."""
    return lambda rows: rows[1].update(
        {k: value for k, value in rows[0].items() if k not in ("sample_id", *but)}
    )


def _many(make: Callable[[int], dict[str, Any]]) -> Change:
    """Sixty copies of the first row, each with a question of its own and what is made for its
    number.
    """

    def change(rows: Documents) -> Documents:
        question = rows[0]["question"]
        return [
            {
                **rows[0],
                "sample_id": f"row-{number}",
                "question": f"{question} (case {number})",
                **make(number),
            }
            for number in range(60)
        ]

    return change


def _longest_is_right(number: int) -> dict[str, Any]:
    choices, target = {letter: f"finding {letter}" for letter in "ABCDE"}, "ABCDE"[number % 5]
    return {
        "target": target,
        "choices": {**choices, target: f"{choices[target]}, with all that belongs to it"},
    }


def _with_answer(row: dict[str, Any]) -> str:
    return f"{row['question']} ({row['choices'][row['target']]})"


RECORD_DEFECTS: list[tuple[str, str, Change, str]] = [
    ("answer outside the options", "MT301", _first(answer="F"), MCQ),
    ("field missing", "MT301", _without("qtype"), MCQ),
    ("field nobody knows", "MT301", _first(hint="the left one"), MCQ),
    (
        "no record of the subtask",
        "MT303",
        lambda rows: [row for row in rows if row["qtype"] == "icr_multi_abn"],
        MCQ,
    ),
    ("blank answer", "MT304", _first(answer=""), KVASIR),
]

DOCUMENT_DEFECTS: list[tuple[str, str, Change, str]] = [
    ("no sample id", "MT304", _without("sample_id"), MCQ),
    ("sample id is a number", "MT304", _first(sample_id=7), MCQ),
    ("media are one text", "MT304", _first(media="a.jpg"), MCQ),
    ("no cluster", "MT304", _without("cluster"), MCQ),
    ("id twice", "MT305", lambda rows: rows[1].update(sample_id=rows[0]["sample_id"]), OPEN),
    ("document twice", "MT306", _second_like_first(), KVASIR),
    (
        "right option left out",
        "MT307",
        _first(choices={"A": "one", "B": "two", "C": "three", "D": "four"}),
        MCQ,
    ),
    ("target is an option's text", "MT307", _first(target="T1 → T2"), MCQ),
    ("target of a list of options", "MT307", _every(target="something else"), PRESENT),
    ("blank target", "MT304", _first(target="  "), MCQ),
    ("question is nothing", "MT304", _first(question=None), KVASIR),
    ("blank question", "MT304", _first(question=" "), MCQ),
    ("no options", "MT311", _first(choices={}), MCQ),
    ("only one option", "MT311", _first(choices={"E": "none"}), MCQ),
    ("all options equal", "MT311", _first(choices=dict.fromkeys("ABCDE", "no change")), MCQ),
    ("options differ in case", "MT313", _choices(A="Left lung", B="left  lung"), MCQ),
    ("options differ in marks", "MT313", _choices(A=LONG, B=f"{LONG}."), MCQ),
    ("right answer is always A", "MT314", _many(lambda _: {"target": "A"}), MCQ),
    ("right answer is the longest", "MT315", _many(_longest_is_right), MCQ),
    ("blank option", "MT316", _choices(B=" "), MCQ),
    ("no media", "MT317", _first(media=[]), MCQ),
    ("option too many", "MT318", _choices(F="none"), MCQ),
    ("two answers to one question", "MT319", _second_like_first("target"), KVASIR),
    ("not a number", "MT321", _first(weight=float("nan")), MCQ),
    ("half a surrogate pair", "MT321", _first(note="\ud800"), MCQ),
    (
        "number and text",
        "MT322",
        lambda rows: [{**rows[0], "age": 7}, {**rows[1], "age": "7"}],
        MCQ,
    ),
    ("every question holds the answer", "MT219", _every(question=_with_answer), MCQ),
    (
        "every question holds the letter",
        "MT219",
        _every(question=lambda row: f"Why {row['target']} (gold)?"),
        MCQ,
    ),
    (
        "reference denies what was annotated",
        "MT325",
        _first(target="No text is visible.", original=[{"q": "Is there text?", "a": "Yes"}]),
        KVASIR,
    ),
    ("visible field is missing", "MT208", _without("question"), KVASIR),
    (
        "frame after the window's end",
        "MT330",
        _every(times=lambda row: [*row["times"][:-1], row["window_end"] + 1]),
        PRESENT,
    ),
    ("frames out of order", "MT330", _every(times=lambda row: row["times"][::-1]), PROACTIVE),
]


@pytest.mark.parametrize("defect", IN_FILES, ids=lambda defect: defect.name)
def test_a_defect_of_a_file_is_found(
    defect: Defect, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    text = (
        "\n".join("  ".join(row) for row in rows)
        .replace(f"{tmp_path}/", "")
        .replace(str(tmp_path), "(overlay)")
    )
    defect.check(
        GOLDEN,
        re.sub(
            rf"{task_directory()}/\w+/tasks/", "", text.replace(str(OUR_TEMPLATES), "templates")
        ),
    )


@pytest.mark.parametrize(
    ("code", "change", "task"),
    [one[1:] for one in DOCUMENT_DEFECTS],
    ids=[one[0] for one in DOCUMENT_DEFECTS],
)
def test_a_defect_of_documents_is_found(code: str, change: Change, task: str) -> None:
    findings = of_documents(task, change)
    assert code in codes(findings), findings


@pytest.mark.parametrize(
    ("code", "change", "task"),
    [one[1:] for one in RECORD_DEFECTS],
    ids=[one[0] for one in RECORD_DEFECTS],
)
def test_a_defect_of_records_is_found(code: str, change: Change, task: str, tmp_path: Path) -> None:
    findings = of_records(task, change, tmp_path)
    assert code in codes(findings), findings


def test_there_is_a_defect_of_every_code() -> None:
    static = {code for code in RULES if code < "MT500"}  # how scores behave has a file of its own
    known = {one[1] for one in (*DOCUMENT_DEFECTS, *RECORD_DEFECTS)} | set(
        re.findall(r"MT\d+", GOLDEN.read_text())
    )
    assert known == static - ELSEWHERE - OF_PREPARED_DATA - OF_PACKAGES


def test_nothing_is_found_in_our_own_tasks() -> None:
    assert (
        validate(["mi_cxr", "med_cmr", "kvasir_vqa_x1", "medstreambench"], quick=True).tasks == []
    )
