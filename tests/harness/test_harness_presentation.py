"""What a back-end does with a prompt counts: order of text and media, chat or simple, a system
prompt of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.verify.model_identity import model_key
from test_harness_failures import TASK, Backend, evaluate, target

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.prompts import render
from medtasks.harness.presentation import presentation
from medtasks.scoring.run_folder import read_run


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
    assert facts[1]["presentation"] == {
        "interface": "simple",
        "order": "as test_harness_presentation has it",
    }
    keys = [model_key(read_run(run.folder)[0]) for run in (chat, simple)]
    assert keys[0] != keys[1]


HELPFUL = {"system_prompt": "You are a helpful assistant."}
TEXT_FIRST = {"interface": "simple", "order": "text before media"}


@pytest.mark.parametrize(
    ("module", "attributes", "expected"),
    [
        ("simple.openai", {}, TEXT_FIRST),
        ("chat.openai", {}, {}),
        ("chat.qwen2_5_vl", HELPFUL, {}),
        (
            "simple.qwen2_5_vl",
            HELPFUL,
            {"interface": "simple", "order": "media before text", **HELPFUL},
        ),
        ("simple.vllm", {"image_first": False}, TEXT_FIRST),
    ],
)
def test_what_is_known_of_the_harness_s_back_ends(
    module: str, attributes: dict[str, Any], expected: dict[str, str]
) -> None:
    about = {
        "__module__": f"lmms_eval.models.{module}",
        "is_simple": module.startswith("simple"),
        **attributes,
    }
    assert presentation(type("Lm", (), about)()) == expected


def test_pictures_that_a_server_gets_as_jpeg_count(monkeypatch: pytest.MonkeyPatch) -> None:
    served, local = (
        type(
            "Lm",
            (),
            {"__module__": f"lmms_eval.models.chat.{name}", "is_simple": False, **attributes},
        )()
        for name, attributes in (("async_openai", {"client": object()}), ("huggingface", {}))
    )
    assert presentation(served) == {}
    monkeypatch.setenv("LMMS_IMAGE_ENCODE_FORMAT", "jpeg")
    assert presentation(served) == {"pictures": "JPEG, quality 85"}
    assert presentation(local) == {}


SYSTEM = "kvasir_vqa_x1_level3_system"
SAID = "kvasir_vqa_x1/system.j2"


class Templated:
    """A processor whose chat template joins the turns of some roles and, if told so, refuses the
    others.
    """

    def __init__(self, roles: tuple[str, ...], *, strict: bool = False) -> None:
        self._roles, self._strict = roles, strict

    def apply_chat_template(self, turns: list[dict[str, Any]], **settings: Any) -> str:
        del settings
        if self._strict and not {turn["role"] for turn in turns} <= set(self._roles):
            raise ValueError("System role not supported")
        shown = (turn["content"] for turn in turns if turn["role"] in self._roles)
        return "".join(
            part["text"] for content in shown for part in content if isinstance(content, list)
        )


BOTH, USER = ("system", "user"), ("user",)


@pytest.mark.parametrize(
    ("processor", "taken"),
    [
        (None, True),
        (Templated(BOTH), True),
        (Templated(USER), False),
        (Templated(USER, strict=True), False),
    ],
    ids=["server", "template", "drops it", "refuses it"],
)
def test_a_task_s_system_prompt_is_a_turn_of_its_own_or_stands_before_the_question(
    processor: Any, taken: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    backend = Backend(target)
    backend.processor = processor  # decides on system turns
    run = evaluate(backend, [SYSTEM], tmp_path)

    said = [
        [(turn["role"], turn["content"][-1]["text"]) for turn in turns] for turns in backend.turns
    ]
    prompt, questions = render(SAID), [document["question"] for document in task_documents(SYSTEM)]
    apart = [[("system", prompt), ("user", question)] for question in questions]
    assert sorted(said) == sorted(
        apart if taken else [[("user", f"{prompt}\n\n{one}")] for one in questions]
    )
    presented = {} if taken else {"task's system prompt": "at the beginning of the text"}
    assert run.manifest["tasks"][SYSTEM]["presentation"] == presented
    assert ("takes no system prompt" in capfd.readouterr().err) is not taken
