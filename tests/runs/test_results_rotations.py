"""Questions with rotated options: every document, closed forms of every score, and what is never scored."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from medtasks.leaderboard.intake.remove_rows import remove_rows
from variant_runs import FAILURE, plain, policy, run_of, scores_of, values

from medtasks.benchmarks.documents import task_documents, task_rows
from medtasks.benchmarks.variants import joined_items, varied_rows
from medtasks.catalog.benchmark import SampleView, Value
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.catalog.task_model import OptionOrder
from medtasks.core.errors import UsageError
from medtasks.metrics.variants import letter_preference
from medtasks.runs.samples import Sample
from medtasks.runs.scores import RotatedLetters
from medtasks.verify.scored import scored_record

Document = Mapping[str, Any]
MI_CXR = get_benchmark("mi_cxr")
ICR = "mi_cxr_icr_circular"
FAMILIES = ["mi_cxr_circular", "mi_cxr_icr_variant_circular", "med_cmr_mcq_circular", "medstreambench_circular"]
TASKS = [leaf for family in FAMILIES for leaf in leaf_tasks(family)]
MAIN = {"medstreambench": "content"}


def rotated(task: str, options: OptionOrder) -> list[dict[str, Any]]:
    """The documents of ``task`` with other ``metadata.options``."""
    return varied_rows(task, load_spec(task).metadata.model_copy(update={"options": options})).documents()


# --- documents ---


@pytest.mark.parametrize("task", TASKS)
def test_every_option_is_shown_once_at_every_letter(task: str) -> None:
    originals, seen = plain(task), Counter[str]()
    for document in task_documents(task):
        original, order = originals[document["rotation_of"]], document["option_order"]
        seen[document["rotation_of"]] += 1
        assert document["rotations"] == len(order)
        assert order == sorted(order)[document["rotation"] :] + sorted(order)[: document["rotation"]]
        assert (document["media"], document["cluster"]) == (original["media"], original["cluster"])
        if "choices" in document:
            shown = dict(zip(sorted(order), order, strict=True))
            assert document["choices"] == {letter: original["choices"][shown[letter]] for letter in shown}
            assert document["choices"][document["target"]] == original["choices"][original["target"]]
        else:
            assert document["target"] == original["target"]
            places = [sorted(order).index(letter) for letter in order]
            assert document["options"] == [original["options"][place] for place in places]
    assert set(seen) | set(itertools.chain(left_out(task))) == set(originals)
    assert all(count == len(options(originals[name])) for name, count in seen.items())


def options(document: Document) -> Sequence[str]:
    return sorted(document["choices"]) if "choices" in document else document["options"]


def left_out(task: str) -> list[str]:
    """Questions without options, or with several correct ones."""
    found = [
        name
        for name, one in plain(task).items()
        if "choices" not in one and (len(one["options"]) < 2 or one["multi_select"])
    ]
    assert task_rows(task).excluded().get("no_options", 0) <= sum(task_rows(task).excluded().values()) == len(found)
    return found


def test_the_null_option_is_what_an_abstention_names() -> None:
    originals = plain(ICR)
    for document in task_documents(ICR):
        null = originals[document["rotation_of"]]["choices"]["E"]
        assert document["choices"][document["abstention"]] == null


def test_an_ideal_response_for_the_plain_order_is_not_kept() -> None:
    variants = task_rows(ICR).variants
    assert variants is not None
    made = variants({**next(iter(plain(ICR).values())), "ideal_response": "Because of T2: A"})
    assert len(made) == 5
    assert not any("ideal_response" in one for one in made)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"options": []}, "no_options"),
        ({"options": ["yes"]}, "no_options"),
        ({"options": [str(number) for number in range(27)]}, "too_many_options"),
        ({"options": ["A. yes", "B. no"], "target": "A. yes"}, "options_name_their_letters"),
        ({"options": ["yes", "no"], "multi_select": True}, "not_one_answer"),
        ({"options": ["yes", "no"], "rounds": 3}, "not_one_answer"),
        ({"options": ["yes", "no"], "target": "perhaps"}, "answer_not_an_option"),
        ({"options": ["yes", "no"], "target": "no"}, ""),
        ({"choices": {"A": "yes", "B": "no"}, "target": "yes"}, "answer_not_an_option"),
        ({"choices": {"A": "yes", "B": "no"}, "target": "A"}, ""),
    ],
)
def test_what_cannot_be_rotated_is_left_out_with_its_reason(changed: dict[str, Any], reason: str) -> None:
    rows = task_rows("medstreambench_present_circular")
    assert rows.unusable is not None
    assert rows.unusable({"target": "yes", **changed}) == reason


def test_a_subset_is_drawn_by_question_and_seed_and_every_rotation_is_equally_likely() -> None:
    three = OptionOrder(order="circular", rotations=3)
    documents = rotated(ICR, three)
    assert documents == rotated(ICR, three)
    assert {one["rotations"] for one in documents} == {3}
    assert {len(set(group)) for group in shifts(documents).values()} == {3}
    seeds = [rotated(ICR, OptionOrder(order="circular", rotations=3, seed=seed)) for seed in range(30)]
    assert len({tuple(map(tuple, shifts(one).values())) for one in seeds}) == 30
    drawn = Counter(shift for one in seeds for group in shifts(one).values() for shift in group)
    expected = drawn.total() / 5
    assert all(abs(drawn[shift] - expected) < 4 * expected**0.5 for shift in range(5))


def shifts(documents: Sequence[Document]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for document in documents:
        found.setdefault(document["rotation_of"], []).append(document["rotation"])
    return found


def test_more_rotations_than_options_are_refused_in_one_sentence() -> None:
    with pytest.raises(
        UsageError, match=r"rotations is 6, but question icr-\d+ has 5 options; write at most 5, or all"
    ):
        rotated(ICR, OptionOrder(order="circular", rotations=6))


# --- closed forms ---


@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_is_right_in_every_rotation_and_prefers_no_letter(task: str) -> None:
    found = values(scores_of(task, policy("oracle")))
    main = MAIN.get(load_spec(task).metadata.benchmark, "accuracy")
    assert found[main] == found["circular_accuracy"] == found["rotation_consistency"] == 1.0
    assert found["letter_preference"] == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("task", [one for one in TASKS if not one.startswith("medstream")])
def test_a_constant_letter_is_right_once_and_never_consistent(task: str) -> None:
    scores = scores_of(task, policy("constant", answer="B"))
    assert values(scores) == {
        "accuracy": pytest.approx(1 / 5),
        "circular_accuracy": 0.0,
        "rotation_consistency": 0.0,
        "letter_preference": pytest.approx(4 / 5),
    }
    assert isinstance(scores.letters, RotatedLetters)
    assert {name: one[0] for name, one in scores.letters.preference.items()} == pytest.approx(
        {"A": -0.2, "B": 0.8, "C": -0.2, "D": -0.2, "E": -0.2}
    )
    assert scores.letters.chosen["B"] == scores.samples == 5 * scores.items


def test_a_letter_is_as_good_as_its_text_where_options_are_a_list() -> None:
    task = "medstreambench_retrospective_circular"
    by_letter = values(scores_of(task, lambda document: "A" if options(document) else ""))
    shares = [1 / one["rotations"] for one in task_documents(task) if one["rotation"] == 0]
    assert by_letter["content"] == pytest.approx(np.mean(shares))
    assert (by_letter["circular_accuracy"], by_letter["rotation_consistency"]) == (0.0, 0.0)
    answers = sum(round(1 / share) for share in shares)
    assert by_letter["letter_preference"] == pytest.approx(1 - len(shares) / answers)


def views(answers: Sequence[str], target: str = "A", letters: str = "ABCD", name: str = "q") -> list[SampleView]:
    """One question's rotations, answered with these letters as shown; ``target`` is the original letter."""
    found = []
    for shift, answer in enumerate(answers):
        order = [*letters[shift:], *letters[:shift]]
        now = letters[order.index(target)]
        right = float(answer == now)
        facts = {"rotation_of": name, "rotation": shift, "rotations": len(answers), "option_order": order}
        status = "ok" if answer in letters else answer.strip("[]")
        value = {"accuracy": Value(statistics=(right, 1.0))}
        if status == "failed":
            value = {"accuracy": Value(low=(0.0, 1.0), high=(1.0, 1.0), failed=True)}
        found.append(SampleView(f"{name}~{shift}", "p", {**facts, "target": now}, answer, status, value))
    return found


