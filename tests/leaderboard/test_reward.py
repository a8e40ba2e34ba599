"""``medtasks.reward``: completions are scored as responses are, what is given to it is recorded, and
what it cannot score is refused in one sentence.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import medtasks
from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import DataError, UsageError
from medtasks.metrics.meteor import Meteor
from medtasks.runs.training_record import FILE, read_training_record

CHOICE = "mi_cxr_icr"
OPEN = "kvasir_vqa_x1_level1"
RESPONSES = ("A", "The answer is (B).", "", "I cannot tell.", "<think>B or C?</think>C", "E, none")
OPTIONS = {"A": "left", "B": "right", "C": "both", "D": "neither"}


def own(task: str, metric: str | None = None) -> medtasks.Reward:
    return medtasks.reward(task, metric, benchmark_questions=True)


def as_messages(text: str) -> list[dict[str, Any]]:
    """A completion as trainers of chat models pass it."""
    return [{"role": "assistant", "content": text}]


@pytest.mark.parametrize(
    ("task", "metric"),
    [(CHOICE, "accuracy"), ("med_cmr_mcq_su", "accuracy"), (OPEN, "chrf"), (OPEN, "rougeL")],
)
def test_rewards_are_the_items_of_the_score(task: str, metric: str) -> None:
    documents = task_documents(task, media=False)
    responses = [RESPONSES[number % len(RESPONSES)] for number in range(len(documents))]
    responses[0] = f"It is {documents[0]['target']}."
    ids = [document["sample_id"] for document in documents]
    rows = [
        {"sample_id": sample_id, "response": response}
        for sample_id, response in zip(ids, responses, strict=True)
    ]
    items = medtasks.score(rows, task).items(task, metric).arrow.to_pylist()
    completions = [*responses[::2], *map(as_messages, responses[1::2])]
    rewarded = [*ids[::2], *ids[1::2]]
    rewards = own(task, metric)(
        prompts=[""] * len(ids), completions=completions, sample_id=rewarded
    )
    assert dict(zip(rewarded, rewards, strict=True)) == {
        item["item"]: item["value"] for item in items
    }
    assert len(set(rewards)) > 1


def test_gold_answers_may_be_in_columns() -> None:
    reward = medtasks.reward(CHOICE)
    rewards = reward(
        prompts=["", "", ""],
        completions=["A", as_messages("It is B."), "right"],
        completion_ids=[[1], [2], [3]],
        target=["A", "C", "B"],
        choices=[OPTIONS] * 3,
        images=[[], [], []],
        trainer_state=object(),
        log_metric=print,
    )
    assert rewards == [1.0, 0.0, 1.0]
    assert reward.__name__ == "mi_cxr_icr_accuracy"


def test_the_last_message_counts_and_parts_are_joined() -> None:
    parts = [{"type": "text", "text": "The answer"}, {"type": "text", "text": " is D."}]
    completions = [
        [{"role": "assistant", "content": "A"}, {"role": "assistant", "content": parts}],
        [{"role": "assistant", "content": None}],
        [],
    ]
    columns = {"target": ["D"] * 3, "choices": [OPTIONS] * 3}
    assert medtasks.reward(CHOICE)(completions=completions, **columns) == [1.0, 0.0, 0.0]


def test_a_failed_request_has_no_reward() -> None:
    failed = "[LMMS_EVAL_REQUEST_FAILED after 3 retries]"
    columns = {"target": ["A", "A"], "choices": [OPTIONS] * 2}
    assert medtasks.reward(CHOICE)(completions=[failed, "A"], **columns) == [None, 1.0]


@pytest.mark.parametrize(
    ("task", "metric", "sentence"),
    [
        ("mi_cxr", None, "is a group, expected one of its tasks: mi_cxr_tel"),
        ("mi_cxr_stagewise_icr", None, "asks in two rounds"),
        (OPEN, None, "has 8 metrics that score single responses, expected the name of one"),
        (OPEN, "judged_accuracy", "from a judge's verdicts, expected one that needs none"),
        ("med_cmr_open_su", "open_total", "needs none; choose another task"),
        (OPEN, "bertscore", "is computed by a model for whole runs"),
        (OPEN, "rouge", "metric 'rouge' is unknown"),
        (
            "medstreambench_proactive",
            "stability",
            "is not computed from one response and its reference",
        ),
    ],
)
def test_what_cannot_be_a_reward_is_refused(task: str, metric: str | None, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence) as error:
        medtasks.reward(task, metric)
    assert "\n" not in str(error.value)


def test_a_metric_that_cannot_be_computed_here_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Meteor, "unavailable", lambda self: f"{self.name} needs WordNet.")
    with pytest.raises(UsageError, match="cannot be computed on this machine: meteor needs Word"):
        medtasks.reward(OPEN, "meteor")


def test_questions_of_the_benchmark_need_permission() -> None:
    reward = medtasks.reward(CHOICE)
    for attempt in (reward.questions, lambda: reward(completions=["A"], sample_id=["icr-33"])):
        with pytest.raises(UsageError, match="its own questions are those on which runs are"):
            attempt()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({}, "neither a column `target` with gold answers nor `sample_id`"),
        ({"sample_id": ["no such"]}, "its prepared data have no sample 'no such'"),
        (
            {"target": [None]},
            "the column `target` has no gold answer in row 0 of the batch, but None; remove such rows",
        ),
        ({"target": [float("nan")]}, "no gold answer in row 0 of the batch, but nan"),
        ({"target": ["A", "B"]}, "expected a list with 1 entries, one for each completion; pass"),
    ],
)
def test_rows_without_a_gold_answer_are_refused(columns: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        own(CHOICE)(completions=["A"], **columns)


def test_training_data_have_the_prompts_of_a_run() -> None:
    reward = own(CHOICE)
    rows = reward.questions()
    documents = {document["sample_id"]: document for document in task_documents(CHOICE)}
    assert rows["sample_id"] == [*documents]
    (turn,) = rows[0]["prompt"]
    *placeholders, text = turn["content"]
    document = documents[rows[0]["sample_id"]]
    assert placeholders == [{"type": "image"}] * len(document["media"])
    assert len(rows[0]["images"]) == len(document["media"])
    assert document["question"] in text["text"]
    assert document["target"] not in json.dumps(rows[0]["sample_id"])
    assert rows.column_names == ["sample_id"]  # no gold answer is in the data


def test_a_record_names_what_was_scored_and_extends_another(tmp_path: Path) -> None:
    first, second, other = own(CHOICE), own(CHOICE), medtasks.reward(OPEN, "rougeL")
    first(completions=["A"], sample_id=["icr-34"])
    first.record(tmp_path)
    second(completions=["A", "B"], sample_id=["icr-33", "icr-34"])
    second.record(tmp_path)
    other(completions=["polyp"], target=["polyp"])
    other.record(tmp_path)
    record = read_training_record(tmp_path)
    assert record is not None
    open_use, choice_use = record.rewards
    assert (choice_use.task, choice_use.questions) == (CHOICE, ("icr-33", "icr-34"))
    assert (open_use.task, open_use.questions, open_use.other_rows) == (OPEN, (), True)

    adapter = tmp_path / "adapter"
    adapter.mkdir()
    other.record(adapter, base=tmp_path)
    assert read_training_record(adapter) == record


def test_a_reward_that_was_not_used_has_no_record(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it has not scored anything; train first"):
        own(CHOICE).record(tmp_path)
    with pytest.raises(UsageError, match="no such directory; give that of a checkpoint"):
        own(CHOICE).record(tmp_path / "nowhere")


def test_a_damaged_record_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"format": 2}')
    reward = own(CHOICE)
    reward(completions=["A"], sample_id=["icr-33"])
    with pytest.raises(DataError, match=rf"{FILE}: field `format` is 2, expected 1"):
        reward.record(tmp_path)
    assert (tmp_path / FILE).read_text() == '{"format": 2}'
