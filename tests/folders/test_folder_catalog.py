"""Benchmark folders as packages: in use, left out with one sentence, prepared on first use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from folder_bench import OPTIONS_YAML, FolderBuilder

from medtasks.benchmarks.documents import prompt_text, task_documents
from medtasks.benchmarks.layouts import default_layout
from medtasks.catalog.contents import forget_packages, owner_of, packages_found, task_files
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.cli.scaffold.folder_package import write_folder_package
from medtasks.core.cache import writable_cache
from medtasks.core.errors import DataError, NotPreparedError, UsageError
from medtasks.data.store import open_prepared
from medtasks.validate.run import validate


def use(monkeypatch: pytest.MonkeyPatch, *folders: Path) -> None:
    """Have the process use these folders."""
    monkeypatch.setenv("MEDTASKS_BENCHMARKS", ":".join(map(str, folders)))
    forget_packages()


def reasons() -> list[str]:
    """Why folders are left out."""
    return [str(part) for part in packages_found()[1] if part.owner.startswith("folder")]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = FolderBuilder(tmp_path / "pictures of shapes").write()
    use(monkeypatch, path)
    return path


def test_a_folder_has_tasks_and_a_benchmark(folder: Path) -> None:
    assert {"my_vqa", "my_vqa_circular"} <= task_files().keys()
    owner = owner_of(task_files()["my_vqa"]).owner
    assert owner.startswith("folder pictures of shapes ")
    assert str(folder.parent) not in owner
    benchmark = get_benchmark("my_vqa")
    assert (benchmark.options, benchmark.cluster) == (("A", "B", "C"), "patient")
    assert load_spec("my_vqa").metadata.breakdowns == ("modality",)


@pytest.mark.parametrize(("line", "shown"), [("", "nothing"), ("shows: media\n", "media")])
def test_what_a_board_may_publish_of_samples(folder: Path, line: str, shown: str) -> None:
    with (folder / "benchmark.yaml").open("a", encoding="utf-8") as file:
        file.write(line)
    assert default_layout("my_vqa").shows == shown


def test_data_are_prepared_on_first_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = task_documents("my_vqa")
    assert len(documents) == 20
    assert documents[1]["target"] == "B"
    assert documents[1]["modality"] == "MR"
    assert len(task_documents("my_vqa_circular")) == 60
    assert capsys.readouterr().err.count("preparing my_vqa (once)") == 1
    assert folder.is_dir()


def test_a_prompt_has_no_option_of_other_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = "{% for letter in choices | sort %}{{ letter }}: {{ choices[letter] }}. {% endfor %}"
    use(monkeypatch, FolderBuilder(tmp_path, prompt=prompt).set(0, "C", "").write())
    document = task_documents("my_vqa")[0]
    assert document["choices"] == {"A": "red", "B": "green"}
    document["choices"]["C"] = None  # as in the harness's dataset
    assert prompt_text(document, "my_vqa/question.j2").strip() == "A: red. B: green."


def test_a_folder_that_cannot_be_written(folder: Path) -> None:
    for path in (folder / "images", folder):
        path.chmod(0o555)
    try:
        before = sorted(folder.rglob("*"))
        assert len(task_documents("my_vqa")) == 20
        assert sorted(folder.rglob("*")) == before
    finally:
        folder.chmod(0o755)


def test_task_files_are_the_same_for_equal_folders(folder: Path) -> None:
    first = task_files()["my_vqa"]
    text = first.read_text(encoding="utf-8")
    first.write_text("damaged", encoding="utf-8")
    forget_packages()
    assert task_files()["my_vqa"] == first
    assert first.read_text(encoding="utf-8") == text
    assert first.is_relative_to(writable_cache())
    assert str(folder) not in text


def test_rows_that_change_after_preparation(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = open_prepared("my_vqa").manifest.fingerprint
    FolderBuilder(folder).set(0, "answer", "B").write()
    use(monkeypatch, folder)
    message = "rows.csv or the columns .* have changed since my_vqa was prepared; .*medtasks add"
    with pytest.raises(NotPreparedError, match=message):
        task_documents("my_vqa")
    FolderBuilder(folder).write()
    use(monkeypatch, folder)
    assert open_prepared("my_vqa").manifest.fingerprint == before


def test_faulty_rows_are_named_when_data_are_needed(folder: Path) -> None:
    builder = FolderBuilder(folder)
    for row in range(5):
        builder.set(row, "answer", "D")
    builder.write()
    with pytest.raises(DataError, match=r"rows\.csv, line 2: the answer is 'D'.*\(2 more: "):
        task_documents("my_vqa")


# --- what is left out ---


def test_a_broken_folder_is_left_out_alone(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    yaml = OPTIONS_YAML.replace("my_vqa", "broken").replace("answers: options", "answers: x")
    broken = FolderBuilder(tmp_path / "broken", yaml).write()
    use(monkeypatch, broken, folder)
    assert "my_vqa" in task_files()
    assert "mi_cxr" in task_files()
    (reason,) = reasons()
    assert reason.startswith(f"folder broken is left out: {broken}/benchmark.yaml, line 11: field")


def test_two_folders_of_one_name(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = FolderBuilder(tmp_path / "second").write()
    use(monkeypatch, folder, second, folder)
    (reason,) = reasons()
    assert "the name my_vqa belongs to folder pictures of shapes" in reason
    assert reason.startswith("folder second ")


def test_a_name_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yaml = OPTIONS_YAML.replace("my_vqa", "mi_cxr")
    use(monkeypatch, FolderBuilder(tmp_path / "f", yaml).write())
    (reason,) = reasons()
    assert "its task mi_cxr is already defined by medtasks; rename one of them" in reason
    assert not owner_of(task_files()["mi_cxr"]).folder


def test_a_folder_that_is_gone(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, folder.with_name("elsewhere"))
    (reason,) = reasons()
    assert reason.endswith("elsewhere is not a directory; fix or unset MEDTASKS_BENCHMARKS.")


# --- commands ---


@pytest.mark.slow
def test_add_list_and_remove(medtasks: Any, tmp_path: Path) -> None:
    FolderBuilder(tmp_path / "shapes").write()
    added = medtasks("add", "shapes")
    assert added.returncode == 0, added.stderr
    assert "prepared my_vqa: 20 rows, 20 media files, 10 clusters" in added.stdout
    forget_packages()
    assert "folder shapes" in medtasks("list", "my_vqa").stdout
    again = medtasks("add", "my_vqa")
    assert (again.returncode, again.stderr) == (0, "")
    second = FolderBuilder(tmp_path / "second").write()
    refused = medtasks("add", str(second))
    assert refused.returncode == 2
    assert "the benchmark my_vqa is already added from" in refused.stderr
    assert medtasks("remove", "my_vqa").returncode == 0
    listed = json.loads((tmp_path / "config/medtasks/benchmarks.json").read_text())
    assert listed == {}
    unknown = medtasks("remove", "my_vqa")
    assert unknown.stderr == "medtasks: the benchmark 'my_vqa' is not added; added are: none.\n"


def test_faulty_rows_are_listed_and_nothing_is_added(medtasks: Any, tmp_path: Path) -> None:
    FolderBuilder(tmp_path / "f").set(2, "answer", "D").set(4, "question", "").write()
    done = medtasks("add", "f")
    assert done.returncode == 1
    assert "f/rows.csv:4" in done.stdout
    assert "f/rows.csv:6" in done.stdout
    assert "my_vqa was not added: 2 errors" in done.stdout
    assert done.stdout.endswith("correct them, and run: medtasks add f\n")
    assert not (tmp_path / "config/medtasks/benchmarks.json").exists()


def test_a_label_that_is_read_as_another_is_refused(medtasks: Any, tmp_path: Path) -> None:
    yaml = OPTIONS_YAML.replace("answers: options", "answers: closed")
    yaml = "".join(line for line in yaml.splitlines(True) if "options:" not in line)
    builder = FolderBuilder(tmp_path / "f", yaml, "{{ question }}")
    for row in range(6):
        builder.set(row, "answer", ["T2", "T2*"][row % 2])
    builder.write()
    done = medtasks("add", "f")
    assert done.returncode == 1
    assert done.stderr == (
        "medtasks: rows.csv: the answer 'T2*' is read as 'T2' when a model gives it, expected "
        "'T2*'; write it in other words in the rows, and run: medtasks add f\n"
    )
    assert not (tmp_path / "config/medtasks/benchmarks.json").exists()


def test_a_prompt_that_shows_what_rows_lack(medtasks: Any, tmp_path: Path) -> None:
    FolderBuilder(tmp_path / "f", prompt="{{ question }} {{ hint }}").write()
    done = medtasks("add", "f")
    assert done.returncode == 1
    assert "template 'my_vqa/question.j2' cannot be rendered: 'hint' is undefined" in done.stderr
    assert not (tmp_path / "config/medtasks/benchmarks.json").exists()


def test_a_name_of_lmms_eval(medtasks: Any, tmp_path: Path) -> None:
    FolderBuilder(tmp_path / "f", OPTIONS_YAML.replace("my_vqa", "mme")).write()
    done = medtasks("add", "f")
    assert done.returncode == 2
    assert "benchmark.yaml, line 1: lmms-eval has a task mme already" in done.stderr


def test_a_damaged_list_of_folders(medtasks: Any, tmp_path: Path) -> None:
    file = tmp_path / "config/medtasks/benchmarks.json"
    file.parent.mkdir(parents=True)
    file.write_text("{", encoding="utf-8")
    done = medtasks("list", "mi_cxr_icr")
    assert done.returncode == 0
    assert "benchmarks.json: cannot be read as the list of added benchmarks" in done.stderr


def test_folders_in_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In ``benchmarks/`` beside its module, which needs no task file and no code."""
    module = tmp_path / "site" / "lab_benchmarks"
    FolderBuilder(module / "benchmarks" / "shapes").write()
    (module / "__init__.py").touch()
    info = tmp_path / "site" / "lab_benchmarks-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lab-benchmarks\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[medtasks.tasks]\nlab = lab_benchmarks\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    forget_packages()
    assert packages_found()[1] == ()
    assert len(task_documents("my_vqa_circular")) == 60

    FolderBuilder(tmp_path / "copy").write()
    use(monkeypatch, tmp_path / "copy")
    (reason,) = reasons()
    assert "the name my_vqa belongs to folder shapes" in reason


