"""The submission check on what a folder only claims: forged samples, files beside the runs, tasks of nobody here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from invented_runs import MODELS, write_run_of, write_runs
from medtasks.leaderboard.intake.check import CheckReport, check_results
from medtasks.leaderboard.intake.remove_rows import remove_rows
from medtasks.leaderboard.verify.scored_run import scored_run

from medtasks.runs.folder import read_run, write_run
from medtasks.runs.record import RunRecord
from medtasks.runs.samples import JudgedScore, Repeat, Sample

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


def forged(folder: Path, out: Path, forge: Callable[[Sample], Sample]) -> Path:
    """The run with changed samples, and with the scores and statuses that these give: it agrees with itself."""
    manifest, samples = read_run(folder)
    changed = {task: [forge(one) for one in members] for task, members in samples.items()}
    return write_run(out / folder.name, RunRecord.scored(manifest, changed))


# ---------------------------------------------------------------------------------------------------- forged samples


def verdicts_of_nobody(sample: Sample) -> Sample:
    return sample.model_copy(update={"judged": {"accuracy": JudgedScore(rubric="x", judge=None, limits=RIGHT)}})


def repeats_of_nobody(sample: Sample) -> Sample:
    again = Repeat(filtered=sample.target, status="ok", statistics={"accuracy": (1.0, 1.0)})
    return sample.model_copy(update={"repeats": (again, again)})


def pending(sample: Sample) -> Sample:
    return sample.model_copy(update={"pending": ("accuracy",)})


def other_score(sample: Sample) -> Sample:
    return sample.model_copy(update={"scores": {**sample.scores, "accuracy": 0.5}})


def scores(folder: Path) -> dict[str, Any]:
    return {name: entry.scores for name, entry in scored_run(folder).entries.items()}


@pytest.mark.parametrize("forge", [other_score, verdicts_of_nobody, repeats_of_nobody, pending])
def test_what_scoring_would_take_before_the_statistics_is_made_again(
    forge: Callable[[Sample], Sample], clean: Path, tmp_path: Path
) -> None:
    folder = forged(clean, tmp_path, forge)
    assert check(folder).findings == ()
    assert scores(folder) == scores(clean)


def test_verdicts_that_were_given_are_no_forgery(tmp_path: Path) -> None:
    (folder,) = write_runs(tmp_path, [NOISY], ["med_cmr_open", "kvasir_vqa_x1_level3"]).values()
    assert check(folder, demonstration=True).findings == ()
    changed = forged(folder, tmp_path, lambda one: one.model_copy(update={"judged": {
        name: score.model_copy(update={"limits": RIGHT}) for name, score in one.judged.items()
    }}))  # fmt: skip
    assert scores(changed) == scores(folder)


def right(sample: Sample) -> Sample:
    return sample.model_copy(
        update={"scores": {"accuracy": 1.0}, "statistics": {"accuracy": (1.0, 1.0)}} if sample.task == TASK else {}
    )


def test_a_task_of_nobody_does_not_switch_rescoring_off(clean: Path, tmp_path: Path) -> None:
    folder = forged(clean, tmp_path, right)
    add_strangers(folder)
    report = check(folder)
    assert {one.code for one in report.findings} == {"LB207"}
    assert scores(folder) == scores(clean)


def test_a_stripped_task_does_not_switch_rescoring_off(tmp_path: Path) -> None:
    folder = write_run_of(tmp_path / "whole", NOISY, [TASK, "mi_cxr_icr"], mini=False)
    stripped = remove_rows(folder, tmp_path / "stripped" / folder.name)
    assert not check(stripped).failed(strict=True)
    assert scores(forged(stripped, tmp_path, right)) == scores(folder)


def add_strangers(folder: Path) -> None:
    """A task of a package that is not installed here, with its samples, its data and its scores."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    manifest["tasks"]["nobodys_task"] = {**manifest["tasks"][TASK], "benchmark": "nobodys"}
    manifest["data"]["nobodys"] = manifest["data"]["med_cmr"]
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))
    scores["tasks"]["nobodys_task"] = scores["tasks"][TASK]
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    text = (folder / "samples" / f"{TASK}.jsonl").read_text(encoding="utf-8")
    (folder / "samples" / "nobodys_task.jsonl").write_text(text.replace(TASK, "nobodys_task"), encoding="utf-8")


def test_a_task_of_nobody_is_a_warning_alone(tree: Path) -> None:
    (folder,) = tree.iterdir()
    add_strangers(folder)
    report = check(tree)
    assert [(one.code, one.severity, one.where) for one in report.findings] == [("LB207", "warning", "nobodys_task")]


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
