"""Stage-wise probing: the same two prompts on every back-end, options withheld first, images
withheld then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from foreign_backend import Backend, evaluate
from PIL.Image import Image
from runs import vlm

from medtasks.benchmarks.documents import stage_messages, stage_text, task_documents
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.core.errors import MedtasksError

TASKS = leaf_tasks("mi_cxr_stagewise")


@pytest.mark.slow
def test_the_batch_size_changes_no_byte_and_the_log_holds_what_both_stages_said(
    tmp_path: Path,
) -> None:
    batched = vlm(["mi_cxr_stagewise"], tmp_path / "batched", tokens=12, batch_size=4)
    single = vlm(["mi_cxr_stagewise"], tmp_path / "single", tokens=12)
    assert single.files() == batched.files()
    lines = [line for task in TASKS for line in batched.samples(task)]
    stages = [json.loads(line["responses"][0]) for line in lines]
    assert {tuple(sorted(one)) for one in stages} == {("stage1", "stage2")}
    assert len({one["stage1"] for one in stages}) > 1
    assert all("T4 to T5" in line["prompt"] and "Options" not in line["prompt"] for line in lines)


def every_document() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Documents with their task's templates."""
    for task in (*TASKS, "mi_cxr_stagewise_icr_variant"):
        settings = load_spec(task).resolved["lmms_eval_specific_kwargs"]
        yield from ((document, settings) for document in task_documents(task))


def test_stage_1_sees_the_question_without_its_options() -> None:
    for document, settings in every_document():
        (turn,) = stage_messages(document, settings)
        *images, text = turn["content"]
        assert len(images) == 5
        assert all(isinstance(part["url"], Image) for part in images)
        assert text["text"] == stage_text(document, settings)
        assert document["question"] in text["text"]
        assert not [option for option in document["choices"].values() if option in text["text"]]


def test_a_first_stage_cannot_show_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "early.j2").write_text("{{ question }} {{ choices }}")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    document, settings = next(every_document())
    with pytest.raises(MedtasksError, match="'choices' is undefined"):
        stage_text(document, {**settings, "stage1_template": "early.j2"})


def test_a_simple_back_end_is_given_the_text_of_stage_2_and_no_image() -> None:
    document, settings = next(every_document())
    (turn,), *_ = stage_messages(document, settings, round_idx=1, previous_output=["notes"])
    text = turn["content"][0]["text"]
    assert stage_text(document, settings, ["notes"], 1) == ([], text, False, ["notes"], None)


def test_a_chat_back_end_is_given_just_that_and_the_log_holds_both_answers(tmp_path: Path) -> None:
    backend = Backend(lambda _: f"notes {len(backend.turns) - 1}")
    run = evaluate(backend, ["mi_cxr_stagewise_icr"], tmp_path)
    count = len(task_documents("mi_cxr_stagewise_icr"))
    contents = [turns[0]["content"] for turns in backend.turns]
    seen = [
        (sum(part["type"] == "image" for part in content), content[-1]["text"])
        for content in contents
    ]
    firsts, seconds = seen[:count], seen[count:]
    assert len(seconds) == count
    assert {images for images, _ in firsts} == {5}
    assert {images for images, _ in seconds} == {0}
    assert all("Options:" not in text for _, text in firsts)
    assert all(
        f"notes {number}\n" in text and "Options:" in text
        for number, (_, text) in enumerate(seconds)
    )
    stages = [json.loads(line["responses"][0]) for line in run.samples("mi_cxr_stagewise_icr")]
    notes = [
        {"stage1": f"notes {number}", "stage2": f"notes {count + number}"}
        for number in range(count)
    ]
    assert sorted(map(str, stages)) == sorted(map(str, notes))
