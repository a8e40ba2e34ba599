"""The submission check on what a folder only claims: forged samples, files beside the runs, tasks of nobody here."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from invented_runs import MODELS, write_run_of
from medtasks.leaderboard.intake.check import CheckReport, check_results

NOISY = MODELS[1]
TASK = "med_cmr_mcq_su"
RIGHT = ((1.0, 1.0), (1.0, 1.0))


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run_of(tmp_path_factory.mktemp("clean"), NOISY, ["med_cmr_mcq"], mini=False)


@pytest.fixture
def tree(clean: Path, tmp_path: Path) -> Path:
    """A repository's folder with the one clean run in it."""
    shutil.copytree(clean, tmp_path / "results" / clean.name)
    return tmp_path / "results"


def check(*paths: Path, **options: Any) -> CheckReport:
    """The check of a repository that takes any share of a release: the miniatures claim to be one."""
    return check_results(paths, **{"environment": {}, "coverage": 0.0, **options})


def found(report: CheckReport, code: str) -> list[str]:
    return sorted({one.field or Path(one.file).name for one in report.findings if one.code == code})


# --------------------------------------------------------------------------------------------------- beside the runs


def log(folder: Path, task: str) -> Path:
    path = folder / f"20261101_000000_samples_{task}.jsonl"
    path.write_text('{"doc": {"question": "What?"}}\n', encoding="utf-8")
    return path


def test_the_harnesss_own_files_beside_a_run_are_one_note(tree: Path) -> None:
    log(tree, TASK)
    (tree / "20261101_000000_results.json").write_text('{"config": {}}', encoding="utf-8")
    (tree / "models.yaml").write_text("{}\n", encoding="utf-8")
    report = check(tree)
    assert [(one.code, one.severity) for one in report.findings] == [("LB103", "note")]
    assert "2 files of lmms-eval itself" in report.findings[0].message
    assert not report.failed(strict=True)


def test_a_log_without_a_run_is_refused(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "results" / "alone").mkdir()
    log(tmp_path / "results" / "alone", TASK)
    report = check(tree)
    assert [(one.code, one.severity) for one in report.findings] == [("LB103", "error")]


def test_logs_and_replies_of_withheld_benchmarks_are_refused(tree: Path) -> None:
    log(tree, "mi_cxr_icr")
    unfinished = tree / "0123456789ab_unfinished"
    unfinished.mkdir()
    (unfinished / "run.json").write_text("{}", encoding="utf-8")
    (unfinished / "mi_cxr_icr.rank0.jsonl").write_text("{}\n", encoding="utf-8")
    report = check(tree)
    assert [one.severity for one in report.findings if one.code == "LB304"] == ["error", "error"]
    assert [one.severity for one in report.findings if one.code == "LB103"] == ["note", "note"]
    assert not check(tree, public=False).failed()


@pytest.mark.parametrize("name", ["20261101_000000_results.json", "notes/about.md", ".hidden/settings"])
def test_a_key_in_any_file_beside_a_run_is_found(name: str, tree: Path) -> None:
    path = tree / name
    path.parent.mkdir(exist_ok=True)
    path.write_text('{"model_args": "api_key=sk-abcdefghijklmnop1234"}', encoding="utf-8")
    assert path.name in found(check(tree), "LB301")


def test_what_git_keeps_for_itself_is_left_alone(tree: Path) -> None:
    (tree / ".git").mkdir()
    (tree / ".git" / "config").write_text("sk-abcdefghijklmnop1234", encoding="utf-8")
    assert check(tree).findings == ()


def test_a_link_to_a_run_is_refused(tree: Path, tmp_path: Path) -> None:
    (folder,) = tree.iterdir()
    (tree / "other_medtasks").symlink_to(folder.rename(tmp_path / "elsewhere_medtasks"))
    report = check(tree)
    assert {one.code for one in report.findings} == {"LB101", "LB104"}
    assert found(report, "LB104") == ["other_medtasks"]
