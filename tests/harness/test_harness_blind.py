"""Blind runs: the same prompts without media, on our back-end and on others, as a protocol of their own."""

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


@pytest.fixture(scope="module")
def seeing(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(run_tasks("medtasks_vlm", VLM, TASKS, tmp_path_factory.mktemp("seeing")))


@pytest.fixture(scope="module")
def blind(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(run_tasks("medtasks_vlm", f"{VLM},blind=true", TASKS, tmp_path_factory.mktemp("blind")))


@pytest.mark.parametrize("task", TASKS)
def test_a_blind_run_has_the_same_prompts_and_a_protocol_of_its_own(seeing: Run, blind: Run, task: str) -> None:
    assert [line["prompt"] for line in blind.samples(task)] == [line["prompt"] for line in seeing.samples(task)]
    one, other = seeing.manifest["tasks"][task], blind.manifest["tasks"][task]
    assert (one["blind"], other["blind"]) == (False, True)
    assert one["prompt_hash"] == other["prompt_hash"]
    assert one["protocol_hash"] != other["protocol_hash"]
    assert blind.manifest["model"]["blind"] is True


def test_without_images_other_words_are_said(seeing: Run, blind: Run) -> None:
    said = [[line["responses"] for line in run.samples("mi_cxr_icr")] for run in (seeing, blind)]
    assert said[0] != said[1]


@pytest.mark.slow
def test_any_back_end_goes_blind_by_the_environment(
    blind: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEDTASKS_BLIND", "1")
    document, template = task_documents("mi_cxr_icr")[0], load_spec("mi_cxr_icr").template
    assert doc_to_visual(document) == []
    assert [part["type"] for part in doc_to_messages(document, {"template": template})[0]["content"]] == ["text"]
    stream = task_documents("medstreambench_proactive")[0]
    assert doc_to_visual(stream) == []
    same = Run(run_tasks("medtasks_vlm", VLM, TASKS, tmp_path))
    for task in TASKS:
        assert same.samples(task) == blind.samples(task)
        assert same.manifest["tasks"][task]["protocol_hash"] == blind.manifest["tasks"][task]["protocol_hash"]
