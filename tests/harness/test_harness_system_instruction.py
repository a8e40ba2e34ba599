"""``--system_instruction`` reaches the model as a system turn, and the run says only what was
sent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from foreign_backend import Backend, evaluate
from medtasks.adapters.baseline import MedtasksBaseline
from medtasks.adapters.vlm import MedtasksVLM
from runs import Run, random_vlm
from test_harness_failures import TASK, target
from test_harness_presentation import BOTH, SYSTEM, USER, SimpleBackend, Templated

from medtasks.core.errors import UsageError, errors_raised
from medtasks.scoring.run_folder import read_run
from medtasks.scoring.verified_runs import scored_record

INSTRUCTION = "You are a careful radiologist."
STAGEWISE = "mi_cxr_stagewise_icr"


def first_turns(backend: Backend) -> set[tuple[str, str]]:
    """Role and text of the first turn of every request."""
    return {(turns[0]["role"], turns[0]["content"][0].get("text", "")) for turns in backend.turns}


def protocol(run: Run, task: str = TASK) -> str:
    hashed: str = run.manifest["tasks"][task]["protocol_hash"]
    return hashed


def test_a_chat_back_end_gets_it_as_a_turn_of_its_own_and_the_log_says_so(tmp_path: Path) -> None:
    backend, without = Backend(target), Backend(target)
    plain = evaluate(without, [TASK], tmp_path / "plain")
    run = evaluate(backend, [TASK], tmp_path / "instructed", system_instruction=INSTRUCTION)

    assert first_turns(backend) == {("system", INSTRUCTION)}
    assert [turns[1:] for turns in backend.turns] == without.turns
    prompts = {sample["sample_id"]: sample["prompt"] for sample in plain.samples(TASK)}
    assert {one["sample_id"]: one["prompt"] for one in run.samples(TASK)} == {
        name: f"{INSTRUCTION}\n\n{prompt}" for name, prompt in prompts.items()
    }
    assert run.manifest["settings"]["system_instruction"] == INSTRUCTION


def test_it_is_part_of_protocol_hash_and_signature_also_when_scored_again(tmp_path: Path) -> None:
    given = (None, INSTRUCTION, "Answer briefly.")
    runs = [
        evaluate(Backend(target), [TASK], tmp_path / str(number), system_instruction=text)
        for number, text in enumerate(given)
    ]
    assert len({protocol(run) for run in runs}) == 3
    again = [scored_record(*read_run(run.folder), own=True) for run in runs]
    assert {record.verification[TASK].outcome for record in again} == {"verified"}
    assert [record.manifest.tasks[TASK].protocol_hash for record in again] == [
        protocol(run) for run in runs
    ]
    assert len({record.signatures[TASK]["accuracy"] for record in again}) == 3


def test_every_round_of_a_task_begins_with_it(tmp_path: Path) -> None:
    backend = Backend(lambda _: "A nodule. Answer: A")
    evaluate(backend, [STAGEWISE], tmp_path, system_instruction=INSTRUCTION)
    assert first_turns(backend) == {("system", INSTRUCTION)}
    assert {sum(turn["role"] == "system" for turn in turns) for turns in backend.turns} == {1}
    assert (
        len({len(turns[1]["content"]) for turns in backend.turns}) == 2
    )  # with images, and without


@pytest.mark.slow
def test_our_back_end_answers_with_it_as_with_its_own_system_prompt(tmp_path: Path) -> None:
    instructed = evaluate(ours(), [TASK], tmp_path / "option", system_instruction=INSTRUCTION)
    prompted = evaluate(ours(system_prompt=INSTRUCTION), [TASK], tmp_path / "prompt")
    plain = evaluate(ours(), [TASK], tmp_path / "plain")
    responses = [
        [sample["responses"] for sample in run.samples(TASK)]
        for run in (instructed, prompted, plain)
    ]
    assert responses[0] == responses[1] != responses[2]


def ours(**arguments: Any) -> MedtasksVLM:
    """``medtasks_vlm`` with random weights and short answers."""
    return MedtasksVLM.create_from_arg_string(random_vlm(max_new_tokens=8, **arguments))


class Prompted(Backend):
    system_prompt = "You are a helpful assistant."


def templated(template: Templated) -> Backend:
    backend = Backend(target)
    backend.processor = template
    return backend


@pytest.mark.parametrize(
    ("backend", "task", "reason"),
    [
        (Backend(target), SYSTEM, f"{SYSTEM} has a system prompt of its own"),
        (Prompted(target), TASK, "sends a system prompt of its own"),
        (SimpleBackend(target), TASK, "is a simple back-end"),
        (templated(Templated(USER)), TASK, "the model's chat template takes no system turn"),
    ],
    ids=["task", "back-end", "simple", "template"],
)
def test_where_it_cannot_be_sent_alone_the_run_is_refused(
    backend: Backend, task: str, reason: str, tmp_path: Path
) -> None:
    with (
        errors_raised(),
        pytest.raises(UsageError, match="--system_instruction cannot be sent: ") as raised,
    ):
        evaluate(backend, [task], tmp_path, system_instruction=INSTRUCTION)
    assert reason in str(raised.value)
    assert not backend.turns


def test_a_template_with_system_turns_takes_it(tmp_path: Path) -> None:
    backend = templated(Templated(BOTH))
    evaluate(backend, [TASK], tmp_path, system_instruction=INSTRUCTION)
    assert first_turns(backend) == {("system", INSTRUCTION)}


def test_back_ends_of_ours_refuse_it_without_a_model_or_with_another_system_prompt(
    tmp_path: Path,
) -> None:
    oracle = MedtasksBaseline.create_from_arg_string("policy=oracle")
    refused = {
        "baseline asks no model": oracle,
        "vlm sends a system prompt of its own": ours(system_prompt="Be brief."),
    }
    for reason, backend in refused.items():
        with errors_raised(), pytest.raises(UsageError, match=reason):
            evaluate(backend, [TASK], tmp_path, system_instruction=INSTRUCTION)
