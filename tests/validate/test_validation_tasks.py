"""What is validated, how it is reported once, and what the benchmark's own description must say."""

from __future__ import annotations

import ast
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from seeded_bench import codes, copy_tasks, of_documents

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.benchmark import DataSource, Publication
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.task_model import GroupFile, TaskFile
from medtasks.catalog.task_source import TaskSource
from medtasks.core.findings import Finding
from medtasks.validate.report import TaskReport
from medtasks.validate.run import validate
from medtasks.validate.task_files import FileIndex
from medtasks.validate.tasks import check_description


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    copy_tasks(tmp_path / "tasks", "mi_cxr")
    return tmp_path / "tasks" / "mi_cxr"


def replace_in(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


def test_a_defect_of_a_shared_part_is_said_once(tasks: Path) -> None:
    replace_in(tasks / "_base.yaml", "metric: accuracy", "metric: acuracy")
    found = [one for one in validate([str(tasks)], quick=True).tasks if one.code == "MT124"]
    assert [(one.file, one.field) for one in found] == [
        (str(tasks / "_base.yaml"), "metric_list[0].metric")
    ]


def test_a_shared_part_that_cannot_be_read_is_a_defect_alone(tasks: Path) -> None:
    (tasks / "_base.yaml").write_text("task: [unclosed", encoding="utf-8")
    assert [one.code for one in validate([str(tasks / "_base.yaml")], quick=True).tasks] == [
        "MT101"
    ]


def test_a_benchmark_is_the_one_that_a_file_names_whatever_its_directory(tasks: Path) -> None:
    files, path = FileIndex(), tasks.rename(tasks.with_name("renamed")) / "mi_cxr_tel_single.yaml"
    files.paths["mi_cxr_tel_single"] = path
    assert files.benchmark_of("mi_cxr_tel_single") == "mi_cxr"


def test_a_key_that_a_file_replaces_is_looked_for_in_that_file(tasks: Path) -> None:
    path = tasks / "mi_cxr_report.yaml"
    replace_in(path, "metric: cider", "metric: cidre")
    (found,) = (one for one in validate([str(path)], quick=True).tasks if one.code == "MT124")
    line = next(
        number for number, text in enumerate(path.read_text().splitlines(), 1) if "cidre" in text
    )
    assert (found.file, found.line) == (str(path), line)


def test_a_group_stands_for_all_it_holds() -> None:
    seen: list[tuple[int, int]] = []
    validate(["mi_cxr_tel"], quick=True, progress=lambda done, of: seen.append((done, of)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_of_a_package_only_the_tasks_folders_are_read(tasks: Path) -> None:
    folder = tasks.parent.parent
    (folder / "compose.yaml").write_text("services: {}\n")
    (folder / ".github").mkdir()
    (folder / ".github/tasks.yaml").write_text("task: 7\n")
    assert validate([str(folder)], quick=True).tasks == []


def test_rows_of_another_make_are_a_note(tasks: Path) -> None:
    replace_in(tasks / "mi_cxr_icr.yaml", "mi_cxr.icr\n", "mi_cxr.process_results\n")
    assert codes(validate([str(tasks / "mi_cxr_icr.yaml")]).tasks) == {"MT302"}


def test_a_benchmark_must_describe_itself() -> None:
    blank = Publication(paper=" ", source=" ", licence=" ", language=" ", intended_use=" ")
    data = DataSource(prepare=" ", version=" ")
    findings = described(title=" ", cluster=" ", publication=blank, data=data)
    named = [(each.code, each.severity, each.message.split("`")[1]) for each in findings]
    required = (
        "title",
        "version",
        "licence",
        "source",
        "paper",
        "prepare",
        "cluster",
        "language",
        "intended_use",
    )
    assert named == [("MT140", "error", field) for field in required]


def test_no_benchmark_may_show_the_answer() -> None:
    fields = {"target", "answer", "evidence", "visual_description", "ideal_response"}
    found = described(visible_fields=get_benchmark("mi_cxr").visible_fields | fields)
    assert {(one.code, one.message.split("'")[1]) for one in found} == {
        ("MT215", field) for field in fields
    }


def described(**changed: Any) -> list[Finding]:
    """Findings about mi_cxr with another description."""
    report = TaskReport(TaskSource(Path("task.yaml")))
    check_description(replace(get_benchmark("mi_cxr"), **changed), report)
    return report.findings()


def checked(documents: list[dict[str, Any]]) -> list[Finding]:
    """Findings about these documents as those of a task."""
    return of_documents("mi_cxr_icr", lambda _: documents)


def test_options_that_differ_in_one_number_or_word_are_different() -> None:
    document = task_documents("mi_cxr_icr")[0]
    stem = "the left pleural effusion is unchanged from the first visit to the second visit and later resolves"
    choices = {
        "A": stem,
        "B": stem.replace("left", "right"),
        "C": f"{stem} 5",
        "D": f"{stem} 6",
        "E": "none",
    }
    assert checked([{**document, "choices": choices}]) == []


def test_a_bias_is_an_uneven_spread_over_fifty_questions() -> None:
    first = task_documents("mi_cxr_icr")[0]

    def rows(number: int, targets: str) -> list[dict[str, Any]]:
        changes = (
            {"sample_id": str(n), "question": f"Case {n}?", "target": targets[n % len(targets)]}
            for n in range(number)
        )
        return [{**first, **change} for change in changes]

    assert "MT314" not in codes(checked(rows(100, "ABCDE")))
    assert "MT314" in codes(checked(rows(50, "A")))
    assert "MT314" not in codes(checked(rows(49, "A")))


def test_a_broken_rubric_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "judge").mkdir()
    (tmp_path / "judge/med_cmr_open.j2").write_text("Well?")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    found = validate(["med_cmr_open_su"], quick=True).tasks
    assert codes(found) >= {"MT124"}
    assert "does not show the response" in str(found)


def test_every_key_we_know_is_one_of_the_harness() -> None:
    harness = Path(str(find_spec("lmms_eval").origin)).parent  # type: ignore[union-attr]  # importing it takes seconds
    for model, file, name in (
        (TaskFile, "api/task.py", "TaskConfig"),
        (GroupFile, "api/group.py", "GroupConfig"),
    ):
        tree = ast.parse((harness / file).read_text(encoding="utf-8"))
        (config,) = (
            node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name
        )
        keys = {node.target.id for node in config.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
        assert set(model.model_fields) <= keys
