"""Tasks with rotated options through the real harness, with and without our hook."""

from __future__ import annotations

from pathlib import Path

import pytest
from foreign_backend import Backend, evaluate
from lmms_eval.utils import load_yaml_config
from runs import Run, random_vlm

from medtasks import harness
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import load_spec, load_specs

TASK = "mi_cxr_icr_circular"


def test_the_harness_alone_asks_every_rotation() -> None:
    """`--include_path` without our entry point: nothing but the task file tells the harness what to ask."""
    config = load_yaml_config(yaml_path=str(load_spec(TASK).path), mode="full")
    assert config["process_docs"](None)["sample_id"] == [one["sample_id"] for one in task_documents(TASK)]


def test_no_other_group_has_rotated_tasks() -> None:
    for name, spec in load_specs().items():
        assert name.endswith("_circular") or not [one for one in spec.members if one.endswith("_circular")]


def test_a_failed_rotation_is_named_and_its_question_not_scored(tmp_path: Path) -> None:
    documents = task_documents(TASK)
    lost = documents[7]["sample_id"]
    backend = Backend(lambda document: None if document["sample_id"] == lost else document["target"])
    run = evaluate(backend, [TASK], tmp_path)
    scores = run.scores[TASK]["metrics"]
    for metric in ("accuracy", "circular_accuracy", "rotation_consistency"):
        assert (scores[metric]["value"], scores[metric]["answered"]) == (1.0, len(documents) // 5 - 1)
    assert run.manifest["tasks"][TASK]["failed"] == {"the back-end returned nothing": 1}
    samples = {one["sample_id"]: one for one in run.samples(TASK)}
    assert {(one["document"]["rotation_of"], one["document"]["rotation"]) for one in samples.values()} == {
        (one["rotation_of"], one["rotation"]) for one in documents
    }
    assert samples[lost]["status"] == "failed"


@pytest.mark.slow
def test_the_rotations_of_a_question_share_its_media(tmp_path: Path) -> None:
    vlm = random_vlm(max_new_tokens=8)
    plain, rotated = (
        Run(harness.run_tasks("medtasks_vlm", vlm, [task], tmp_path / task, batch_size=4)).manifest["usage"]["counters"]
        for task in ("mi_cxr_icr", TASK)
    )
    assert rotated["media_encoded"] == plain["media_encoded"]
    assert rotated["prompt_tokens_reused"] > rotated["prompt_tokens_computed"]
