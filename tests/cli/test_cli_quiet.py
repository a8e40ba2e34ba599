"""Commands print their own lines only, and work where the home directory cannot be written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from quiet import noise
from release_rows import write_mini

from medtasks.benchmarks.documents import task_documents
from medtasks.core import cache
from medtasks.harness import run_tasks
from medtasks.judge.stub import MODEL, StubJudge

TASKS = ["med_cmr_mcq_ltg", "med_cmr_open_cr"]
HARNESS = ("-m", "lmms_eval", "--model", "medtasks_baseline", "--tasks", ",".join(TASKS))
CLI = ("-m", "medtasks")


@pytest.fixture
def closed_home(tmp_path: Path) -> dict[str, str]:
    """The environment of a user whose caches cannot be made, which holds for root, too: a file is
    in their place.
    """
    (tmp_path / "home" / ".cache").parent.mkdir()
    (tmp_path / "home" / ".cache").touch()
    (tmp_path / "temporary").mkdir()
    unset = ("MEDTASKS_CACHE", "XDG_CACHE_HOME", "LMMS_EVAL_DATASETS_CACHE")
    caches = {"HF_HOME": "huggingface", "HF_DATASETS_CACHE": "huggingface/datasets"}
    return {
        **dict.fromkeys(unset, ""),
        **{name: str(tmp_path / "home" / ".cache" / folder) for name, folder in caches.items()},
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "temporary"),
    }


@pytest.mark.slow
def test_commands_print_only_their_own_lines(python: Any, tmp_path: Path) -> None:
    """README's and the docs' other commands are checked where their blocks run (`tests/docs`), the
    harness's below.
    """
    write_mini("kvasir_vqa_x1", tmp_path / "source")
    for name in ("oracle", "uniform"):
        run_tasks("medtasks_baseline", f"policy={name}", TASKS, tmp_path / "results" / name)
    with StubJudge() as stub:
        judge = f"model={MODEL},base_url={stub.url},api_key_env=NONE"
        ours = [
            f"judge results/oracle --judge {judge}",
            "leaderboard check results",
            "leaderboard build results --demonstration --out page",
            "export inspect results --out logs",
            "plan med_cmr_mcq_ltg --pilot results/oracle --pilot results/uniform --difference 2",
            *("list", "doctor", "path", "validate med_cmr_mcq", "new acme-x"),
            "prepare kvasir_vqa_x1 --source source --out prepared",
        ]
        for line in ours:
            done = python(*CLI, *line.split())
            assert done.returncode in (0, 1 if "check" in line else 0), (
                done.stderr
            )  # miniature data are refused
            assert done.stdout
            assert noise(done.stdout, done.stderr) == [], line


@pytest.mark.slow
def test_a_home_that_cannot_be_written_stops_nothing(
    python: Any, tmp_path: Path, closed_home: dict[str, str]
) -> None:
    arguments = ["--model_args", "policy=oracle", "--output_path", "results"]
    done = python(*HARNESS, *arguments, **closed_home)
    assert done.returncode == 0, done.stderr[-2000:]
    assert noise(done.stdout, done.stderr) == []
    done = python(*CLI, "score", str(next(tmp_path.glob("results/**/*_medtasks"))), **closed_home)
    assert (done.returncode, done.stderr) == (0, "")


def test_miniature_data_are_made_in_the_users_own_temporary_directory(
    tmp_path: Path, closed_home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in closed_home.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    cache._temporary_cache.cache_clear()
    own = tmp_path / "temporary" / f"medtasks-{os.getuid()}"
    assert cache.writable_cache() == own
    assert own.stat().st_mode & 0o777 == 0o700
    own.chmod(0o777)  # as one that somebody else had made
    cache._temporary_cache.cache_clear()
    assert cache.writable_cache().parent == own.parent
    assert cache.writable_cache() != own
    cache._temporary_cache.cache_clear()
    monkeypatch.setenv("MEDTASKS_CACHE", str(tmp_path / "named"))
    assert cache.writable_cache() == tmp_path / "named"


MODULES = """
import sys
from medtasks.cli.app import main
sys.argv = ["medtasks", *sys.argv[1:]]
try:
    main()
finally:
    print(*sys.modules)
"""


@pytest.mark.slow
def test_score_imports_only_what_it_computes_with(
    medtasks: Any, python: Any, tmp_path: Path
) -> None:
    """Learned metrics are found absent without torch, and METEOR's signature does not need NLTK."""
    rows = [f"{one['sample_id']},a polyp" for one in task_documents("kvasir_vqa_x1_level1")]
    (tmp_path / "p.csv").write_text("\n".join(["sample_id,response", *rows]))
    medtasks("score", "p.csv", "--task", "kvasir_vqa_x1_level1", "--out", "run_medtasks")
    caches = {"MEDTASKS_CACHE": str(tmp_path / "cache"), "HF_HOME": str(tmp_path / "hub")}
    first, again = (
        python("-c", MODULES, "score", "run_medtasks", **caches).stdout for _ in range(2)
    )
    assert "no score has changed" in again
    assert {"torch", "transformers", "bert_score"}.isdisjoint(first.split())
    assert {"torch", "transformers", "nltk"}.isdisjoint(again.split())
