"""``medtasks_vlm`` through the real harness: blind runs, which are a protocol of their own, and
probabilities.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import Run

from medtasks.benchmarks.documents import doc_to_messages, doc_to_visual, task_documents
from medtasks.catalog.spec import load_spec
from medtasks.harness import run_tasks

pytestmark = pytest.mark.slow

TASKS = ["mi_cxr_icr", "mi_cxr_stagewise_icr", "medstreambench_present"]
VLM = "pretrained=tiny,device=cpu,max_new_tokens=8"


def test_a_blind_run_has_the_same_prompts_and_a_protocol_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeing = Run(run_tasks("medtasks_vlm", VLM, TASKS, tmp_path / "seeing"))
    blind = Run(run_tasks("medtasks_vlm", f"{VLM},blind=true", TASKS, tmp_path / "blind"))
    monkeypatch.setenv("MEDTASKS_BLIND", "1")  # for any back-end
    document, template = task_documents("mi_cxr_icr")[0], load_spec("mi_cxr_icr").template
    assert (
        doc_to_visual(document)
        == doc_to_visual(task_documents("medstreambench_proactive")[0])
        == []
    )
    assert [
        part["type"] for part in doc_to_messages(document, {"template": template})[0]["content"]
    ] == ["text"]
    same = Run(run_tasks("medtasks_vlm", VLM, TASKS, tmp_path / "same"))

    assert blind.manifest["model"]["blind"] is True
    for task in TASKS:
        assert same.samples(task) == blind.samples(task)
        assert [line["prompt"] for line in blind.samples(task)] == [
            line["prompt"] for line in seeing.samples(task)
        ]
        facts, others, again = (run.manifest["tasks"][task] for run in (seeing, blind, same))
        assert (facts["blind"], others["blind"]) == (False, True)
        assert facts["prompt_hash"] == others["prompt_hash"]
        assert facts["protocol_hash"] != others["protocol_hash"] == again["protocol_hash"]
    said = [[line["responses"] for line in run.samples("mi_cxr_icr")] for run in (seeing, blind)]
    assert said[0] != said[1]


def test_a_model_s_probabilities_do_not_depend_on_batches(tmp_path: Path) -> None:
    """The trained tiny model names letters, so each sample has the options' probabilities."""
    task = "mi_cxr_tel_multiple"
    single, batched = (
        Run(run_tasks("medtasks_vlm", f"{VLM},batch_size={size}", [task], tmp_path / str(size)))
        for size in (1, 4)
    )
    assert single.files() == batched.files()
    for sample in batched.samples(task):
        (found,) = sample["probabilities"]
        assert 0 <= found["answer"] <= 1
        if sample["status"] == "ok":
            (letter,) = [one for one in found["letters"] if one["letter"] == sample["filtered"]]
            assert set(letter["options"]) == set("ABCDE")
            assert abs(sum(letter["options"].values()) - 1) <= 0.03
            assert (
                max(letter["options"].values()) == letter["options"][sample["filtered"]]
            )  # greedy
    scores = batched.scores[task]
    assert (
        scores["metrics"]["ece"]["samples"]
        == sum(one["status"] == "ok" for one in batched.samples(task))
        > 0
    )
    assert scores["reliability"]["bins"]
