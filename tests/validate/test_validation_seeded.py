"""Planted defects: each is found under its own code, on its own line, and nothing is found where none is planted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from defects import Defect, read
from seeded_bench import OUR_TEMPLATES, Change, codes, copy_records, copy_tasks, copy_template, of_documents, of_records
from seeded_records import DOCUMENT_DEFECTS, RECORD_DEFECTS

from medtasks.catalog.contents import task_directory
from medtasks.core.findings import RULES, as_rows
from medtasks.validate.run import validate

GOLDEN = Path(__file__).parent / "defects.txt"
IN_FILES = read(GOLDEN)

# what no planted file can show: the benchmark's own description, and states of the machine
ELSEWHERE = {"MT140", "MT141", "MT215", "MT300", "MT302"}
OF_PACKAGES = {"MT150", "MT217", "MT218"}
OF_PREPARED_DATA = {"MT401", "MT402", "MT403", "MT404", "MT405"}


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
