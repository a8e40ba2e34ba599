"""What is validated, how it is reported once, and what the benchmark's own description must say."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from seeded_bench import Bench, codes

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.task_model import GroupFile, TaskFile
from medtasks.catalog.task_source import TaskSource
from medtasks.core.findings import Finding
from medtasks.data.store import open_prepared
from medtasks.validate.documents import options_of
from medtasks.validate.names import check_description
from medtasks.validate.prepared import MediaCheck
from medtasks.validate.report import TaskReport
from medtasks.validate.run import check_rows, validate


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    made = Bench(tmp_path)
    made.copy_tasks()
    return made


def test_a_defect_of_a_shared_part_is_said_once(bench: Bench) -> None:
    base = bench.tasks / "mi_cxr/_base.yaml"
    base.write_text(base.read_text().replace("metric: accuracy", "metric: acuracy"))
    found = [one for one in validate([str(bench.tasks / "mi_cxr")], documents=False).tasks if one.code == "MT124"]
    assert [one.file for one in found] == [str(base)]
    assert found[0].field == "metric_list[0].metric"


def test_a_key_that_a_file_replaces_is_looked_for_in_that_file(bench: Bench) -> None:
    path = bench.tasks / "mi_cxr/mi_cxr_report.yaml"
    path.write_text(path.read_text().replace("metric: cider", "metric: cidre"))
    (found,) = (one for one in validate([str(path)], documents=False).tasks if one.code == "MT124")
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "cidre" in text)
    assert (found.file, found.line) == (str(path), line)


def test_a_group_stands_for_all_it_holds() -> None:
    seen: list[tuple[int, int]] = []
    validate(["mi_cxr_tel"], documents=False, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_of_a_package_only_the_tasks_folders_are_read(bench: Bench) -> None:
    (bench.folder / "compose.yaml").write_text("services: {}\n")
    (bench.folder / ".github").mkdir()
    (bench.folder / ".github/tasks.yaml").write_text("task: 7\n")
    assert validate([str(bench.folder)], documents=False).tasks == []


def test_rows_of_another_make_are_a_note(bench: Bench) -> None:
    path = bench.tasks / "mi_cxr/mi_cxr_icr.yaml"
    path.write_text(path.read_text().replace("mi_cxr.icr\n", "mi_cxr.process_results\n"))
    assert codes(validate([str(path)]).tasks) == {"MT302"}


@pytest.mark.parametrize("field", ["title", "version", "licence", "source", "paper", "cluster", "prepare"])
def test_a_benchmark_must_describe_itself(field: str) -> None:
    (found,) = described(**{field: " "})
    assert found.code == "MT140"
    assert f"`{field}`" in found.message


@pytest.mark.parametrize("field", ["language", "intended_use"])
def test_language_and_intended_use_are_asked_for(field: str) -> None:
    (found,) = described(**{field: ""})
    assert (found.code, found.severity) == ("MT141", "note")


@pytest.mark.parametrize("field", ["target", "answer", "evidence", "visual_description", "ideal_response"])
def test_no_benchmark_may_show_the_answer(field: str) -> None:
    visible = get_benchmark("mi_cxr").visible_fields | {field}
    assert codes(described(visible_fields=visible)) == {"MT215"}


def described(**changed: Any) -> list[Finding]:
    """Findings about mi_cxr with another description."""
    report = TaskReport(TaskSource(Path("task.yaml")))
    check_description(replace(get_benchmark("mi_cxr"), **changed), report)
    return report.findings()


def _checked(documents: list[dict[str, Any]]) -> list[Finding]:
    report = TaskReport(TaskSource(Path("mi_cxr_icr.yaml")), len(documents))
    media = MediaCheck(open_prepared("mi_cxr"), decode=False)
    check_rows(documents, get_benchmark("mi_cxr"), {"template": "mi_cxr/mcq.j2"}, report, media)
    return report.findings()


def test_many_documents_with_one_defect_are_one_finding() -> None:
    documents = [{**one, "target": ""} for one in task_documents("mi_cxr_icr")]
    (found,) = _checked(documents)
    assert found.message.startswith(f"{len(documents)} of {len(documents)} documents, first ")


def test_options_that_differ_in_one_number_or_word_are_different() -> None:
    document = task_documents("mi_cxr_icr")[0]
    stem = "the left pleural effusion is unchanged from the first visit to the second visit and later resolves"
    choices = {"A": stem, "B": stem.replace("left", "right"), "C": f"{stem} 5", "D": f"{stem} 6", "E": "none"}
    assert _checked([{**document, "choices": choices}]) == []


def test_an_even_spread_of_right_answers_is_no_bias() -> None:
    first = task_documents("mi_cxr_icr")[0]
    rows = [
        {**first, "sample_id": str(number), "question": f"Case {number}?", "target": "ABCDE"[number % 5]}
        for number in range(100)
    ]
    assert "MT314" not in codes(_checked(rows))


def test_forty_nine_questions_are_too_few_for_a_bias() -> None:
    first = task_documents("mi_cxr_icr")[0]
    rows = [{**first, "sample_id": str(number), "question": f"Case {number}?", "target": "A"} for number in range(50)]
    assert "MT314" in codes(_checked(rows))
    assert "MT314" not in codes(_checked(rows[:49]))


def test_options_are_lettered_or_numbered() -> None:
    assert list(options_of({"choices": {"A": "yes", "B": None}})) == [("A", "yes")]
    assert list(options_of({"options": ["yes", "no"]})) == [("1", "yes"), ("2", "no")]
    assert list(options_of({"options": "yes"})) == []


def test_a_broken_rubric_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge/med_cmr_open.j2").write_text("Well?")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    found = validate(["med_cmr_open_su"], documents=False).tasks
    assert codes(found) >= {"MT126"}
    assert "does not show the response" in str(found)


def test_every_key_we_know_is_one_of_the_harness() -> None:
    from lmms_eval.api.group import GroupConfig
    from lmms_eval.api.task import TaskConfig

    assert set(TaskFile.model_fields) <= {one.name for one in fields(TaskConfig)}
    assert set(GroupFile.model_fields) <= {one.name for one in fields(GroupConfig)}
