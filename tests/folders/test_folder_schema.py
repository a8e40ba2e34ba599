"""``benchmark.yaml``: every mistake is named with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from folder_bench import OPTIONS_YAML, FolderBuilder

from medtasks.catalog.benchmark_folder import load_benchmark_folder, read_benchmark_folder
from medtasks.catalog.folder_tasks import task_names, task_texts
from medtasks.core.errors import MedtasksError, UsageError


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "message"),
    [
        ("answers: options", "answers: option", "MT109", 11, "field `answers` is 'option'"),
        ("answers: options", "answer: options", "MT107", 11, "(did you mean 'answers'?)"),
        ("  question: question\n", "", "MT113", 4, "columns.question is missing; name"),
        ("[modality]", "[modality]\nquestion: Why?", "MT113", 13, "so is columns.question"),
        ("name: my_vqa", "name: My-VQA", "MT109", 1, "such as my_vqa"),
        ("name: my_vqa", "name: medtasks", "MT113", 1, "the name of this program"),
        ("data: rows.csv", "data: row.csv", "MT109", 3, "expected a file of rows"),
        ("[modality]", "[target]", "MT113", 12, "which every question has already"),
        ("[modality]", "[modality]\nprompt: ask.j2", "MT201", 13, "expected a .j2 file"),
        ("[modality]", "[modality]\nlabels: [a, b]", "MT113", 13, "answers is options"),
        (
            "answers: options",
            "answers: closed",
            "MT113",
            11,
            "columns.options is set, but answers is closed",
        ),
        ("{A: A, B: B, C: C}", "{A: A, X: B}", "MT109", 8, "at least two letters"),
        ("title: My VQA", "title: My VQA\ntitle: B", "MT103", 3, "is duplicated"),
        ("title: My VQA", "title: [", "MT101", 4, "not valid YAML"),
    ],
)
def test_a_mistake_is_named_with_its_line(
    old: str, new: str, code: str, line: int, message: str, tmp_path: Path
) -> None:
    assert old in OPTIONS_YAML
    path = FolderBuilder(tmp_path / "f", OPTIONS_YAML.replace(old, new)).write()
    folder, defects = read_benchmark_folder(path)
    assert folder is None
    assert [(defect.code, defect.line) for defect in defects] == [(code, line)]
    assert message in defects[0].message
    with pytest.raises(MedtasksError, match=f"benchmark.yaml, line {line}: "):
        load_benchmark_folder(path)


def test_labels_that_yaml_reads_as_truth_values(tmp_path: Path) -> None:
    yaml = OPTIONS_YAML.replace("  options: {A: A, B: B, C: C}\n", "")
    yaml = yaml.replace("answers: options", "answers: closed\nlabels: [yes, no]")
    _, defects = read_benchmark_folder(FolderBuilder(tmp_path / "f", yaml).write())
    assert "YAML reads yes and no as true, so quote them" in defects[0].message


def test_a_directory_that_is_no_benchmark_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no benchmark\.yaml, expected a benchmark folder"):
        load_benchmark_folder(tmp_path)
    with pytest.raises(UsageError, match="x: is not a directory"):
        load_benchmark_folder(tmp_path / "x")


def test_tasks_follow_from_the_answers_and_prompts(tmp_path: Path) -> None:
    yaml = f"{OPTIONS_YAML}prompt: [question.j2, other.j2]\n"
    builder = FolderBuilder(tmp_path / "f", yaml, files={"other.j2": "{{ question }}?"})
    folder = load_benchmark_folder(builder.write())
    assert task_names(folder.file) == ("my_vqa", "my_vqa_circular", "my_vqa_prompts")
    assert task_texts(folder).keys() == set(task_names(folder.file))
