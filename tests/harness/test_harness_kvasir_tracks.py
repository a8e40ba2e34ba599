"""Kvasir-VQA-x1's robustness report and the Medico 2025 subset, through the real harness."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from runs import Run

from medtasks.benchmarks.documents import task_documents
from medtasks.benchmarks.kvasir_vqa_x1 import medico_subset
from medtasks.core.errors import DataError
from medtasks.harness import run_tasks

pytestmark = pytest.mark.slow

VLM = "pretrained=tiny,device=cpu,max_new_tokens=8"


def test_robustness_is_original_minus_transformed_question_by_question(tmp_path: Path) -> None:
    tasks = ["kvasir_vqa_x1", "kvasir_vqa_x1_transformed"]
    both = Run(run_tasks("medtasks_vlm", VLM, tasks, tmp_path, batch_size=4))
    paired = json.loads((both.folder / "scores.json").read_text(encoding="utf-8"))["comparisons"][
        "kvasir_vqa_x1"
    ]
    originals, others = (
        {
            line["sample_id"]: line
            for level in (1, 2, 3)
            for line in both.samples(f"{name}_level{level}")
        }
        for name in tasks
    )
    expected = np.mean(
        [
            originals[name]["scores"]["rougeL"] - others[name]["scores"]["rougeL"]
            for name in originals
        ]
    )

    assert (paired["first"], paired["second"]) == ("kvasir_vqa_x1", "kvasir_vqa_x1_transformed")
    assert (paired["items"], paired["unpaired"]) == (79, 0)
    assert paired["metrics"]["rougeL"]["difference"] == pytest.approx(expected, abs=1e-12)
    assert set(paired["breakdowns"]) == {"complexity", "question_class"}
    assert set(paired["breakdowns"]["complexity"]) == {"level1", "level2", "level3"}
    assert {"bleu", "chrf", "rouge1"} <= set(paired["metrics"])
    low, high = paired["metrics"]["chrf"]["interval"]
    assert low <= paired["metrics"]["chrf"]["difference"] <= high


def test_the_medico_order_is_that_of_a_shuffled_dataset() -> None:
    from datasets import Dataset

    rows = [{"number": number} for number in range(4000)]
    shuffled = Dataset.from_list(rows).shuffle(seed=42).select(range(1500))["number"]
    assert [one["number"] for one in medico_subset(rows)] == list(shuffled)


def test_the_subset_of_incomplete_data_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from release_rows import write_mini

    from medtasks.benchmarks.kvasir_vqa_x1.prepare import prepare_kvasir

    write_mini("kvasir_vqa_x1", tmp_path / "source")
    (tmp_path / "source" / "images" / "mini0002.jpg").unlink()
    prepare_kvasir(
        str(tmp_path / "source"), tmp_path / "data" / "kvasir_vqa_x1", allow_missing_media=True
    )
    monkeypatch.setenv("MEDTASKS_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError, match="rows of the split were left out"):
        task_documents("kvasir_vqa_x1_medico2025")


def test_medico_2026_is_the_task_of_2025(tmp_path: Path) -> None:
    run = Run(
        run_tasks(
            "medtasks_baseline",
            "policy=noisy_oracle,seed=4",
            ["kvasir_vqa_x1_medico2026"],
            tmp_path,
        )
    )
    alias, task = run.scores["kvasir_vqa_x1_medico2026"], run.scores["kvasir_vqa_x1_medico2025"]
    assert task["metrics"].keys() == {"bleu", "rouge1", "rouge2", "rougeL", "meteor"}
    assert alias["metrics"] == task["metrics"]
    assert len(run.samples("kvasir_vqa_x1_medico2025")) == 79
