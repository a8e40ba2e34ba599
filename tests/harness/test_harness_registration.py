"""How lmms-eval gets to know our tasks and models, and what happens when it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lmms_eval.models  # noqa: F401  (our tasks are added, and files parsed in C)
import pytest

from medtasks import harness
from medtasks.catalog.contents import task_directory
from medtasks.catalog.spec import load_specs
from medtasks.harness import task_index


@pytest.mark.slow
def test_the_plain_command_line_lists_our_tasks(new_python: Any) -> None:
    listing = new_python("-m", "lmms_eval", "--tasks", "list")
    missing = [
        name
        for name in load_specs()
        if f" - {name}\n" not in listing.stdout.replace("\x1b[0m", "") + "\n"
    ]
    assert not missing


@pytest.mark.slow
def test_a_folder_in_the_working_directory_takes_no_task_s_place(
    python: Any, tmp_path: Path
) -> None:
    (tmp_path / "mi_cxr_tel_single").mkdir()
    arguments = (
        "--model",
        "medtasks_baseline",
        "--model_args",
        "policy=oracle",
        "--tasks",
        "mi_cxr_tel_single",
    )
    done = python("-m", "lmms_eval", *arguments, "--output_path", "out")
    assert (
        "mi_cxr_tel_single  n=10    accuracy 1.000"
        in done.stdout.rpartition("|Tasks|")[2].rpartition("|medtasks|")[2]
    )
    assert done.stdout.splitlines()[-1].startswith("  samples, scores and manifest: out/")
    assert done.returncode == 0


def test_a_clone_in_the_working_directory_is_named_if_it_hides_an_editable_installation(
    new_python: Any, tmp_path: Path
) -> None:
    (tmp_path / "medtasks").mkdir()
    done = new_python(
        "-c", "from medtasks.harness import model_manifests; print(model_manifests())"
    )
    assert done.stdout == "[]\n"
    assert f"{tmp_path / 'medtasks'} hides the installed package" in done.stderr
    assert "start in another directory" in done.stderr


def test_the_folder_layout_says_what_the_harness_reads_out_of_the_files() -> None:
    from lmms_eval.tasks import TaskManager

    manager = TaskManager(include_path=str(task_directory()), include_defaults=False)
    assert {
        name: dict(entry) for name, entry in manager.task_index.items()
    } == task_index.task_index()
    assert set(manager.all_tasks) == set(load_specs())


@pytest.mark.parametrize("found", ["0.7.2", "0.8.0", "1.0"])
def test_another_harness_version_is_refused_in_one_sentence(
    found: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(harness, "version", lambda _: found)
    assert harness.model_manifests() == []
    assert f"works with lmms-eval >=0.7.3,<0.8, but {found} is installed" in capsys.readouterr().err


def test_a_broken_task_folder_leaves_the_harness_its_own_tasks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lmms_eval.tasks import TaskManager

    def broken() -> None:
        raise OSError("disk on fire")

    monkeypatch.setattr(task_index, "task_index", broken)
    monkeypatch.setattr(TaskManager, "_get_task_and_group", lambda *_: {"mmmu": {"type": "group"}})
    assert TaskManager().all_tasks == ["mmmu"]
    assert "disk on fire" in capsys.readouterr().err


def test_a_taken_name_is_reported_and_stays_with_its_owner(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from lmms_eval.tasks import TaskManager

    theirs = {"mi_cxr": {"type": "task", "yaml_path": "elsewhere/mi_cxr.yaml"}}
    monkeypatch.setattr(TaskManager, "_get_task_and_group", lambda *_: dict(theirs))
    index = TaskManager().task_index
    assert index["mi_cxr"] == theirs["mi_cxr"]
    assert "kvasir_vqa_x1" in index
    assert "mi_cxr is already defined by elsewhere/mi_cxr.yaml" in capsys.readouterr().err


@pytest.mark.slow
def test_files_parsed_in_c_give_the_harness_s_own_index() -> None:
    from lmms_eval.tasks import TaskManager

    index = TaskManager("WARNING").task_index
    plain = vars(TaskManager.initialize_tasks)["__wrapped__"](
        TaskManager("WARNING", include_defaults=False)
    )
    assert {name: index[name] for name in plain} == plain
    assert index.keys() == plain.keys() | task_index.task_index().keys()
