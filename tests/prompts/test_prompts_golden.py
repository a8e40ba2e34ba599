"""Every subtask's prompt, pinned; set MEDTASKS_UPDATE_GOLDEN=1 to write the files anew, then read the diff."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from PIL.Image import Image

from medtasks.benchmarks import BENCHMARKS, get_benchmark
from medtasks.benchmarks.documents import doc_to_messages, doc_to_text, doc_to_visual, task_documents
from medtasks.errors import MedtasksError
from medtasks.prompts import render, template_hash, template_variables
from medtasks.spec import TaskSpec, load_specs

GOLDEN = Path(__file__).parent / "golden"
TASKS = [spec for spec in load_specs().values() if spec.kind == "task"]


def described(messages: list[dict[str, Any]]) -> str:
    """Messages as text, with a picture shown by its size."""
    lines = []
    for message in messages:
        lines.append(f"[{message['role']}]")
        for part in message["content"]:
            if part["type"] == "image":
                lines.append(f"<image {part['url'].size[0]}x{part['url'].size[1]} {part['url'].mode}>")
            else:
                lines.append(part["text"])
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("spec", TASKS, ids=lambda spec: spec.name)
def test_prompt_is_the_pinned_one(spec: TaskSpec) -> None:
    document = task_documents(spec.name)[0]
    prompt = described(doc_to_messages(document, {"template": spec.template}))
    golden = GOLDEN / f"{spec.name}.txt"
    if os.environ.get("MEDTASKS_UPDATE_GOLDEN") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(prompt, encoding="utf-8")
    assert prompt == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("spec", TASKS, ids=lambda spec: spec.name)
def test_chat_and_simple_back_ends_get_the_same(spec: TaskSpec) -> None:
    settings = {"template": spec.template}
    for document in task_documents(spec.name):
        (turn,) = doc_to_messages(document, settings)
        *media, text = turn["content"]
        assert text == {"type": "text", "text": doc_to_text(document, settings)}
        assert [part["url"] for part in media] == doc_to_visual(document)
        assert all(isinstance(part["url"], Image) for part in media)


@pytest.mark.parametrize("spec", TASKS, ids=lambda spec: spec.name)
def test_a_template_sees_only_what_its_benchmark_shows(spec: TaskSpec) -> None:
    assert spec.template is not None
    assert template_variables(spec.template) <= get_benchmark(spec.metadata.benchmark).visible_fields


@pytest.mark.parametrize("name", BENCHMARKS)
def test_no_hidden_field_is_visible(name: str) -> None:
    hidden = {"target", "answer", "original", "question_class", "qtype", "group_type", "abstention", "sample_id"}
    assert not hidden & get_benchmark(name).visible_fields


def test_a_changed_gold_answer_changes_no_prompt() -> None:
    for spec in TASKS:
        for document in task_documents(spec.name):
            other = {**document, "target": "LEAK", "answer": "LEAK", "original": [{"q": "LEAK", "a": "LEAK"}]}
            settings = {"template": spec.template}
            assert doc_to_text(other, settings) == doc_to_text(document, settings)


def test_a_template_that_asks_for_more_stops() -> None:
    with pytest.raises(MedtasksError, match="'choices' is undefined"):
        render("mi_cxr/mcq.j2", question="When?")


@pytest.mark.parametrize("field", ["target", "sample_id", "abstention"])
def test_a_template_cannot_reach_a_hidden_field(field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "leak.j2").write_text("{{ question }} {{ " + field + " }}")
    monkeypatch.setattr("medtasks.prompts.template_directory", lambda: tmp_path)
    for task in ("mi_cxr_icr", "kvasir_vqa_x1_level1"):
        with pytest.raises(SystemExit):
            doc_to_text(task_documents(task)[0], {"template": "leak.j2"})


def test_the_prompt_hash_covers_included_templates() -> None:
    assert template_hash("mi_cxr/mcq.j2") != template_hash("mi_cxr/mcq_cot.j2")
    assert template_hash("mi_cxr/_options.j2") != template_hash("mi_cxr/_timeline.j2")
