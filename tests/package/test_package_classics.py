"""The package of public benchmarks in ``examples``: a guest like any other."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from medtasks.judge.stub import StubJudge

REPOSITORY = Path(__file__).parent.parent.parent
EXAMPLE = REPOSITORY / "examples" / "medtasks-classics"
MODULE = EXAMPLE / "src" / "medtasks_classics"
PAGE = REPOSITORY / "docs" / "bring-your-benchmark.md"
PIP = ["-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--target"]
TASKS = {path.stem for path in MODULE.glob("tasks/*/**/*.yaml")}


def test_it_imports_nothing_of_medtasks_but_the_api() -> None:
    modules = set()
    for path in MODULE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
            elif isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
    assert {name for name in modules if name.partition(".")[0] == "medtasks"} == {"medtasks.api"}


def test_the_core_knows_none_of_its_names() -> None:
    names = [*TASKS, "medtasks_classics"]
    for folder in ("medtasks", "leaderboard", "adapters", "templates"):
        for path in (REPOSITORY / folder).rglob("*"):
            if path.suffix in (".py", ".yaml", ".j2", ".js"):
                text = path.read_text(encoding="utf-8")
                assert [name for name in names if name in text] == [], path


def test_the_page_shows_files_of_the_package() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for language, file in (
        ("yaml", "tasks/vqa_rad/vqa_rad_closed.yaml"),
        ("jinja", "templates/medtasks_classics/short.j2"),
    ):
        shown = text.split(f"```{language}\n")[1].split("```")[0]
        assert shown == (MODULE / file).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_can_be_followed(tmp_path: Path) -> None:
    """Every command of the page's block, but that pip installs into a directory of the test's
    own.
    """
    block = (
        PAGE.read_text(encoding="utf-8")
        .split("<!-- tutorial commands -->\n```bash\n")[1]
        .split("```")[0]
    )
    script = f"""
        set -euo pipefail
        pip() {{ "$PYTHON" {" ".join(PIP)} "$PYTHONPATH" "{sources(tmp_path)}"; }}
        medtasks() {{ "$PYTHON" -m medtasks "$@"; }}
        python() {{ "$PYTHON" "$@"; }}
        {block}"""
    site = {"PYTHON": sys.executable, "PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, **site},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    assert scores(tmp_path / "results" / "oracle", "vqa_rad")["exact_match"] == 1
    assert scores(tmp_path / "results" / "uniform", "vqa_rad_closed")["exact_match"] < 0.9
    page = (tmp_path / "board" / "benchmark-vqa_rad.html").read_text(encoding="utf-8")
    assert page.index(">oracle<") < page.index(">uniform (seed 0)<")
    assert "LLaVA-Med (from Vicuna)" in page


@pytest.mark.slow
def test_it_is_listed_tested_and_run(python: Any, new_python: Any, tmp_path: Path) -> None:
    built = python(*PIP, str(tmp_path / "site"), sources(tmp_path))
    assert built.returncode == 0, built.stderr
    site = {"PYTHONPATH": str(tmp_path / "site")}

    listed = python("-m", "medtasks", "list", "--json", **site)
    assert listed.stderr == ""
    brought = {
        one["name"] for one in json.loads(listed.stdout) if one["package"] == "medtasks-classics"
    }
    assert brought == TASKS

    tested = new_python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests"), **site
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr

    with StubJudge() as stub:
        judge = f"model=stub-judge,base_url={stub.url}"
        done = python("-c", RUNS, str(tmp_path), *sorted(TASKS), **site, MEDTASKS_JUDGE=judge)
    assert done.returncode == 0, done.stderr[-2000:]
    judged = [
        scores(tmp_path / "oracle", name)["medtasks_classics_judged"]
        for name in TASKS
        if name.endswith("_open")
    ]
    assert judged == [1.0] * 4
    first = {name: next(iter(scores(tmp_path / "oracle", name).values())) for name in TASKS}
    assert set(first.values()) <= {1.0, 100.0}
    guessed = {
        name: scores(tmp_path / "uniform", name)["accuracy"]
        for name in TASKS
        if name.endswith("_circular")
    }
    assert all(0.1 < value < 0.45 for value in guessed.values()), guessed


RUNS = """
import sys
from pathlib import Path
from medtasks.harness import run_tasks

for policy in ("oracle", "uniform"):
    run_tasks("medtasks_baseline", f"policy={policy}", sys.argv[2:], Path(sys.argv[1]) / policy)
"""


def sources(folder: Path) -> str:
    """A copy of the package to build from: setuptools writes beside the sources."""
    target = folder / "source"
    if not target.exists():
        shutil.copytree(EXAMPLE, target)
    return str(target)


def scores(folder: Path, name: str) -> dict[str, float]:
    """The scores of a task or group in the one run below ``folder``, in order."""
    (run,) = folder.rglob("*_medtasks")
    content = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    block = {**content["tasks"], **content["groups"]}[name]["metrics"]
    return {metric: score["value"] for metric, score in block.items()}
