"""The record beside a checkpoint's weights is in the manifest of its runs, and is not the model."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from foreign_backend import Backend

import medtasks
from medtasks.harness.model_facts import described, fingerprint_of, training_facts
from medtasks.runs.training_record import FACT, FILE, read_training_record

TINY = Path(medtasks.__file__).parents[1] / "adapters" / "tiny_vlm"
TASK = "mi_cxr_icr"


def recorded(folder: Path, task: str, *questions: str) -> Path:
    """The folder, with the record of a reward that scored these questions."""
    reward = medtasks.reward(task, benchmark_questions=True)
    reward(completions=["A"] * len(questions), sample_id=[*questions])
    folder.mkdir(exist_ok=True)
    reward.record(folder)
    return folder


def test_the_record_is_no_part_of_the_fingerprint(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    before = fingerprint_of(str(tmp_path))
    recorded(tmp_path, TASK, "icr-33")
    assert fingerprint_of(str(tmp_path)) == before


def test_records_of_checkpoint_and_adapter_are_one(tmp_path: Path) -> None:
    checkpoint = recorded(tmp_path / "model", TASK, "icr-33")
    adapter = recorded(tmp_path / "adapter", TASK, "icr-34")
    facts = training_facts(str(checkpoint), str(adapter))
    (use,) = facts[FACT]["rewards"]
    assert use["questions"] == ["icr-33", "icr-34"]
    assert training_facts(str(tmp_path), "owner/name", None) == {}


def test_other_back_ends_state_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    recorded(tmp_path, TASK, "icr-33")
    facts = described(Backend(lambda _: "A"), f"pretrained={tmp_path}")
    assert facts[FACT]["rewards"][0]["questions"] == ["icr-33"]


@pytest.mark.slow  # runs a model
def test_a_run_of_the_checkpoint_has_the_record(tmp_path: Path) -> None:
    checkpoint = tmp_path / "trained"
    shutil.copytree(TINY, checkpoint)
    recorded(checkpoint, TASK, "icr-33", "icr-34")
    run = medtasks.evaluate(
        "medtasks_vlm",
        TASK,
        model_args={"pretrained": checkpoint, "device": "cpu"},
        output_path=tmp_path / "results",
    )
    assert run.manifest.training == read_training_record(checkpoint)
    assert (checkpoint / FILE).is_file()
    (model,) = medtasks.board(run.path).models.values()
    assert model.trained["mi_cxr"] == "yes"
    assert "2 of the 6 scored samples" in model.trained_on["mi_cxr"]


@pytest.mark.slow  # trains a model
def test_trl_trains_with_a_reward(tmp_path: Path) -> None:
    trl = pytest.importorskip("trl")
    from transformers import AutoModelForImageTextToText, AutoProcessor

    processor = AutoProcessor.from_pretrained(TINY)
    processor.tokenizer.padding_side = "left"
    settings = trl.GRPOConfig(
        str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=2,
        num_generations=2,
        max_completion_length=8,
        use_cpu=True,
        bf16=False,
        report_to=[],
        logging_steps=1,
        save_strategy="no",
    )
    reward = medtasks.reward(TASK, benchmark_questions=True)
    trainer = trl.GRPOTrainer(
        AutoModelForImageTextToText.from_pretrained(TINY),
        reward,
        settings,
        reward.questions(),
        processing_class=processor,
    )
    trainer.train()
    trainer.save_model(str(tmp_path))
    reward.record(tmp_path)
    logged = [line for line in trainer.state.log_history if "reward" in line]
    assert len(logged) == 2
    assert all(f"rewards/{TASK}_accuracy/mean" in line for line in logged)
    assert {line["reward"] for line in logged} <= {0.0, 0.5, 1.0}
    assert len(training_facts(str(tmp_path))[FACT]["rewards"][0]["questions"]) == 6