@pytest.mark.parametrize("seen", range(1, 6))
def test_a_policy_that_reads_only_the_first_options(seen: int) -> None:
    """It answers right if the correct option is among the first ``seen``, else A."""

    def biased(document: dict[str, Any]) -> str:
        return str(document["target"]) if document["target"] in "ABCDE"[:seen] else "A"

    found = values(scores_of(ICR, biased))
    assert found == {
        "accuracy": pytest.approx(seen / 5),
        "circular_accuracy": float(seen == 5),
        "rotation_consistency": float(seen == 5),
        "letter_preference": pytest.approx((5 - seen) / 5),
    }


@given(st.integers(2, 26), st.data())
@settings(max_examples=40)
def test_a_model_that_reads_options_is_consistent_and_prefers_no_letter(count: int, data: st.DataObject) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]
    target, believed = (data.draw(st.sampled_from(letters)) for _ in range(2))
    answers = [letters[(letters.index(believed) - shift) % count] for shift in range(count)]
    (item,) = joined_items(replace(MI_CXR, options=tuple(letters)), views(answers, target, letters)).items
    assert item.values["rotation_consistency"].statistics == (1.0, 1.0)
    assert item.values["circular_accuracy"].statistics == (float(believed == target), 1.0)
    assert item.values["accuracy"].statistics == (float(believed == target), 1.0)
    statistics = np.array(item.values["letter_preference"].statistics)
    assert float(letter_preference(statistics)) == pytest.approx(0.0, abs=1e-12)
    plainly = {(view.document["target"], view.filtered) for view in item.samples}
    assert plainly == {(target, believed)}  # as breakdowns see them, whichever rotation is the first


