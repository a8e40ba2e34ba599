"""Every subtask's prompt, pinned; set MEDTASKS_UPDATE_GOLDEN=1 to write the files anew, then read
the diff.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from PIL.Image import Image

from medtasks.benchmarks.documents import (
    doc_to_messages,
    doc_to_text,
    doc_to_visual,
    stage_messages,
    task_documents,
)
from medtasks.catalog.prompts import render
from medtasks.catalog.registry import all_benchmarks, get_benchmark
from medtasks.catalog.spec import TaskSpec, load_specs
from medtasks.core.errors import MedtasksError

GOLDEN = Path(__file__).parent / "golden"
EVERY_TASK = [spec for spec in load_specs().values() if spec.kind == "task"]
TASKS = [spec for spec in EVERY_TASK if not spec.stage1_template]


def described(messages: list[dict[str, Any]]) -> str:
    """Messages as text, with a picture shown by its size."""
    lines = []
    for message in messages:
        lines.append(f"[{message['role']}]")
        for part in message["content"]:
            if part["type"] == "image":
                taken = f" at {part['time']} s" if "time" in part else ""
                lines.append(
                    f"<image {part['url'].size[0]}x{part['url'].size[1]} {part['url'].mode}{taken}>"
                )
            else:
                lines.append(part["text"])
    return "\n".join(lines) + "\n"


def prompt_of(spec: TaskSpec) -> str:
    """The first document's messages; of both stages, or of every prompt, where there are
    several.
    """
    document, *rest = task_documents(spec.name)
    if spec.metadata.prompts:
        asked = [document, *rest[: len(spec.metadata.prompts) - 1]]
        return "=== next prompt\n".join(
            described(doc_to_messages(one, {"template": spec.template})) for one in asked
        )
    if not spec.stage1_template:
        return described(doc_to_messages(document, spec.resolved["lmms_eval_specific_kwargs"]))
    settings = spec.resolved["lmms_eval_specific_kwargs"]
    second, *_ = stage_messages(
        document, settings, round_idx=1, previous_output=["(what stage 1 said)"]
    )
    return described(stage_messages(document, settings)) + "=== stage 2\n" + described(second)


@pytest.mark.parametrize("spec", EVERY_TASK, ids=lambda spec: spec.name)
def test_prompt_is_the_pinned_one(spec: TaskSpec) -> None:
    prompt = prompt_of(spec)
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


VISIBLE = {
    "kvasir_vqa_x1": {"question"},
    "kvasir_vqa_x1_transformed": {"question"},
    "mi_cxr": {"question", "choices", "demonstration"},
    "med_cmr": {"question", "choices"},
    "medstreambench": {
        *("question", "options", "multi_select", "allowed_responses"),
        *(
            "task_mode",
            "temporal_mode",
            "medium",
            "query_time",
            "window_start",
            "window_end",
            "times",
        ),
    },
}
"""Every field that a prompt may see; all others are hidden."""


@pytest.mark.parametrize("name", all_benchmarks())
def test_a_prompt_may_see_these_fields_and_no_other(name: str) -> None:
    assert get_benchmark(name).visible_fields == VISIBLE[name]


def planted(value: Any) -> Any:
    if isinstance(value, (bool, int, float)):
        return 987654
    return ["LEAK"] if isinstance(value, list) else "LEAK"


@pytest.mark.parametrize("spec", TASKS, ids=lambda spec: spec.name)
def test_no_hidden_field_changes_a_prompt(spec: TaskSpec) -> None:
    """All are changed at once: a prompt that none of them reaches is the same."""
    settings = {"template": spec.template}
    known = VISIBLE[spec.metadata.benchmark] | {"benchmark", "prompt_template"}
    for document in task_documents(spec.name):
        other = {
            field: value if field in known else planted(value) for field, value in document.items()
        }
        assert doc_to_text(other, settings) == doc_to_text(document, settings)


@pytest.mark.parametrize("field", ["target", "sample_id", "abstention"])
def test_a_template_cannot_reach_a_hidden_field(
    field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leak.j2").write_text("{{ question }} {{ " + field + " }}")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    for task in ("mi_cxr_icr", "kvasir_vqa_x1_level1"):
        with pytest.raises(MedtasksError, match=f"'{field}' is undefined"):
            doc_to_text(task_documents(task)[0], {"template": "leak.j2"})
    with pytest.raises(MedtasksError, match="'choices' is undefined"):
        render("mi_cxr/mcq.j2", question="When?")
