"""The package of challenge files in ``examples``: a guest like any other."""

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

REPOSITORY = Path(__file__).parent.parent.parent
EXAMPLE = REPOSITORY / "examples" / "medtasks-challenges"
MODULE = EXAMPLE / "src" / "medtasks_challenges"
PIP = ["-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--target"]
TASKS = {path.stem for path in MODULE.glob("tasks/*/**/*.yaml")}


def test_it_imports_results_in_python_and_the_api_alone() -> None:
    modules = set()
    for path in MODULE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                modules.add(node.module or "")
            elif isinstance(node, ast.Import):
                modules |= {name.name for name in node.names}
    ours = {name for name in modules if name.partition(".")[0] == "medtasks"}
    assert ours == {"medtasks", "medtasks.api"}


def test_the_core_knows_none_of_its_names() -> None:
    names = [*TASKS, "medtasks_challenges"]
    for folder in ("medtasks", "leaderboard", "adapters", "templates"):
        for path in (REPOSITORY / folder).rglob("*"):
            if path.suffix in (".py", ".yaml", ".j2", ".js"):
                text = path.read_text(encoding="utf-8")
                assert [name for name in names if name in text] == [], path


@pytest.mark.slow
def test_its_own_tests_pass(site: dict[str, str], new_python: Any) -> None:
    tested = new_python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests"), **site
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.slow
def test_its_tasks_are_valid_and_a_run_of_a_back_end_becomes_a_submission(
    site: dict[str, str], python: Any, tmp_path: Path
) -> None:
    validated = python("-m", "medtasks", "validate", *sorted(TASKS), "--strict", **site)
    assert validated.returncode == 0, validated.stdout + validated.stderr

    done = python("-c", RUN, str(tmp_path / "results"), **site)
    assert done.returncode == 0, done.stderr[-2000:]
    out = tmp_path / "submission.zip"
    module = ("-m", "medtasks_challenges.cli")
    written = python(*module, "medreason", str(tmp_path / "results"), "-o", str(out), **site)
    assert written.stdout.startswith(f"wrote {out}: 48 rows\n"), written.stderr
    truth = tmp_path / "ground_truth.json"
    truth.write_text(json.dumps(TRUTH), encoding="utf-8")
    arguments = ("score", "medreason", str(out), "--ground-truth", str(truth))
    scored = python(*module, *arguments, **site)
    assert scored.stdout.startswith("MCQ Accuracy (24 cases): 1.0000\n"), scored.stderr


RUN = """
import sys
from pathlib import Path
from medtasks.harness import run_tasks
run_tasks("medtasks_baseline", "policy=oracle", ["medreason_2026"], Path(sys.argv[1]))
"""


def _truth() -> list[dict[str, str]]:
    """The correct options of the miniature cases, which the oracle gives."""
    cases = []
    for number in range(24):
        texts = ("bright", "dark", "coloured")
        shade = "bright" if number >= 12 else "dark"
        label = "ABC"[(texts.index(shade) - number) % 3]
        cases.append({"case_id": f"mcq{number:02}", "task_type": "mcq", "answer": label})
        cases.append({"case_id": f"open{number:02}", "task_type": "open"})
    return cases


TRUTH = {"cases": _truth()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the package is installed into."""
    folder = tmp_path_factory.mktemp("challenges")
    shutil.copytree(EXAMPLE, folder / "source")  # setuptools writes beside the sources
    command = [sys.executable, *PIP, str(folder / "site"), str(folder / "source")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def site(built: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has the package, and a cache of its own."""
    inherited = os.environ.get("PYTHONPATH", "")
    path = os.pathsep.join(filter(None, (str(built), inherited)))
    cache = str(tmp_path / "cache")
    return {"PYTHONPATH": path, "MEDTASKS_DATA": "mini", "MEDTASKS_CACHE": cache}
