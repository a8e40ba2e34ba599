"""The package of clinical metrics in ``examples``: a guest like any other.

``.ci/run`` installs RadEval before it runs these tests again; without it, the metrics say that it
is missing.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from medtasks.judge.stub import StubJudge

REPOSITORY = Path(__file__).parent.parent.parent
EXAMPLE = REPOSITORY / "examples" / "medtasks-radiology"
MODULE = EXAMPLE / "src" / "medtasks_radiology"
PIP = ["-m", "pip", "install", "-q", "--no-deps", "--no-index", "--no-build-isolation", "--target"]
TASK = "mi_cxr_report"
HAS_RADEVAL = importlib.util.find_spec("radeval") is not None
PREFIX = "medtasks_radiology"


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
    for folder in ("medtasks", "leaderboard", "adapters", "templates"):
        for path in (REPOSITORY / folder).rglob("*"):
            if path.suffix in (".py", ".yaml", ".j2", ".js"):
                assert PREFIX not in path.read_text(encoding="utf-8"), path


@pytest.mark.slow
def test_its_own_tests_pass(site: dict[str, str], new_python: Any) -> None:
    tested = new_python(
        "-m", "pytest", "-q", "-p", "no:cacheprovider", str(EXAMPLE / "tests"), **site
    )
    assert tested.returncode == 0, tested.stdout + tested.stderr


@pytest.mark.slow
def test_without_weights_nothing_is_computed_and_nothing_is_0(
    site: dict[str, str], python: Any, tmp_path: Path
) -> None:
    metrics = run_report(python, tmp_path / "run", "oracle", site)
    added = {name: score for name, score in metrics.items() if name.startswith(PREFIX)}
    assert len(added) == 10
    for name, score in added.items():
        assert score["value"] is None, name
        expected = "checkpoint|not on this machine|not installed|models are not in|numpy"
        assert any(part in score["reason"] for part in expected.split("|")), score["reason"]
    assert metrics["rougeL"]["value"] == 1


@pytest.mark.slow
@pytest.mark.skipif(not HAS_RADEVAL, reason="radeval is not installed; .ci/run installs it")
def test_a_tiny_checkpoint_scores_a_run_that_is_judged_compared_and_ranked(
    site: dict[str, str], python: Any, tmp_path: Path
) -> None:
    made = python("-c", CHECKPOINT, str(EXAMPLE / "tests"), str(tmp_path / "chexbert"), **site)
    assert made.returncode == 0, made.stderr
    named = {**site, "MEDTASKS_RADIOLOGY_CHEXBERT": str(tmp_path / "chexbert")}
    results = tmp_path / "results"
    name = f"{PREFIX}_chexbert_micro14"
    for policy in ("oracle", "uniform"):
        score = run_report(python, results / policy, policy, named)[name]
        assert score["interval"][0] <= score["value"] <= score["interval"][1]
        assert (score["value"] == 1) == (policy == "oracle")
        model, *rest = score["signature"].split("|")[1:]
        assert len(model.removeprefix("model:")) == 16  # the fingerprint of the directory
        assert any(part.startswith("radeval:") for part in rest)

    compared = python(
        "-m",
        "medtasks",
        "compare",
        str(results / "oracle"),
        str(results / "uniform"),
        "--json",
        **named,
    )
    assert compared.returncode == 0, compared.stderr
    pairs = {line["metric"]: line["pair"] for line in json.loads(compared.stdout)["lines"]}
    assert pairs[name]["difference"] > 0
    assert 0 < pairs[name]["p_value"] <= 1

    with StubJudge() as stub:
        judged = python(
            "-m",
            "medtasks",
            "judge",
            str(results / "oracle"),
            "--rubric",
            f"{PREFIX}_errors",
            "--judge",
            f"model=stub-judge,base_url={stub.url}",
            **named,
        )
    assert judged.returncode == 0, judged.stderr
    assert scores(results / "oracle")[f"{PREFIX}_errors_avoided"]["value"] == 100

    board = tmp_path / "board"
    built = python(
        "-m",
        "medtasks",
        "leaderboard",
        "build",
        str(results),
        "--demonstration",
        "--out",
        str(board),
        **named,
    )
    assert built.returncode == 0, built.stderr
    page = (board / "benchmark-mi_cxr.html").read_text(encoding="utf-8")
    assert "CheXbert micro F1, 14" in page


CHECKPOINT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import tiny_checkpoints
tiny_checkpoints.tiny_chexbert(Path(sys.argv[2]))
"""

RUN = """
import sys
from pathlib import Path
from medtasks.harness import run_tasks
run_tasks("medtasks_baseline", f"policy={sys.argv[2]}", ["mi_cxr_report"], Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the package is installed into."""
    import subprocess

    folder = tmp_path_factory.mktemp("radiology")
    shutil.copytree(EXAMPLE, folder / "source")  # setuptools writes beside the sources
    command = [sys.executable, *PIP, str(folder / "site"), str(folder / "source")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "site"


@pytest.fixture
def site(built: Path, tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has the package, a cache of its own and no checkpoints."""
    absent = {name: "" for name in os.environ if name.startswith("MEDTASKS_RADIOLOGY")}
    cache = {"MEDTASKS_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    stanza = {"STANZA_RESOURCES_DIR": str(tmp_path / "stanza")}
    return {"PYTHONPATH": str(built), "MEDTASKS_DATA": "mini", **absent, **cache, **stanza}


def run_report(
    python: Any, folder: Path, policy: str, environment: dict[str, str]
) -> dict[str, dict[str, Any]]:
    """The scores of a run of a baseline, by metric."""
    done = python("-c", RUN, str(folder), policy, **environment)
    assert done.returncode == 0, done.stderr[-2000:]
    return scores(folder)


def scores(folder: Path) -> dict[str, dict[str, Any]]:
    """The scores of the one run below ``folder``, by metric."""
    (run,) = folder.rglob("*_medtasks")
    content = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    metrics: dict[str, dict[str, Any]] = content["tasks"][TASK]["metrics"]
    return metrics
