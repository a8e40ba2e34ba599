"""What a back-end does with a prompt counts: order of text and media, chat or simple, a system prompt of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.board.models import model_key
from test_harness_failures import TASK, Backend, evaluate, target

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.prompts import render
from medtasks.harness.backends import presentation
from medtasks.runs.record import read_run


class SimpleBackend(Backend):
    """A simple back-end: it is given the text, and the media apart."""

    is_simple = True

    def generate_until(self, requests: list[Any]) -> list[Any]:
        given = []
        for request in requests:
            context, _, to_visual, doc_id, task, split = request.args
            document = self.task_dict[task][split][doc_id]
            assert context
            assert to_visual(document)
            given.append(self.answer(document))
        return given


@pytest.mark.slow
def test_chat_and_simple_runs_are_neither_one_protocol_nor_one_model(tmp_path: Path) -> None:
    chat = evaluate(Backend(target), [TASK], tmp_path / "chat")
    simple = evaluate(SimpleBackend(target), [TASK], tmp_path / "simple")

    facts = [run.manifest["tasks"][TASK] for run in (chat, simple)]
    assert facts[0]["prompt_hash"] == facts[1]["prompt_hash"]
    assert facts[0]["protocol_hash"] != facts[1]["protocol_hash"]
    assert facts[0]["presentation"] == {}
    assert facts[1]["presentation"] == {"interface": "simple", "order": "as test_harness_presentation has it"}
    keys = [model_key(read_run(run.folder)[0]) for run in (chat, simple)]
    assert keys[0] != keys[1]


@pytest.mark.parametrize(
    ("module", "simple", "attributes", "expected"),
    [
        ("lmms_eval.models.simple.openai", True, {}, {"interface": "simple", "order": "text before media"}),
        ("lmms_eval.models.chat.openai", False, {}, {}),
        ("lmms_eval.models.chat.qwen2_5_vl", False, {"system_prompt": "You are a helpful assistant."}, {}),
        (
            "lmms_eval.models.simple.qwen2_5_vl",
            True,
            {"system_prompt": "You are a helpful assistant."},
            {"interface": "simple", "order": "media before text", "system_prompt": "You are a helpful assistant."},
        ),
        (
            "lmms_eval.models.simple.vllm",
            True,
            {"image_first": False},
            {"interface": "simple", "order": "text before media"},
        ),
    ],
)
def test_what_is_known_of_the_harness_s_back_ends(
    module: str, simple: bool, attributes: dict[str, Any], expected: dict[str, str]
) -> None:
    kind = type("Lm", (), {"__module__": module, "is_simple": simple, **attributes})
    assert presentation(kind()) == expected


def test_pictures_that_a_server_gets_as_jpeg_count(monkeypatch: pytest.MonkeyPatch) -> None:
    served, local = (
        type("Lm", (), {"__module__": f"lmms_eval.models.chat.{name}", "is_simple": False, **attributes})()
        for name, attributes in (("async_openai", {"client": object()}), ("huggingface", {}))
    )
    assert presentation(served) == {}
    monkeypatch.setenv("LMMS_IMAGE_ENCODE_FORMAT", "jpeg")
    assert presentation(served) == {"pictures": "JPEG, quality 85"}
    assert presentation(local) == {}


SYSTEM = "kvasir_vqa_x1_level3_system"
SAID = "kvasir_vqa_x1/system.j2"


class Templated:
    """A processor whose chat template joins the turns of some roles and, if told so, refuses the others."""

    def __init__(self, roles: tuple[str, ...], *, strict: bool = False) -> None:
        self._roles, self._strict = roles, strict

    def apply_chat_template(self, turns: list[dict[str, Any]], **settings: Any) -> str:
        del settings
        if self._strict and not {turn["role"] for turn in turns} <= set(self._roles):
            raise ValueError("System role not supported")
        shown = (turn["content"] for turn in turns if turn["role"] in self._roles)
        return "".join(part["text"] for content in shown for part in content if isinstance(content, list))


def recording(processor: Any) -> Backend:
    """A chat back-end with a processor, which decides on system turns."""
    backend = Backend(target)
    backend.processor = processor
    return backend


def said(backend: Backend) -> list[list[tuple[str, str]]]:
    return sorted([(turn["role"], turn["content"][-1]["text"]) for turn in turns] for turns in backend.turns)


BOTH, USER = ("system", "user"), ("user",)


@pytest.mark.parametrize("processor", [None, Templated(BOTH)], ids=["server", "template"])
def test_a_task_s_system_prompt_is_a_turn_of_its_own(processor: Any, tmp_path: Path) -> None:
    backend = recording(processor)
    run = evaluate(backend, [SYSTEM], tmp_path)

    questions = [document["question"] for document in task_documents(SYSTEM)]
    assert said(backend) == sorted([("system", render(SAID)), ("user", one)] for one in questions)
    assert run.manifest["tasks"][SYSTEM]["presentation"] == {}


@pytest.mark.parametrize("processor", [Templated(USER), Templated(USER, strict=True)], ids=["drops it", "refuses it"])
def test_a_back_end_without_system_prompts_gets_it_before_the_question_and_says_so(
    processor: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    backend = recording(processor)
    run = evaluate(backend, [SYSTEM], tmp_path)

    questions = [document["question"] for document in task_documents(SYSTEM)]
    assert said(backend) == sorted([("user", f"{render(SAID)}\n\n{one}")] for one in questions)
    assert run.manifest["tasks"][SYSTEM]["presentation"] == {"task's system prompt": "at the beginning of the text"}
    assert "takes no system prompt" in capfd.readouterr().err
