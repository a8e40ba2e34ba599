"""Confidences from replies to scores: which letter counts, what has none, and what is absent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from medtasks.adapters.policies import PolicyQuestion, make_policy, with_confidence

from medtasks.answers.option_letter import extract_option
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import load_spec
from medtasks.metrics.confidence import CONFIDENCE_NAMES
from medtasks.runs.replies import Answer, Letter, Probabilities, Reply, Slot
from medtasks.runs.sample_files import SampleLines
from medtasks.runs.samples import Sample
from medtasks.runs.unfinished import AnswerStore, read_answers
from medtasks.scoring.answer_confidence import deciding_letter
from medtasks.scoring.comparisons import compare_tables
from medtasks.scoring.group_scores import score_samples
from medtasks.scoring.item_table import item_table
from medtasks.scoring.scored_samples import scored_samples
from medtasks.scoring.scores import Scores

TASK = "mi_cxr_tel_multiple"
OPTIONS = "ABCDE"


def letter(at: int, name: str, share: float, mass: float = 1.0) -> Letter:
    rest = (1 - share) / 4
    return Letter(at, name, {one: share if one == name else rest for one in OPTIONS}, mass)


def samples_of(reply: Callable[[dict[str, Any]], Reply], task: str = TASK) -> list[Sample]:
    return scored_samples(
        load_spec(task), [Sample.answered(task, one, (reply(one),)) for one in task_documents(task)]
    )


def scores_of(samples: list[Sample]) -> Scores:
    return score_samples(samples, get_benchmark("mi_cxr"), ["gold_option"])


def by_policy(policy: str, seed: int = 0) -> Callable[[dict[str, Any]], Reply]:
    answer = make_policy(policy, seed=seed)

    def reply(document: dict[str, Any]) -> Reply:
        question = PolicyQuestion.of(document, document["sample_id"], [document["target"]])
        text, found = with_confidence(policy, answer(question), question, seed)
        return Reply(text, probabilities=found)

    return reply


def read(text: str) -> str:
    return extract_option(text, OPTIONS).letter or ""


@pytest.mark.parametrize(
    ("response", "chosen", "place"),
    [
        ("B", "B", 0),
        (" (B)", "B", 2),
        ("B. Vitamin B is low", "B", 0),
        ("B or C? The answer is B", "B", 22),
        ("C is seen first. So C is wrong. The answer is B, not C.", "B", 46),
        ("Answer: B\nB is right, since C is not.", "B", 8),
        ("<think>The answer is B. Or C?</think>B", "B", 37),
    ],
)
def test_the_letter_that_named_the_option_for_good_counts(
    response: str, chosen: str, place: int
) -> None:
    assert read(response) == chosen
    letters = [
        letter(at, one, 0.5)
        for at, one in enumerate(response)
        if one in OPTIONS and not response[at - 1 : at].isalpha()
    ]
    found = deciding_letter(letters, chosen, response, read)
    assert found is not None
    assert (found.letter, found.at) == (chosen, place)


def test_an_option_named_by_other_tokens_has_no_probability() -> None:
    assert deciding_letter([letter(0, "C", 0.9)], "B", "b", read) is None
    assert deciding_letter([], "B", "B", read) is None


@pytest.mark.parametrize(
    ("response", "chosen"),
    [("Cardiomegaly is gone, so the answer is (c).", "C"), ("A small effusion. Answer: (a)", "A")],
)
def test_a_letter_that_did_not_name_the_option_has_no_say(response: str, chosen: str) -> None:
    """A token can be a letter and begin a word, or be a word, while other tokens name the
    option.
    """
    assert read(response) == chosen
    assert deciding_letter([letter(0, chosen, 0.9)], chosen, response, read) is None


def test_without_probabilities_there_are_no_columns(tmp_path: Path) -> None:
    scores = scores_of(samples_of(lambda document: Reply(document["target"])))
    assert not set(CONFIDENCE_NAMES) & scores.metrics.keys()
    assert scores.reliability is None
    assert "reliability" not in scores.model_dump(mode="json")
    SampleLines(samples_of(lambda document: Reply(document["target"]))).write(
        tmp_path / "samples.jsonl"
    )
    assert "probabilities" not in (tmp_path / "samples.jsonl").read_text()


def test_an_overconfident_model_is_off_by_confidence_minus_accuracy() -> None:
    scores = scores_of(samples_of(by_policy("overconfident", seed=4)))
    accuracy = scores.metrics["accuracy"].value
    assert accuracy is not None
    assert 0 < accuracy < 0.99
    assert scores.metrics["ece"].value == pytest.approx(0.99 - accuracy)
    assert scores.metrics["aurc"].value == pytest.approx(1 - accuracy)
    assert scores.metrics["accuracy_at_80"].value == pytest.approx(accuracy)
    assert scores.reliability is not None
    (one,) = scores.reliability.bins
    assert (one.confidence, one.accuracy) == (pytest.approx(0.99), pytest.approx(accuracy))
    assert scores.reliability.curve == pytest.approx([accuracy] * 10)
    assert one.interval == scores.metrics["accuracy"].interval


def test_the_bins_add_up_to_the_answers_and_the_curve_ends_at_the_accuracy() -> None:
    scores = scores_of(samples_of(by_policy("calibrated", seed=2)))
    found = scores.reliability
    assert found is not None
    assert sum(one.answers for one in found.bins) == scores.items == scores.metrics["ece"].samples
    assert {round(one.confidence, 2) for one in found.bins} <= {0.55, 0.65, 0.75, 0.85, 0.95}
    assert found.curve[-1] == pytest.approx(scores.metrics["accuracy"].value)
    gaps = (
        sum(one.answers * abs(one.accuracy - one.confidence) for one in found.bins) / scores.items
    )
    assert scores.metrics["ece"].value == pytest.approx(gaps)


def test_answers_without_a_confidence_are_counted_by_reason() -> None:
    documents = task_documents(TASK)
    named = {
        documents[0]["sample_id"]: Reply("None that I can see", probabilities=Probabilities(0.4)),
        documents[1]["sample_id"]: Reply("b", probabilities=Probabilities(0.4)),
        documents[2]["sample_id"]: Reply("B"),
    }
    rest = by_policy("calibrated")
    scores = scores_of(samples_of(lambda one: named.get(one["sample_id"]) or rest(one)))
    assert scores.reliability is not None
    assert scores.reliability.without == {
        "no_probabilities": 1,
        "no_answer": 1,
        "no_letter_token": 1,
    }
    assert scores.metrics["confidence_given"].value == pytest.approx(1 - 3 / len(documents))
    assert scores.metrics["ece"].samples == len(documents) - 3


def test_a_failed_request_leaves_the_scores_open() -> None:
    lost = task_documents(TASK)[0]["sample_id"]
    rest = by_policy("calibrated")
    samples = samples_of(
        lambda one: Reply.failure("gone") if one["sample_id"] == lost else rest(one)
    )
    for name in CONFIDENCE_NAMES:
        score = scores_of(samples).metrics[name]
        assert (score.samples - 1, score.answered) == (score.answered, score.samples - 1)


def test_stated_confidences_need_no_probabilities() -> None:
    rest = by_policy("calibrated", seed=2)

    def reply(document: dict[str, Any]) -> Reply:
        return replace(rest(document), probabilities=None)

    spoken = scores_of(samples_of(reply, f"{TASK}_verbalised"))
    recorded = scores_of(samples_of(rest))
    for name in CONFIDENCE_NAMES:
        assert spoken.metrics[name] == recorded.metrics[name]
    documents = task_documents(TASK)
    said = [
        "B",
        "B\nConfidence: 110%",
        "B\nConfidence: 50%\nConfidence: 60%",
        "hm\nConfidence: 50%",
    ]
    named = {one["sample_id"]: Reply(text) for one, text in zip(documents, said, strict=False)}
    mixed = scores_of(
        samples_of(lambda one: named.get(one["sample_id"]) or reply(one), f"{TASK}_verbalised")
    )
    assert mixed.reliability is not None
    assert mixed.reliability.without == {
        "no_answer": 1,
        "missing": 1,
        "several": 1,
        "out_of_range": 1,
    }


def test_stated_confidences_of_options_without_letters() -> None:
    """MedStreamBench: the answer is one option, several, or ``unanswerable``; each with a second
    line.
    """
    task = "medstreambench_retrospective_verbalised"
    documents = task_documents(task)
    assert all(one["options"] for one in documents)
    several = next(one["sample_id"] for one in documents if one["multi_select"])
    declines = next(one["sample_id"] for one in documents if not one["multi_select"])

    def reply(document: dict[str, Any]) -> Reply:
        sure = "**Confidence:** 40%" if document["sample_id"] == several else "Confidence: 80%"
        answer = "unanswerable" if document["sample_id"] == declines else document["target"]
        return Reply(f"Answer: {answer}\n{sure}")

    samples = samples_of(reply, task)
    scores = score_samples(samples, get_benchmark("medstreambench"))
    count = len(documents)
    assert scores.metrics["content"].value == pytest.approx(1 - 1 / count)
    assert scores.metrics["confidence_given"].value == 1.0
    assert scores.metrics["brier"].value == pytest.approx(
        (0.8**2 + 0.6**2 + (count - 2) * 0.2**2) / count
    )


def test_probabilities_survive_rescoring_and_an_interrupted_run(tmp_path: Path) -> None:
    samples = samples_of(by_policy("calibrated"))
    spec = load_spec(TASK)
    assert scored_samples(
        spec, [SampleLines(samples)[place] for place in range(len(samples))]
    ) == sorted(samples, key=lambda one: one.sample_id)
    reply = Reply("B", probabilities=Probabilities(0.5, (letter(0, "B", 0.9, 0.8),)))
    store = AnswerStore(tmp_path / "run")
    store.add([Answer(Slot(TASK, 0, 0, "prompt"), reply)])
    store.close()
    assert [one.reply for one in read_answers(tmp_path / "run")] == [reply]


def test_open_answers_are_right_by_the_declared_metric() -> None:
    task = "kvasir_vqa_x1_level1"
    documents = task_documents(task)

    def reply(document: dict[str, Any]) -> Reply:
        right = document["sample_id"] == documents[0]["sample_id"]
        return Reply(
            document["target"] if right else "something else",
            probabilities=Probabilities(0.9 if right else 0.2),
        )

    samples = samples_of(reply, task)
    table = item_table(samples, get_benchmark("kvasir_vqa_x1"))
    assert set(CONFIDENCE_NAMES) <= set(table.metrics)
    scores = score_samples(samples, get_benchmark("kvasir_vqa_x1"))
    count = len(documents)
    assert scores.metrics["ece"].value == pytest.approx((0.1 + 0.2 * (count - 1)) / count)
    expected = [1 - 1 / rank for rank in (1, *([count] * (count - 1)))]
    assert scores.metrics["aurc"].value == pytest.approx(sum(expected) / count)


def test_a_run_without_confidences_is_compared_by_its_other_scores() -> None:
    sure, silent = (
        item_table(samples_of(reply), get_benchmark("mi_cxr"))
        for reply in (
            by_policy("calibrated"),
            lambda document: Reply(document["target"], probabilities=Probabilities(0.9)),
        )
    )
    found = compare_tables(("sure", sure), ("silent", silent)).metrics
    assert found.keys() == {"accuracy", "confidence_given"}
    assert found["confidence_given"].difference == 1.0
