"""Another lab's package that is broken, clashes, or is not prepared yet: said in a sentence, and all else works."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from other_lab import write_package

CLI = ["-m", "medtasks"]
Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path) -> Install:
    """Build a wheel of the package and install it into a folder of its own; that folder."""

    def install(**changes: str) -> Path:
        source = write_package(tmp_path / "source", **changes)
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation"]
        subprocess.run([*pip, "--target", str(tmp_path / "site"), str(source)], check=True, capture_output=True)
        return tmp_path / "site"

    return install


def listed(python: Any, **environment: str) -> tuple[dict[str, Any], str]:
    done = python(*CLI, "list", "--json", **environment)
    assert done.returncode == 0, done.stderr
    return {entry["name"]: entry for entry in json.loads(done.stdout)}, done.stderr


def test_a_directory_named_like_its_module_is_named(python: Any, tmp_path: Path) -> None:
    metadata = tmp_path / "site" / "hidden_bench-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hidden-bench\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[medtasks.tasks]\nhidden = hidden_bench\n")
    (tmp_path / "site" / "hidden_bench").mkdir()
    _, complaints = listed(python, PYTHONPATH=str(tmp_path / "site"))
    assert f"hidden-bench 1.0 is left out: {tmp_path / 'site' / 'hidden_bench'} has no __init__.py" in complaints
    assert "start in another directory" in complaints


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"pyproject_toml": "broken"}, ""),
        (
            {"otherlab_bench___init___py": "raise RuntimeError('not today')"},
            "RuntimeError: not today",
        ),
        ({"otherlab_bench___init___py": "PLUGIN = 3"}, "otherlab_bench.PLUGIN is a int, expected medtasks.api.Plugin"),
    ],
)
def test_a_broken_one_leaves_everything_else_working(
    install: Install, python: Any, changes: dict[str, str], sentence: str
) -> None:
    if not sentence:
        changes = {
            "pyproject_toml": """
                [project]
                name = "otherlab-bench"
                version = "2.1"
                [project.entry-points."medtasks.tasks"]
                otherlab = "no_such_module"
                [tool.setuptools]
                packages = ["otherlab_bench"]
                """
        }
        sentence = "its module no_such_module does not exist"
    site = {"PYTHONPATH": str(install(**changes))}
    done = python(*CLI, "show", "mi_cxr_tel_single", **site)
    assert done.returncode == 0, done.stderr
    done = python(*CLI, "show", "otherlab_dots", **site)
    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_rubric_that_cannot_be_read_is_left_out(install: Install, python: Any) -> None:
    site = {"PYTHONPATH": str(install(otherlab_bench_rubrics_otherlab_bench_count_yaml="name: [\n"))}
    code = "from medtasks.metrics.registry import get_metric; print(get_metric('open_total').signature)"
    done = python("-c", code, **site)
    assert "open_total|" in done.stdout
    assert "rubric otherlab_bench_count of otherlab-bench 2.1 is left out: " in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["task: [", "task: otherlab_dots\nmetric_list: [1]\n", "x: !!int \n", "include: otherlab_dots.yaml"]
)
def test_a_task_file_that_cannot_be_read_is_left_out(install: Install, python: Any, text: str) -> None:
    site = {"PYTHONPATH": str(install(otherlab_bench_tasks_dots_otherlab_dots_yaml=text + "\n"))}
    tasks, said = listed(python, **site)
    assert "otherlab_dots" not in tasks
    assert len(tasks) > 50
    assert "left out: " in said
    assert len(said.strip().splitlines()) < 6
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_name_that_is_taken_is_one_sentence_with_both_owners(install: Install, python: Any) -> None:
    site = install()
    taken = site / "otherlab_bench" / "tasks" / "dots" / "mi_cxr_tel_single.yaml"
    taken.write_text("task: mi_cxr_tel_single\n")
    tasks, said = listed(python, PYTHONPATH=str(site))
    assert "otherlab-bench 2.1 is left out: its task mi_cxr_tel_single is already defined by medtasks" in said
    assert "otherlab_dots" not in tasks
    assert tasks["mi_cxr_tel_single"]["package"] == "medtasks"


@pytest.mark.slow
def test_its_data_are_prepared_as_ours_are(install: Install, python: Any, tmp_path: Path) -> None:
    site = {"PYTHONPATH": str(install()), "MEDTASKS_DATA": str(tmp_path / "data")}
    missing = python(*CLI, "show", "otherlab_dots", **site)
    assert "otherlab_dots is not prepared" in missing.stderr
    assert "medtasks prepare package otherlab_dots" in missing.stderr
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = python(*CLI, "prepare", "package", "otherlab_dots", "--source", str(empty), **site)
    assert refused.returncode == 1
    assert "6 of the pictures cannot be used" in refused.stderr


def test_an_overlay_changes_the_prompt_and_its_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from medtasks.catalog.prompts import overlay_diff, render, template_hash
    from medtasks.core.errors import UsageError

    before = template_hash("kvasir_vqa_x1/answer.j2")
    (tmp_path / "kvasir_vqa_x1").mkdir()
    (tmp_path / "kvasir_vqa_x1" / "answer.j2").write_text("Verbatim: {{ question }}")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    assert render("kvasir_vqa_x1/answer.j2", question="Where?") == "Verbatim: Where?"
    assert template_hash("kvasir_vqa_x1/answer.j2") != before
    assert "+Verbatim: {{ question }}\n" in overlay_diff("kvasir_vqa_x1/answer.j2")
    assert overlay_diff("mi_cxr/mcq.j2") == ""
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match="expected a directory of templates"):
        render("kvasir_vqa_x1/answer.j2", question="Where?")
