"""Planted defects: each is found under its own code, on its own line, and nothing is found where none is planted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from seeded_bench import Bench, Defect, codes
from seeded_records import DOCUMENT_DEFECTS, RECORD_DEFECTS
from seeded_templates import TEMPLATE_DEFECTS
from seeded_yaml import YAML_DEFECTS

from medtasks.core.findings import RULES
from medtasks.validate.run import validate

DEFECTS: list[Defect] = [*YAML_DEFECTS, *TEMPLATE_DEFECTS, *RECORD_DEFECTS, *DOCUMENT_DEFECTS]

# what no planted file can show: the benchmark's own description, and states of the machine
ELSEWHERE = {"MT140", "MT141", "MT146", "MT215", "MT300", "MT302"}
OF_PACKAGES = {"MT150", "MT217", "MT218"}
OF_PREPARED_DATA = {"MT401", "MT402", "MT403", "MT404", "MT405"}


def _name(defect: Defect) -> str:
    return re.sub(r"\W+", "-", f"{defect.code}-{defect.name}")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench(tmp_path)
    made.templates.mkdir()
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(made.templates))
    return made


@pytest.mark.parametrize("defect", DEFECTS, ids=_name)
def test_a_planted_defect_is_found(defect: Defect, bench: Bench) -> None:
    findings = defect.findings(bench)
    assert defect.code in codes(findings), findings
    marked = defect.line(bench)
    if marked is not None:
        places = [(one.file, one.line) for one in findings if one.code == defect.code]
        assert marked in places


def test_a_template_that_cannot_be_read_is_not_also_said_to_show_nothing(bench: Bench) -> None:
    (missing,) = [one for one in DEFECTS if one.name == "missing template"]
    assert codes(missing.findings(bench)) == {"MT201"}


def test_there_is_a_defect_of_every_code() -> None:
    static = {code for code in RULES if code < "MT500"}  # how scores behave has a file of its own
    assert {one.code for one in DEFECTS} == static - ELSEWHERE - OF_PREPARED_DATA - OF_PACKAGES


def test_nothing_is_found_in_our_own_tasks() -> None:
    assert validate(["mi_cxr", "med_cmr", "kvasir_vqa_x1", "medstreambench"], scores=False, decode=False).tasks == []


@pytest.mark.slow
def test_nothing_is_found_in_a_copy_of_our_task_files(bench: Bench) -> None:
    bench.copy_tasks()
    assert validate([str(bench.tasks / "mi_cxr")], scores=False).tasks == []


@pytest.mark.slow
def test_nothing_is_found_in_copied_records(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.copy_records("mi_cxr", lambda rows: rows)
    monkeypatch.setenv("MEDTASKS_DATA", str(bench.data))
    assert validate(["mi_cxr"], scores=False, decode=False).tasks == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "order: circular",
            "order: circular, rotations: 6",
            "rotations is 6, but question icr-33 has 5 options; write at most 5, or all.",
        ),
        (
            "compare_with: mi_cxr_icr",
            "compare_with: mi_cxr_report",
            "no row of mi_cxr_report has options to rotate (8 no_options, 2 null_option_right); remove `options`.",
        ),
    ],
)
def test_options_that_cannot_be_rotated_are_one_finding(bench: Bench, old: str, new: str, message: str) -> None:
    bench.copy_tasks()
    path = bench.tasks / "mi_cxr" / "mi_cxr_icr_circular.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    (found,) = validate([str(path)], scores=False).tasks
    assert (found.code, found.field, found.line) == ("MT143", "metadata.options", 10)
    assert message in found.message


@pytest.mark.parametrize(
    ("field", "errors", "message"),
    [
        (
            "gold",
            "gold: None of the intervals, answer: T1 → T2",
            "is the gold answer of no document (did you mean 'None of these intervals'?); correct it.",
        ),
        (
            "answer_other_than",
            "gold_other_than: none of these intervals., answer_other_than: [T1 → T2, never]",
            "`errors[0].answer_other_than` has 'never', which is the option of no document; correct it.",
        ),
    ],
)
def test_errors_name_answers_that_documents_have(bench: Bench, field: str, errors: str, message: str) -> None:
    bench.copy_tasks()
    path = bench.tasks / "mi_cxr" / "mi_cxr_tel_single.yaml"
    text = path.read_text(encoding="utf-8").rstrip() + f"\n  errors: [{{name: missed, label: Missed, {errors}}}]\n"
    path.write_text(text, encoding="utf-8")
    (found,) = validate([str(path)], scores=False).tasks
    assert (found.code, found.severity, found.field) == ("MT146", "warning", f"metadata.errors[0].{field}")
    assert message in found.message


def test_confidences_of_options_need_options(bench: Bench) -> None:
    bench.copy_tasks()
    path = bench.tasks / "kvasir_vqa_x1" / "kvasir_vqa_x1_level1.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("of: answer", "of: option"), encoding="utf-8")
    (found,) = validate([str(path)], scores=False).tasks
    assert (found.code, found.field) == ("MT144", "metadata.confidence")
    assert "no document has `choices`" in found.message