def test_questions_without_pictures_need_none(tmp_path: Path) -> None:
    of_text = OPTIONS_YAML.replace("  image: image\n", "").replace("  cluster: patient\n", "")
    path = FolderBuilder(tmp_path / "text", of_text.replace("my_vqa", "my_qa")).write()
    assert validate([str(path)], quick=True).all == []
    assert get_benchmark("my_qa").cluster == "question"
    one_missing = FolderBuilder(tmp_path / "pictures").set(3, "image", "").write()
    (finding,) = validate([str(one_missing)], quick=True).all
    assert finding.code == "MT317"
    assert "1 of 20 documents, first 'q3': `media` is empty" in finding.message


def test_a_package_that_is_not_installed(tmp_path: Path) -> None:
    package = tmp_path / "my package"
    write_folder_package(package, "acme-vqa", FolderBuilder(tmp_path / "f").write())
    assert validate([str(package / "src/my_vqa")], quick=True).all == []
    for path in (package, package / "src/my_vqa/tasks/my_vqa/my_vqa.yaml"):
        with pytest.raises(UsageError) as refusal:
            validate([str(path)], quick=True)
        assert str(refusal.value) == (
            f"{package / 'src/my_vqa'}: the package my_vqa is not installed, so its functions, templates and benchmark "
            f"cannot be found; run `pip install -e '{package}'`, then repeat this command."
        )
