"""Confidences through the real harness: from baselines, from a model, and from back-ends without probabilities."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from foreign_backend import Backend, evaluate
from runs import Run, baseline

from medtasks import harness
from medtasks.metrics.confidence import CONFIDENCE_NAMES

TASK = "mi_cxr_tel_multiple"


@pytest.mark.parametrize("task", [TASK, pytest.param("medstreambench_retrospective", marks=pytest.mark.slow)])
def test_a_baseline_states_its_confidence_in_both_ways(
    tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = baseline("calibrated,seed=1", [task, f"{task}_verbalised"], tmp_path)
    assert capsys.readouterr().out.count("  ece 0.") == 2  # in the summary
    recorded, spoken = (run.scores[name]["metrics"] for name in (task, f"{task}_verbalised"))
    scored = set(CONFIDENCE_NAMES) - {"confidence_given"}  # open answers await a judge, and have no verbalised form
    assert {name: recorded[name] for name in scored} == {name: spoken[name] for name in scored}
    assert spoken["confidence_given"]["value"] == 1.0
    assert 0 < recorded["ece"]["value"] < 1
    bins = run.scores[task]["reliability"]["bins"]
    assert sum(one["answers"] for one in bins) == run.scores[f"{task}_verbalised"]["items"]


def test_a_back_end_without_probabilities_has_no_columns(tmp_path: Path) -> None:
    run = evaluate(Backend(lambda document: document["target"]), [TASK], tmp_path)
    assert not set(CONFIDENCE_NAMES) & run.scores[TASK]["metrics"].keys()
    assert "reliability" not in run.scores[TASK]
    assert not any("probabilities" in one for one in run.samples(TASK))


@pytest.mark.slow
def test_a_model_s_probabilities_do_not_depend_on_batches(tmp_path: Path) -> None:
    """The trained tiny model names letters, so each sample has the options' probabilities."""
    made = {}
    for size in (1, 4):
        arguments = f"pretrained=tiny,device=cpu,max_new_tokens=4,batch_size={size}"
        made[size] = Run(harness.run_tasks("medtasks_vlm", arguments, [TASK], tmp_path / str(size)))
    assert made[1].files() == made[4].files()
    for sample in made[4].samples(TASK):
        (found,) = sample["probabilities"]
        assert 0 <= found["answer"] <= 1
        if sample["status"] == "ok":
            (letter,) = [one for one in found["letters"] if one["letter"] == sample["filtered"]]
            assert set(letter["options"]) == set("ABCDE")
            assert abs(sum(letter["options"].values()) - 1) <= 0.03
            assert max(letter["options"].values()) == letter["options"][sample["filtered"]]  # greedy
    scores = made[4].scores[TASK]
    assert scores["metrics"]["ece"]["samples"] == sum(one["status"] == "ok" for one in made[4].samples(TASK)) > 0
    assert json.loads(json.dumps(scores["reliability"]))["bins"]
