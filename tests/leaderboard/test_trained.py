"""A model whose checkpoint records what it was trained on is marked wherever its scores are."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from invented_runs import MODELS, edit_json, write_run_of
from medtasks.leaderboard.intake.check import check_results
from medtasks.leaderboard.publish import write_site
from medtasks.leaderboard.verify.training import training_notes

import medtasks
from medtasks.core.errors import DataError
from medtasks.runs.training_record import FACT, RewardUse, TrainingRecord

TASK = "mi_cxr_icr"
NAME = "invented/Careful-7B"


def reward_use(**changes: Any) -> dict[str, Any]:
    use = {"task": TASK, "benchmark": "mi_cxr", "metric": "accuracy"}
    return {**use, "questions": ["icr-33", "icr-34"], **changes}


def trained_run(root: Path, *uses: dict[str, Any]) -> Path:
    """A run of a model whose checkpoint has a training record."""
    folder = write_run_of(root, MODELS[1], [TASK])
    record = {"format": 1, "medtasks": "1.0", "rewards": uses}
    edit_json(folder / "manifest.json", lambda it: it["model"].update({FACT: record}))
    return folder


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> medtasks.ExportableBoard:
    root = tmp_path_factory.mktemp("runs")
    folders = [trained_run(root, reward_use()), write_run_of(root, MODELS[0], [TASK])]
    return medtasks.board(folders)


SENTENCE = f"trained with the reward accuracy of {TASK} on 2 of the 6 scored samples of {TASK}"


def test_the_models_and_runs_state_it(board: medtasks.ExportableBoard) -> None:
    models = {model.name: model for model in board.models.values()}
    assert models[NAME].trained == {"mi_cxr": "yes"}
    assert models[NAME].trained_on == {"mi_cxr": SENTENCE}
    assert models[MODELS[0].name].trained == {"mi_cxr": "unknown"}
    notes = {run.model: run.notes for run in board.runs.values()}
    assert f"mi_cxr: {SENTENCE}" in notes[models[NAME].slug]
    # the ids themselves are nowhere
    assert "icr-34" not in board.model_dump_json(include={"models", "runs"})


def test_tables_and_exports_state_it(board: medtasks.ExportableBoard) -> None:
    from medtasks.leaderboard.exports.csv_scores import as_csv

    note = f"{NAME}: {SENTENCE}."
    (page,) = board.benchmarks
    assert note in page.tables[0].note
    assert note.replace("_", r"\_") in board.latex("mi_cxr")
    assert note in board._repr_markdown_().replace("\\", "")
    assert SENTENCE in board.methods("mi_cxr").replace("\\", "")
    lines = csv.DictReader(io.StringIO(as_csv(board, page)))
    trained = {line["name"]: line["trained"] for line in lines if not line["published"]}
    assert trained == {NAME: "yes", MODELS[0].name: "unknown"}


def test_pages_state_it(board: medtasks.ExportableBoard, tmp_path: Path) -> None:
    write_site(board, tmp_path)
    for name in ("benchmark-mi_cxr.html", "protocol.html"):
        assert SENTENCE in (tmp_path / name).read_text(encoding="utf-8")
    slugs = [slug for slug, model in board.models.items() if model.name == NAME]
    page = (tmp_path / f"model-{slugs[0]}.html").read_text(encoding="utf-8")
    assert f"mi_cxr: {SENTENCE}." in page


def test_the_record_changes_neither_the_model_nor_a_later_mark(tmp_path: Path) -> None:
    trained = trained_run(tmp_path / "a", reward_use())
    without = write_run_of(tmp_path / "b", MODELS[1], [TASK])
    edit_json(without / "manifest.json", lambda it: it.update(created="2026-11-02T00:00:00+00:00"))
    (model,) = medtasks.board([trained, without]).models.values()
    assert (model.trained["mi_cxr"], model.trained_on["mi_cxr"]) == ("yes", SENTENCE)


def test_the_check_of_a_submission_reports_it(tmp_path: Path) -> None:
    folder = trained_run(tmp_path, reward_use(), reward_use(task="pond_vqa", benchmark="pond"))
    report = check_results([folder], environment={}, rescore=False)
    (finding,) = [finding for finding in report.findings if finding.code == "LB216"]
    assert (finding.severity, finding.where) == ("warning", "mi_cxr")
    assert SENTENCE in finding.message


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"questions": ["train-1"]}, "on questions that this run does not have"),
        (
            {"questions": [], "other_rows": True},
            "on rows from elsewhere, which were not compared with the questions",
        ),
    ],
)
def test_training_on_other_data_is_told_apart(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    (run,) = medtasks.open(trained_run(tmp_path, reward_use(**changes)))
    assert run.scored.public.trained_on == {
        "mi_cxr": f"trained with the reward accuracy of {TASK} {sentence}"
    }


@pytest.mark.parametrize("question", ["icr-33", "icr-33~0", "icr-33~p2"])
def test_variants_of_a_task_ask_the_same_questions(question: str) -> None:
    task = "mi_cxr_icr_circular"
    facts = SimpleNamespace(benchmark="mi_cxr")
    record = TrainingRecord(
        medtasks="1.0", rewards=(RewardUse(**reward_use(questions=[question])),)
    )
    manifest: Any = SimpleNamespace(training=record, tasks={task: facts})
    samples = {task: frozenset({"icr-33~0", "icr-33~1", "icr-34~0", "icr-34~1"})}
    (sentence,) = training_notes(manifest, samples).values()
    assert sentence.endswith(f" on 2 of the 4 scored samples of {task}")


def test_another_benchmark_is_marked_as_well(tmp_path: Path) -> None:
    use = reward_use(task="pond_vqa", benchmark="pond", metric="exact_match")
    (model,) = medtasks.board(trained_run(tmp_path, use)).models.values()
    assert model.trained == {"mi_cxr": "unknown", "pond": "yes"}


def test_a_forged_record_is_refused_in_one_sentence(tmp_path: Path) -> None:
    folder = trained_run(tmp_path, {"task": TASK})
    with pytest.raises(DataError, match=rf"`{FACT}`: field `rewards\[0\].benchmark` is missing"):
        medtasks.open(folder)[0].manifest  # noqa: B018
