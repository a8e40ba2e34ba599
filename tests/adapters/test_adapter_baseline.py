"""The baseline back-end: policies over harness requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from adapter_bench import Bench, texts
from datasets import Dataset
from medtasks.adapters.baseline import MedtasksBaseline

from medtasks.core.errors import UsageError

CHOICES = {letter: f"option {letter}" for letter in "ABCDE"}


def mcq(count: int) -> list[dict[str, Any]]:
    common = {"choices": CHOICES, "abstention": "E", "media": ["x.png"]}
    return [{"sample_id": f"m{i}", "target": "ABCDE"[i % 5], **common} for i in range(count)]


def open_docs(count: int) -> list[dict[str, Any]]:
    common = {"abstention": "I cannot tell.", "media": ["x.png"]}
    return [{"sample_id": f"o{i}", "target": f"answer {i}", **common} for i in range(count)]


def untouchable(doc: dict[str, Any]) -> list[dict[str, Any]]:
    raise AssertionError(doc)


def baseline(bench: Bench, **arguments: Any) -> MedtasksBaseline:
    model = MedtasksBaseline(**arguments)
    model.task_dict = bench.task_dict
    return model


def test_each_task_is_answered_from_its_own_documents(bench: Bench) -> None:
    requests = bench.task("choice", mcq(6), untouchable) + bench.task(
        "open", open_docs(6), untouchable
    )

    oracle = texts(baseline(bench, policy="oracle").replies(requests))
    abstain = texts(baseline(bench, policy="abstain").replies(requests))
    uniform = texts(baseline(bench, policy="uniform").replies(requests))

    assert oracle == ["A", "B", "C", "D", "E", "A", *(f"answer {i}" for i in range(6))]
    assert abstain == ["E"] * 6 + ["I cannot tell."] * 6
    assert set(uniform[:6]) <= set("ABCDE")
    assert set(uniform[6:]) <= {f"answer {i}" for i in range(6)}


@pytest.mark.parametrize("policy", ["uniform", "noisy_oracle"])
def test_shards_and_document_order_do_not_matter(bench: Bench, policy: str) -> None:
    docs = mcq(9) + open_docs(8)
    whole = baseline(bench, policy=policy, seed=4).replies(bench.task("t", docs))
    shards = [
        baseline(bench, policy=policy, seed=4).replies(bench.task("t", docs)[r::3])
        for r in range(3)
    ]
    turned = baseline(bench, policy=policy, seed=4).replies(bench.task("t", docs[::-1]))

    assert [shards[i % 3][i // 3] for i in range(len(docs))] == whole
    assert turned[::-1] == whole
    assert baseline(bench, policy=policy, seed=5).replies(bench.task("t", docs)) != whole


def test_options_that_a_dataset_only_pads_are_not_chosen(bench: Bench) -> None:
    docs = [{**doc, "choices": {"A": "yes", "B": "no"}} for doc in mcq(2)] + [
        {**mcq(1)[0], "sample_id": "z"}
    ]
    requests = bench.task(
        "t", [{**doc, "sample_id": f"p{i}"} for i, doc in enumerate(docs[:1] * 60 + docs[2:])]
    )
    bench.task_dict["t"]["test"] = Dataset.from_list(bench.task_dict["t"]["test"])

    assert set(texts(baseline(bench, policy="uniform").replies(requests[:60]))) == {"A", "B"}


def test_the_harness_creates_it_from_a_string(bench: Bench) -> None:
    arguments = "policy=noisy_oracle,seed=7,accuracy=1"
    model = MedtasksBaseline.create_from_arg_string(arguments, {"batch_size": 1, "device": "cuda"})
    model.task_dict = bench.task_dict

    assert texts(model.replies(bench.task("t", mcq(3)))) == ["A", "B", "C"]
    settings = {"policy": "noisy_oracle", "seed": 7, "accuracy": 1.0, "answer": None}
    assert json.loads(json.dumps(model.describe())) == {"model": "medtasks_baseline", **settings}
    assert not model.is_simple


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("policy=magic", "policy is 'magic', expected one of oracle"),
        ("policy=noisy_oracle,accuracy=1.5", "`accuracy` is 1.5, expected a number of at most 1"),
    ],
)
def test_wrong_arguments_end_in_one_sentence(
    capsys: pytest.CaptureFixture[str], arguments: str, expected: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        MedtasksBaseline.create_from_arg_string(arguments)

    assert ended.value.code == 1
    assert expected in capsys.readouterr().err


def test_documents_without_a_reference_answer_are_refused(bench: Bench) -> None:
    requests = bench.task("foreign", [{"question": "?", "answer": "yes"}])

    with pytest.raises(
        UsageError, match="Task foreign: field 'target' of its documents is missing"
    ):
        baseline(bench).replies(requests)
