"""Tasks with several prompts or rotated options, through the real harness: all are asked, and media are shared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foreign_backend import Backend, evaluate
from lmms_eval.utils import load_yaml_config
from runs import vlm

from medtasks.benchmarks.documents import prompt_text, task_documents
from medtasks.catalog.spec import load_spec, load_specs

TASK, ROTATED = "mi_cxr_icr_prompts", "mi_cxr_icr_circular"


def only_under_the_second(document: dict[str, Any]) -> str:
    return str(document["target"]) if document["prompt"] == 2 else "I cannot tell."


def test_the_harness_alone_asks_with_every_template() -> None:
    """`--include_path` without our entry point: nothing but the task file tells the harness what to ask."""
    config = load_yaml_config(yaml_path=str(load_spec(TASK).path), mode="full")
    documents = config["process_docs"](None)
    assert documents["sample_id"] == [one["sample_id"] for one in task_documents(TASK)]
    texts = [config["doc_to_text"](one, config["lmms_eval_specific_kwargs"]) for one in documents.select(range(4))]
    assert len(set(texts)) == 4


@pytest.mark.parametrize("end", ["_prompts", "_circular"])
def test_no_other_group_has_such_tasks(end: str) -> None:
    for name, spec in load_specs().items():
        assert name.endswith(end) or not [one for one in spec.members if one.endswith(end)]


def test_a_policy_that_is_right_under_one_prompt_is_scored_and_its_prompts_are_kept(tmp_path: Path) -> None:
    run = evaluate(Backend(only_under_the_second), [TASK], tmp_path)
    metrics = {name: score["value"] for name, score in run.scores[TASK]["metrics"].items()}
    assert metrics == {
        "accuracy": 0.25,
        "worst_prompt": 0.0,
        "best_prompt": 1.0,
        "prompt_spread": pytest.approx(0.5),
        "prompt_agreement": 0.0,
        **{f"prompt_{number}": float(number == 2) for number in range(1, 5)},
    }
    assert run.manifest["tasks"][TASK]["prompt_hash"] == load_spec(TASK).prompt_hash
    for sample, document in zip(run.samples(TASK), task_documents(TASK), strict=True):
        assert sample["prompt"] == prompt_text(document, "a template that does not exist")


def test_a_failed_rotation_is_named_and_its_question_not_scored(tmp_path: Path) -> None:
    documents = task_documents(ROTATED)
    lost = documents[7]["sample_id"]
    backend = Backend(lambda document: None if document["sample_id"] == lost else document["target"])
    run = evaluate(backend, [ROTATED], tmp_path)
    scores = run.scores[ROTATED]["metrics"]
    for metric in ("accuracy", "circular_accuracy", "rotation_consistency"):
        assert (scores[metric]["value"], scores[metric]["answered"]) == (1.0, len(documents) // 5 - 1)
    assert run.manifest["tasks"][ROTATED]["failed"] == {"the back-end returned nothing": 1}
    samples = {one["sample_id"]: one for one in run.samples(ROTATED)}
    assert {(one["document"]["rotation_of"], one["document"]["rotation"]) for one in samples.values()} == {
        (one["rotation_of"], one["rotation"]) for one in documents
    }
    assert samples[lost]["status"] == "failed"


@pytest.mark.slow
def test_the_prompts_and_rotations_of_a_question_share_its_media(tmp_path: Path) -> None:
    plain, paraphrased, rotated = (
        vlm([task], tmp_path / task, batch_size=4).manifest["usage"]["counters"]
        for task in ("mi_cxr_icr", TASK, ROTATED)
    )
    assert paraphrased["media_encoded"] == rotated["media_encoded"] == plain["media_encoded"]
    assert paraphrased["prompt_tokens_reused"] > plain["prompt_tokens_reused"]
    assert rotated["prompt_tokens_reused"] > rotated["prompt_tokens_computed"]