# --- what is counted, and what is never scored ---


def test_a_response_without_one_option_is_wrong_and_inconsistent_and_counted() -> None:
    scores = scores_of(ICR, lambda document: document["target"] if document["rotation"] else "I cannot tell.")
    gold = Counter(one["target"] for one in plain(ICR).values())  # at the letters that no right answer has now
    distance = sum(abs(gold.total() / 5 - gold[letter]) for letter in "ABCDE") / 2 / (4 * gold.total())
    assert values(scores) == {
        "accuracy": pytest.approx(4 / 5),
        "circular_accuracy": 0.0,
        "rotation_consistency": 0.0,
        "letter_preference": pytest.approx(distance),
    }
    assert scores.status == {"none": scores.items, "ok": 4 * scores.items}
    assert scores.letters is not None
    assert scores.letters.chosen["[none]"] == scores.items


def test_without_any_selected_option_there_is_no_preference() -> None:
    scores = scores_of(ICR, lambda _: "")
    assert scores.metrics["letter_preference"].value is None
    assert scores.metrics["letter_preference"].reason == "it applies to no item here"
    assert scores.letters is not None
    assert (scores.letters.gold, scores.letters.chosen) == ({}, {"[empty]": scores.samples})
    assert values(scores)["circular_accuracy"] == values(scores)["rotation_consistency"] == 0.0


def test_a_question_without_any_selected_option_is_in_the_letters_of_the_others() -> None:
    first = next(iter(plain(ICR)))
    scores = scores_of(
        ICR, lambda document: "I cannot tell." if document["sample_id"].startswith(f"{first}~") else document["target"]
    )
    assert scores.letters is not None
    assert scores.letters.chosen["[none]"] == scores.status["none"] == 5


def test_rotations_of_a_question_are_one_item_of_its_cluster() -> None:
    scores = scores_of(ICR, policy("oracle"))
    direct = plain(ICR)
    assert (scores.items, scores.samples) == (len(direct), 5 * len(direct))
    assert scores.clusters == len({one["cluster"] for one in direct.values()})


def test_a_question_with_a_failed_rotation_is_not_scored() -> None:
    first = task_documents(ICR)[0]["rotation_of"]
    scores = scores_of(
        ICR, lambda one: FAILURE if (one["rotation_of"], one["rotation"]) == (first, 3) else str(one["target"])
    )
    for name in ("accuracy", "circular_accuracy", "rotation_consistency", "letter_preference"):
        score = scores.metrics[name]
        assert (score.samples, score.answered, score.incomplete) == (scores.items, scores.items - 1, True)
        assert score.value == (0.0 if name == "letter_preference" else 1.0)
    assert scores.metrics["accuracy"].bounds == pytest.approx((1 - 0.2 / scores.items, 1.0))
    assert scores.metrics["circular_accuracy"].bounds == pytest.approx((1 - 1 / scores.items, 1.0))
    assert scores.metrics["letter_preference"].bounds is None


def test_a_failed_rotation_leaves_open_only_what_the_others_do() -> None:
    (item,) = joined_items(MI_CXR, views(["B", "[failed]", "C", "B"])).items
    assert item.values["circular_accuracy"] == Value(low=(0.0, 1.0), high=(0.0, 1.0), failed=True)
    assert item.values["rotation_consistency"].high == (0.0, 1.0)
    assert item.values["accuracy"] == Value(low=(0.5, 1.0), high=(0.75, 1.0), failed=True)


def test_rotations_that_were_not_asked_make_a_question_incomplete() -> None:
    documents = task_documents(ICR)[:8]
    scores = scores_of(ICR, policy("oracle"), documents)
    assert (scores.items, scores.incomplete, scores.samples) == (1, 1, 8)
    assert values(scores)["circular_accuracy"] == 1.0


# --- a run: group, comparison with the plain task, rescoring, strip ---


def test_a_run_is_pooled_compared_rescored_and_stripped(tmp_path: Path) -> None:
    record = run_of(tmp_path / "run", policy("noisy_oracle", seed=3), ("mi_cxr", "mi_cxr_circular"))
    group = record.groups["mi_cxr_circular"]
    right = [
        all(one.filtered == one.target for one in rotations_)
        for task in leaf_tasks("mi_cxr_circular")
        for rotations_ in by_question(record.samples[task]).values()
    ]
    assert group.metrics["circular_accuracy"].value == pytest.approx(np.mean(right))
    again = scored_record(record.manifest, record.samples, own=True, whole=True)
    assert not again.changes
    assert again.groups == record.groups
    assert set(group.breakdowns["gold_option"]) == set(record.groups["mi_cxr"].breakdowns["gold_option"])
    for letter, part in group.breakdowns["gold_option"].items():  # by the letter of the plain order
        assert part.items == record.groups["mi_cxr"].breakdowns["gold_option"][letter].items
    remove_rows(tmp_path / "run", tmp_path / "stripped")  # raises if scores would change


def by_question(samples: Sequence[Sample]) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {}
    for one in samples:
        found.setdefault(one.document["rotation_of"], []).append(one)
    return found
