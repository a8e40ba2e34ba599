"""Back-ends of the harness: what reaches them, what they are called and what they lack."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from foreign_backend import Backend, evaluate

from medtasks import harness
from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import MedtasksError, UsageError
from medtasks.harness.model_facts import described
from medtasks.harness.options import refuse


class OneFunction(Backend):
    """Shows every document of a call with the first request's function, as `huggingface` does with
    a batch.
    """

    batch_size = 64

    def __init__(self) -> None:
        super().__init__(lambda _: "A")
        self.shown: list[tuple[str, str]] = []

    def generate_until(self, requests: list[Any]) -> list[Any]:
        to_messages = requests[0].args[1]
        for request in requests:
            text, _, _, doc_id, task, split = request.args
            content = to_messages(self.task_dict[task][split][doc_id])[-1]["content"]
            self.shown.append(
                (text, "\n".join(part["text"] for part in content if part["type"] == "text"))
            )
        return [f"answer {len(self.shown)}.{number}" for number, _ in enumerate(requests)]


def test_a_batch_holds_one_task_and_every_document_of_a_round_has_its_own_prompt(
    tmp_path: Path,
) -> None:
    backend = OneFunction()
    tasks = ["mi_cxr_icr", "mi_cxr_icr_cot", "mi_cxr_stagewise_icr"]
    run = evaluate(backend, tasks, tmp_path)
    asked = [sample["prompt"] for task in tasks for sample in run.samples(task)]
    assert [text for text, _ in backend.shown] == [shown for _, shown in backend.shown]
    assert set(asked) <= {text for text, _ in backend.shown}
    seconds = [shown for _, shown in backend.shown if "answer " in shown]
    assert len(set(seconds)) == len(task_documents("mi_cxr_stagewise_icr"))


REFUSED: list[tuple[dict[str, Any], list[str], str]] = [
    (
        {"model": "llava_hf", "force_simple": True},
        ["mi_cxr_icr"],
        "llava_hf cannot run our tasks with --force_simple",
    ),
    (
        {"num_fewshot": 1},
        ["mi_cxr_tel", "med_cmr"],
        "examples are part of a task's prompt here: run mi_cxr_tel_1shot.",
    ),
    (
        {"num_fewshot": 1},
        ["mi_cxr_icr_1shot"],
        "examples are part of a task's prompt here: leave the option out.",
    ),
]


def test_options_that_our_tasks_do_not_support_are_refused_with_what_to_do() -> None:
    for asked, tasks, sentence in REFUSED:
        with pytest.raises(UsageError, match=re.escape(sentence)):
            refuse(asked, tasks)
    refuse({"num_fewshot": 0}, ["mi_cxr_icr"])


ARGUMENTS = "model=lab/Model-7B,revision=abc,quantization=awq,base_url=http://here:1/v1,batch_size=4,api_key=sk-0"


def test_a_manifest_says_which_model_a_back_end_of_the_harness_ran(tmp_path: Path) -> None:
    run = evaluate(Backend(lambda _: "A"), ["mi_cxr_icr"], tmp_path, model_args=ARGUMENTS, limit=1)
    model = {key: value for key, value in run.manifest["model"].items() if key != "processes"}
    assert model == {
        "model": "foreign_backend",
        "checkpoint": "lab/Model-7B",
        "revision": "abc",
        "quantization": "awq",
    }


class Default(Backend):
    """Has a checkpoint of its own where none is given."""

    def __init__(self, pretrained: str = "lab/By-default") -> None:
        del pretrained
        super().__init__(lambda _: "A")


def test_a_checkpoint_is_named_where_the_back_end_has_it_by_default(tmp_path: Path) -> None:
    run = evaluate(Default(), ["mi_cxr_icr"], tmp_path, model_args="", limit=1)
    assert run.manifest["model"]["checkpoint"] == "lab/By-default"


def test_local_weights_are_known_by_their_content(tmp_path: Path) -> None:
    known = []
    for number, weights in enumerate((b"1", b"1", b"2")):
        folder = tmp_path / str(number) / "ckpt"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(weights)
        known.append(described(Backend(lambda _: "A"), f"pretrained={folder}")["fingerprint"])
    assert known[0] == known[1] != known[2]


def test_a_run_names_a_back_end_that_is_unknown(tmp_path: Path) -> None:
    with pytest.raises(
        MedtasksError,
        match=r"qwen25_vl cannot be used: unknown to lmms-eval .did you mean 'qwen2_5_vl'",
    ):
        harness.run_tasks("qwen25_vl", "", ["mi_cxr_icr"], tmp_path)


def test_an_error_of_the_harness_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(MedtasksError) as raised:
        harness.run_tasks(
            "huggingface", "pretrained=x,attn_implementation=none", ["mi_cxr_icr"], tmp_path
        )
    error = str(raised.value)
    assert error.startswith(
        "the harness ended the run: ValueError: attn_implementation must be one of"
    )
    assert error.endswith("(--verbosity DEBUG shows where).")
