"""Questions asked several times, with rotated options or paraphrased prompts: every document,
closed forms of every score, and what is never scored.
"""

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

from medtasks.benchmarks.documents import prompt_text, task_documents, task_rows
from medtasks.benchmarks.variants import joined_items, question_of, varied_rows
from medtasks.catalog.items import SampleView, Value
from medtasks.catalog.prompts import template_path
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.catalog.task_model import MOST_PROMPTS, OptionOrder, prompt_metrics
from medtasks.core.errors import UsageError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.metrics.variants import half_of, prompt_statistics
from medtasks.scoring.verified_runs import scored_record

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

Document = Mapping[str, Any]
MI_CXR = get_benchmark("mi_cxr")
ROTATED, ASKED = "mi_cxr_icr_circular", "mi_cxr_icr_prompts"
FAMILIES = ("mi_cxr", "mi_cxr_icr_variant", "med_cmr_mcq", "medstreambench")
ROTATIONS = [leaf for family in FAMILIES for leaf in leaf_tasks(f"{family}_circular")]
PROMPTS = [
    leaf for family in (*FAMILIES, "kvasir_vqa_x1") for leaf in leaf_tasks(f"{family}_prompts")
]
OVER = ("worst_prompt", "best_prompt", "prompt_spread")
HALVES = (0, 1)


def by_question(documents: Sequence[Document]) -> dict[Any, list[Document]]:
    found: dict[Any, list[Document]] = {}
    for document in documents:
        found.setdefault(question_of(document), []).append(document)
    return found


def options(document: Document) -> Sequence[str]:
    return sorted(document["choices"]) if "choices" in document else document["options"]


# --- documents with rotated options ---


def rotated(rotations: int, seed: int = 0) -> list[dict[str, Any]]:
    """The documents of `ROTATED` with so many rotations."""
    order = OptionOrder(order="circular", rotations=rotations, seed=seed)
    rows = varied_rows(ROTATED, load_spec(ROTATED).metadata.model_copy(update={"options": order}))
    assert rows is not None
    return rows.documents()


@pytest.mark.parametrize("task", ROTATIONS)
def test_every_option_is_shown_once_at_every_letter(task: str) -> None:
    originals, documents = plain(task), task_documents(task)
    for document in documents:
        original, order = originals[document["rotation_of"]], document["option_order"]
        assert document["rotations"] == len(order)
        assert (
            order == sorted(order)[document["rotation"] :] + sorted(order)[: document["rotation"]]
        )
        assert (document["media"], document["cluster"]) == (original["media"], original["cluster"])
        shown = dict(zip(sorted(order), order, strict=True))
        if "choices" in document:
            assert document["choices"] == {
                letter: original["choices"][shown[letter]] for letter in shown
            }
            assert (
                document["choices"][document["target"]] == original["choices"][original["target"]]
            )
        else:
            assert document["target"] == original["target"]
            assert document["options"] == [
                original["options"][sorted(order).index(letter)] for letter in order
            ]
    asked = by_question(documents)
    assert all(len(group) == len(options(originals[name])) for name, group in asked.items())
    for name in originals.keys() - asked:
        assert len(originals[name]["options"]) < 2 or originals[name]["multi_select"]
    assert sum(task_rows(task).excluded().values()) == len(originals) - len(asked)


def test_the_null_option_is_what_an_abstention_names_and_no_ideal_response_is_kept() -> None:
    originals = plain(ROTATED)
    for document in task_documents(ROTATED):
        null = originals[document["rotation_of"]]["choices"]["E"]
        assert document["choices"][document["abstention"]] == null
    variants = task_rows(ROTATED).variants
    assert variants is not None
    made = variants({**next(iter(originals.values())), "ideal_response": "Because of T2: A"})
    assert ["ideal_response" in one for one in made] == [False] * 5


@pytest.mark.parametrize(
    ("changed", "rotations", "prompts"),
    [
        ({"options": []}, "no_options", "no_options"),
        ({"options": ["yes"]}, "no_options", ""),
        ({"options": [str(number) for number in range(27)]}, "too_many_options", ""),
        ({"options": ["A. yes", "B. no"], "target": "A. yes"}, "options_name_their_letters", ""),
        ({"options": ["yes", "no"], "multi_select": True}, "not_one_answer", "not_one_answer"),
        ({"options": ["yes", "no"], "rounds": 3}, "not_one_answer", "not_one_answer"),
        ({"options": ["yes", "no"], "target": "perhaps"}, "answer_not_an_option", ""),
        ({"options": ["yes", "no"], "target": "no"}, "", ""),
        ({"choices": {"A": "yes", "B": "no"}, "target": "yes"}, "answer_not_an_option", ""),
        ({"choices": {"A": "yes", "B": "no"}, "target": "A"}, "", ""),
        ({"question": "an open one"}, "no_options", ""),
    ],
)
def test_what_cannot_be_asked_so_is_left_out_with_its_reason(
    changed: dict[str, Any], rotations: str, prompts: str
) -> None:
    for task, reason in (("circular", rotations), ("prompts", prompts)):
        unusable = task_rows(f"medstreambench_present_{task}").unusable
        assert unusable is not None
        assert unusable({"target": "yes", **changed}) == reason


def test_a_subset_is_drawn_by_question_and_seed_and_every_rotation_is_equally_likely() -> None:
    """A model that always picks one option, whatever its letter, prefers no letter over many
    draws.
    """
    assert rotated(3) == rotated(3)
    drawn, orders, differences = Counter[int](), set(), []
    for seed in range(30):
        documents = rotated(3, seed)
        shifts = [
            tuple(one["rotation"] for one in group) for group in by_question(documents).values()
        ]
        assert {len({*group}) for group in shifts} == {3} == {one["rotations"] for one in documents}
        drawn.update(itertools.chain(*shifts))
        orders.add(tuple(shifts))
        scores = scores_of(
            ROTATED,
            lambda one: sorted(one["option_order"])[one["option_order"].index("B")],
            documents,
        )
        assert scores.letters is not None
        assert scores.letters.preference is not None
        assert scores.metrics["rotation_consistency"].value == 1.0
        differences.append([scores.letters.preference.get(name, (0.0,))[0] for name in "ABCDE"])
    expected = drawn.total() / 5
    assert len(orders) == 30
    assert all(abs(drawn[shift] - expected) < 4 * expected**0.5 for shift in range(5))
    errors = np.std(differences, axis=0) / len(differences) ** 0.5
    assert (np.abs(np.mean(differences, axis=0)) < 4 * errors).all()
    said = r"rotations is 6, but question icr-\d+ has 5 options; write at most 5, or all"
    with pytest.raises(UsageError, match=said):
        rotated(6)


# --- documents with paraphrased prompts, and hashes ---


@pytest.mark.parametrize("task", PROMPTS)
def test_every_question_is_asked_once_with_every_template(task: str) -> None:
    spec, originals, documents = load_spec(task), plain(task), task_documents(task)
    templates, before = spec.metadata.prompts, load_spec(str(spec.metadata.compare_with))
    asked = [name for name in originals if name in by_question(documents)]
    assert [(one["prompt_of"], one["prompt_template"]) for one in documents] == [
        *itertools.product(
            asked, templates
        )  # the prompts of a question are neighbours, so that they share its media
    ]
    assert len(originals) - len(asked) == sum(task_rows(task).excluded().values())
    facts = {
        "prompt_of",
        "prompt",
        "prompts",
        "prompt_template",
        "prompt_metric",
        "prompt_half",
        "sample_id",
    }
    for document in documents:
        original = originals[document["prompt_of"]]
        assert {name: one for name, one in document.items() if name not in facts} == {
            name: one for name, one in original.items() if name != "sample_id"
        }
        assert document["prompts"] == len(templates)
        assert templates[document["prompt"] - 1] == document["prompt_template"]
        assert document["prompt_half"] == half_of(original["cluster"])
    assert len({one["sample_id"] for one in documents}) == len(documents)
    # the first prompt is the plain one, the others differ
    assert (spec.filters, spec.generation, spec.metrics) == (
        before.filters,
        before.generation,
        before.metrics,
    )
    for name, group in by_question(documents).items():
        prompts = [prompt_text(one, str(spec.template)) for one in group]
        assert prompts[0] == prompt_text(originals[name], str(before.template))
        assert len(set(prompts)) == len(prompts) >= 3


@pytest.mark.parametrize("number", range(4))
def test_the_hash_covers_every_template_and_no_plain_hash_changes(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, before = load_spec(ASKED), load_spec("mi_cxr_icr")
    was = spec.prompt_hash, before.prompt_hash
    name = spec.metadata.prompts[number]
    changed = tmp_path / name
    changed.parent.mkdir()
    changed.write_text(template_path(name).read_text(encoding="utf-8") + ".", encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    assert spec.prompt_hash != was[0]
    assert (before.prompt_hash == was[1]) == (number > 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"prompts": ("mi_cxr/mcq_2.j2", "mi_cxr/mcq.j2")},
            r"prompts\[0\] is 'mi_cxr/mcq_2\.j2', expected 'mi_cxr/mcq",
        ),
        (
            {"compare_with": "mi_cxr"},
            r"compare_with is 'mi_cxr', expected a task that asks each question once",
        ),
        ({"compare_with": ROTATED}, r"expected a task that asks each question once"),
    ],
)
def test_what_cannot_be_paraphrased_is_refused_in_one_sentence(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        varied_rows(ASKED, load_spec(ASKED).metadata.model_copy(update=change))


# --- closed forms of rotations ---


@pytest.mark.parametrize("task", ROTATIONS)
def test_an_oracle_is_right_in_every_rotation_and_a_constant_letter_once(task: str) -> None:
    found = values(scores_of(task, policy("oracle")))
    main = "content" if task.startswith("medstream") else "accuracy"
    assert found[main] == found["circular_accuracy"] == found["rotation_consistency"] == 1.0
    assert found["letter_preference"] == pytest.approx(0.0, abs=1e-12)

    scores = scores_of(task, lambda document: "B" if options(document) else "")
    found, counts = (
        values(scores),
        [len(group) for group in by_question(task_documents(task)).values()],
    )
    assert found[main] == pytest.approx(np.mean([1 / count for count in counts]))
    assert found["circular_accuracy"] == found["rotation_consistency"] == 0.0
    assert found["letter_preference"] == pytest.approx(1 - len(counts) / sum(counts))
    if main == "accuracy":
        assert scores.letters is not None
        assert scores.letters.preference is not None
        preference = {name: one[0] for name, one in scores.letters.preference.items()}
        assert preference == pytest.approx({"A": -0.2, "B": 0.8, "C": -0.2, "D": -0.2, "E": -0.2})
        assert scores.letters.chosen["B"] == scores.samples == 5 * scores.items
        assert (
            scores.metrics["accuracy"].constant is None
        )  # in all rotations no letter is right more often


def views(
    facts: Mapping[str, Any], number: str, answers: Sequence[tuple[str, Document]]
) -> list[SampleView]:
    """One question's variants: the answer to each, and what the document has of its own."""
    found = []
    for place, (answer, own) in enumerate(answers):
        document = {**facts, number: place, **own}
        value = Value(statistics=(float(answer == document["target"]), 1.0))
        if answer == "[failed]":
            value = Value(low=(0.0, 1.0), high=(1.0, 1.0), failed=True)
        status = answer.strip("[]") if answer.startswith("[") else "ok"
        found.append(
            SampleView(
                f"{question_of(document)}~{place}",
                "p",
                document,
                answer,
                status,
                {"accuracy": value},
            )
        )
    return found


def rotations(
    answers: Sequence[str], target: str = "A", letters: str = "ABCD", name: str = "q"
) -> list[SampleView]:
    """One question's rotations, answered with these letters as shown; ``target`` is the original
    letter.
    """
    shown = [[*letters[shift:], *letters[:shift]] for shift in range(len(answers))]
    own = [{"option_order": order, "target": letters[order.index(target)]} for order in shown]
    facts = {"rotation_of": name, "rotations": len(answers)}
    return views(facts, "rotation", list(zip(answers, own, strict=True)))


def prompts(answers: Sequence[str], name: str = "q", half: int = 0) -> list[SampleView]:
    """One question's answers under each prompt; the right one is A."""
    facts = {
        "prompt_of": name,
        "prompts": len(answers),
        "prompt_metric": "accuracy",
        "prompt_half": half,
    }
    return views({**facts, "target": "A"}, "prompt", [(answer, {}) for answer in answers])


def summed(name: str, samples: Sequence[SampleView]) -> float:
    rows = [item.values[name].statistics for item in joined_items(MI_CXR, samples).items]
    return float(get_metric(name).score(np.sum(np.array(rows), axis=0)))


@pytest.mark.parametrize("letters", ["AB", "ABC", "ABCD"])
def test_uniform_guessing_over_all_possible_answers(letters: str) -> None:
    """Each of the k^n possible rows of answers once (in each half), so the expected scores are
    exact.
    """
    count = len(letters)
    asked = itertools.product(letters, repeat=count)
    samples = [
        one
        for row, answers in enumerate(asked)
        for one in rotations(answers, "A", letters, f"q{row}")
    ]
    assert summed("accuracy", samples) == pytest.approx(1 / count)
    assert summed("circular_accuracy", samples) == pytest.approx(count**-count)
    assert summed("rotation_consistency", samples) == pytest.approx(count ** (1 - count))
    assert summed("letter_preference", samples) == pytest.approx(0.0, abs=1e-12)

    each = itertools.product(HALVES, itertools.product(letters, repeat=3))
    samples = [
        one for row, (half, answers) in enumerate(each) for one in prompts(answers, str(row), half)
    ]
    assert summed("accuracy", samples) == pytest.approx(1 / count)
    assert (
        summed("worst_prompt", samples)
        == summed("best_prompt", samples)
        == pytest.approx(1 / count)
    )
    assert summed("prompt_spread", samples) == pytest.approx(0.0, abs=1e-9)
    assert summed("prompt_agreement", samples) == pytest.approx(count**-2)


@pytest.mark.parametrize("seen", range(1, 6))
def test_a_policy_that_reads_only_the_first_options(seen: int) -> None:
    """It answers right if the correct option is among the first ``seen``, else A."""

    def biased(document: dict[str, Any]) -> str:
        return str(document["target"]) if document["target"] in "ABCDE"[:seen] else "A"

    assert values(scores_of(ROTATED, biased)) == {
        "accuracy": pytest.approx(seen / 5),
        "circular_accuracy": float(seen == 5),
        "rotation_consistency": float(seen == 5),
        "letter_preference": pytest.approx((5 - seen) / 5),
    }


@given(st.integers(2, 26), st.data())
@settings(max_examples=40)
def test_a_model_that_reads_options_is_consistent_and_prefers_no_letter(
    count: int, data: st.DataObject
) -> None:
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[:count]
    target, believed = (data.draw(st.sampled_from(letters)) for _ in range(2))
    answers = [letters[(letters.index(believed) - shift) % count] for shift in range(count)]
    (item,) = joined_items(
        replace(MI_CXR, options=tuple(letters)), rotations(answers, target, letters)
    ).items
    assert item.values["rotation_consistency"].statistics == (1.0, 1.0)
    assert item.values["circular_accuracy"].statistics == (float(believed == target), 1.0)
    assert item.values["accuracy"].statistics == (float(believed == target), 1.0)
    preference = get_metric("letter_preference").score(
        np.array(item.values["letter_preference"].statistics)
    )
    assert float(preference) == pytest.approx(0.0, abs=1e-12)
    plainly = {(view.document["target"], view.filtered) for view in item.samples}
    assert plainly == {
        (target, believed)
    }  # as breakdowns see them, whichever rotation is the first


# --- closed forms of prompts ---


@pytest.mark.parametrize("task", PROMPTS)
def test_the_oracle_does_not_depend_on_the_prompt(task: str) -> None:
    found, spec = values(scores_of(task, policy("oracle"))), load_spec(task)
    count = len(spec.metadata.prompts)
    each = (spec.metrics[0], *(f"prompt_{number + 1}" for number in range(count)))
    assert [found[name] for name in each] == [1.0] * (count + 1)
    assert found["prompt_agreement"] == (None if task.startswith("kvasir") else 1.0)
    assert set(prompt_metrics(count)) <= set(found)
    assert {found[name] for name in OVER[:2]} <= {
        1.0,
        None,
    }  # None: the miniature data have too few clusters
    assert found["prompt_spread"] in (0.0, None)


@pytest.mark.parametrize("right", [1, 2, 3, 4])
def test_a_policy_that_is_right_only_under_one_prompt(right: int) -> None:
    """Scores 1, 0, 0, 0: mean 1/4, and a standard deviation of 1/2."""
    found = values(
        scores_of(ASKED, lambda one: str(one["target"]) if one["prompt"] == right else "")
    )
    assert found == {
        "accuracy": 0.25,
        "worst_prompt": 0.0,
        "best_prompt": 1.0,
        "prompt_spread": pytest.approx(0.5),
        "prompt_agreement": 0.0,
        **{f"prompt_{number}": float(number == right) for number in range(1, 5)},
    }


def test_scores_worked_out_by_hand() -> None:
    """One half scores 1, 1/2, 0 under the three prompts, the other 1/2, 1/2, 0."""
    samples = [
        *prompts("AAB", "1"),
        *prompts("ABB", "2"),
        *prompts("ABB", "3", 1),
        *prompts("BAB", "4", 1),
    ]
    # best: prompt 1 on the first half, 1/2 on the second; prompts 1 and 2 on the second, (1 + 1/2)
    # / 2 on the first
    assert summed("best_prompt", samples) == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert summed("worst_prompt", samples) == 0.0
    # deviations 1/2, 0, -1/2 and 1/6, 1/6, -1/3: covariance (1/12 + 0 + 1/6) / 2
    assert summed("prompt_spread", samples) == pytest.approx((1 / 8) ** 0.5)
    assert summed("prompt_agreement", samples) == 0.0
    assert summed("accuracy", samples) == pytest.approx(5 / 12)
    assert [summed(f"prompt_{number}", samples) for number in (1, 2, 3)] == [0.75, 0.5, 0.0]


def test_a_model_that_does_not_depend_on_the_prompt_has_one_score_whatever_the_halves() -> None:
    answers = [("A", 0), ("B", 1), ("B", 1), ("A", 1), ("B", 1)]
    samples = [
        one
        for row, (answer, half) in enumerate(answers)
        for one in prompts(answer * 3, str(row), half)
    ]
    names = ("accuracy", "worst_prompt", "best_prompt", "prompt_1", "prompt_2", "prompt_3")
    assert [summed(name, samples) for name in names] == pytest.approx([2 / 5] * 6)
    assert summed("prompt_spread", samples) == 0.0


def halves_of(first: Sequence[float], second: Sequence[float]) -> Array:
    """Totals with these scores of the prompts in the two halves."""
    sides = zip((first, second), HALVES, strict=True)
    return np.sum(
        [prompt_statistics([(one, 1) for one in side], half) for side, half in sides], axis=0
    )


SCORES = st.lists(st.tuples(*[st.floats(0, 1, width=16)] * 2), min_size=2, max_size=MOST_PROMPTS)


@given(SCORES, st.randoms(use_true_random=False))
@settings(max_examples=60, derandomize=True)
def test_scores_agree_with_an_independent_computation(
    pairs: list[tuple[float, float]], order: Any
) -> None:
    first, second = ([*side] for side in zip(*pairs, strict=True))
    totals = halves_of(first, second)
    covariance = float(np.cov(first, second, ddof=1)[0, 1])
    assert float(get_metric("prompt_spread").score(totals)) == pytest.approx(
        max(0.0, covariance) ** 0.5, abs=1e-7
    )
    for name, chosen in (("best_prompt", max), ("worst_prompt", min)):
        sides = [
            np.mean([there for here, there in zip(one, other, strict=True) if here == chosen(one)])
            for one, other in ((first, second), (second, first))
        ]
        assert float(get_metric(name).score(totals)) == pytest.approx(np.mean(sides))
    order.shuffle(pairs)
    for name in OVER:
        again = get_metric(name).score(halves_of(*([*side] for side in zip(*pairs, strict=True))))
        assert float(again) == pytest.approx(float(get_metric(name).score(totals)), abs=1e-7)


def test_the_variance_is_unbiased_where_the_plain_one_is_not() -> None:
    """Four equal prompts, two questions of one difficulty in each cluster: the plain standard
    deviation of the prompts' scores is far from 0, the estimate is not.
    """
    draw = np.random.default_rng(0)
    plain_variances, estimates = [], []
    for _ in range(300):
        rows = []
        for cluster in range(40):
            shift = draw.uniform(-0.25, 0.25)
            for right in draw.random((2, 4)) < 0.5 + shift:
                rows.append(
                    prompt_statistics(
                        [(float(one), 1) for one in right], half_of(f"patient {cluster}")
                    )
                )
        sums = np.sum(rows, axis=0).reshape(2, MOST_PROMPTS, 2)[:, :4]
        estimates.append(np.cov(*(sums[..., 0] / sums[..., 1]))[0, 1])
        plain_variances.append(np.var(sums[..., 0].sum(axis=0) / sums[..., 1].sum(axis=0), ddof=1))
    error = np.std(estimates) / len(estimates) ** 0.5
    assert abs(np.mean(estimates)) < 4 * error
    assert np.mean(plain_variances) > 10 * error


# --- what is counted, and what is never scored ---


def test_a_response_without_one_option_is_wrong_and_inconsistent_and_counted() -> None:
    scores = scores_of(
        ROTATED, lambda document: document["target"] if document["rotation"] else "I cannot tell."
    )
    gold = Counter(
        one["target"] for one in plain(ROTATED).values()
    )  # at the letters that no right answer has now
    distance = (
        sum(abs(gold.total() / 5 - gold[letter]) for letter in "ABCDE") / 2 / (4 * gold.total())
    )
    assert values(scores) == {
        "accuracy": pytest.approx(4 / 5),
        "circular_accuracy": 0.0,
        "rotation_consistency": 0.0,
        "letter_preference": pytest.approx(distance),
    }
    assert scores.status == {"none": scores.items, "ok": 4 * scores.items}
    assert scores.letters is not None
    assert scores.letters.chosen["[none]"] == scores.items
    scores = scores_of(
        ASKED, lambda one: "I cannot tell." if one["prompt"] == 1 else str(one["target"])
    )
    assert (values(scores)["accuracy"], values(scores)["prompt_agreement"]) == (0.75, 0.0)
    assert scores.status == {"none": scores.items, "ok": 3 * scores.items}


def test_without_any_selected_option_there_is_no_preference_and_no_agreement() -> None:
    scores = scores_of(ROTATED, lambda _: "")
    assert scores.metrics["letter_preference"].value is None
    assert scores.metrics["letter_preference"].reason == "it applies to no item here"
    assert scores.letters is not None
    assert (scores.letters.gold, scores.letters.chosen) == ({}, {"[empty]": scores.samples})
    assert values(scores)["circular_accuracy"] == values(scores)["rotation_consistency"] == 0.0
    assert (
        values(scores_of(ASKED, lambda _: ""))["prompt_agreement"] == 0.0
    )  # the same status is not the same option
    first = next(iter(plain(ROTATED)))
    scores = scores_of(
        ROTATED, lambda one: "I cannot tell." if one["rotation_of"] == first else one["target"]
    )
    assert scores.letters is not None
    assert scores.letters.chosen["[none]"] == scores.status["none"] == 5


@pytest.mark.parametrize(("task", "times"), [(ROTATED, 5), (ASKED, 4)])
def test_variants_of_a_question_are_one_item_of_its_cluster(task: str, times: int) -> None:
    scores, direct = scores_of(task, policy("oracle")), plain(task)
    assert (scores.items, scores.samples) == (len(direct), times * len(direct))
    assert scores.clusters == len({one["cluster"] for one in direct.values()})
    # variants that were not asked make a question incomplete
    scores = scores_of(task, policy("oracle"), task_documents(task)[: times + 2])
    assert (scores.items, scores.incomplete, scores.samples) == (1, 1, times + 2)
    assert values(scores)["accuracy"] == 1.0


@pytest.mark.parametrize(
    ("task", "number", "times", "whole", "without"),
    [
        (
            ROTATED,
            "rotation",
            5,
            ("circular_accuracy", "rotation_consistency"),
            ("letter_preference",),
        ),
        (ASKED, "prompt", 4, ("prompt_3", "prompt_agreement", *OVER[:2]), OVER),
    ],
)
def test_a_question_with_a_failed_variant_is_not_scored(
    task: str, number: str, times: int, whole: Sequence[str], without: Sequence[str]
) -> None:
    first = question_of(task_documents(task)[0])
    scores = scores_of(
        task,
        lambda one: FAILURE if (question_of(one), one[number]) == (first, 3) else one["target"],
    )
    for name in {"accuracy", *whole, *without}:
        score = scores.metrics[name]
        assert (score.samples, score.answered, score.incomplete) == (
            scores.items,
            scores.items - 1,
            True,
        )
        assert score.value == (0.0 if name in ("letter_preference", "prompt_spread") else 1.0)
    assert scores.metrics["accuracy"].bounds == pytest.approx((1 - 1 / times / scores.items, 1.0))
    assert scores.metrics[whole[0]].bounds == pytest.approx((1 - 1 / scores.items, 1.0))
    assert all(scores.metrics[name].bounds is None for name in without)
    if task == ASKED:  # the other prompts are scored
        assert (scores.metrics["prompt_2"].answered, scores.metrics["prompt_2"].value) == (
            None,
            1.0,
        )


def test_a_failed_rotation_leaves_open_only_what_the_others_do() -> None:
    (item,) = joined_items(MI_CXR, rotations(["B", "[failed]", "C", "B"])).items
    assert item.values["circular_accuracy"] == Value(low=(0.0, 1.0), high=(0.0, 1.0), failed=True)
    assert item.values["rotation_consistency"].high == (0.0, 1.0)
    assert item.values["accuracy"] == Value(low=(0.5, 1.0), high=(0.75, 1.0), failed=True)


def test_one_cluster_has_no_spread_and_says_so() -> None:
    scores = scores_of(ASKED, policy("oracle"), task_documents(ASKED)[:4])
    for name in OVER:
        assert scores.metrics[name].value is None
        assert scores.metrics[name].reason == "it is undefined for so few clusters"


# --- a run: group, comparison with the plain task, rescoring, strip ---

OPEN_ANSWERS = pytest.param(("kvasir_vqa_x1_prompts",), marks=pytest.mark.slow)
PROMPTS = pytest.param(("mi_cxr", "mi_cxr_prompts"), marks=pytest.mark.slow)


@pytest.mark.parametrize(
    "groups",
    [
        ("mi_cxr", "mi_cxr_circular"),
        PROMPTS,
        ("medstreambench_prompts",),
        OPEN_ANSWERS,
    ],
)
def test_a_run_is_pooled_compared_rescored_and_stripped(
    groups: Sequence[str], tmp_path: Path
) -> None:
    record = run_of(tmp_path / "run", policy("noisy_oracle", seed=3), groups)
    group, tasks = record.groups[groups[-1]], leaf_tasks(groups[-1])
    first = load_spec(tasks[0]).metrics[0]
    if first != "content":  # of which samples have a payload
        right = [one.scores[first] for task in tasks for one in record.samples[task]]
        assert group.metrics[first].value == pytest.approx(np.mean(np.array(right, dtype=float)))
    if groups[-1] == "mi_cxr_circular":
        asked: dict[str, list[bool]] = {}
        for one in itertools.chain.from_iterable(record.samples[task] for task in tasks):
            asked.setdefault(one.document["rotation_of"], []).append(one.filtered == one.target)
        assert group.metrics["circular_accuracy"].value == pytest.approx(
            np.mean([all(one) for one in asked.values()])
        )
        plainly = record.groups["mi_cxr"].breakdowns[
            "gold_option"
        ]  # by the letter of the plain order
        assert {letter: part.items for letter, part in group.breakdowns["gold_option"].items()} == {
            letter: part.items for letter, part in plainly.items()
        }
    else:
        assert {*prompt_metrics(3)} <= {*group.metrics}
    again = scored_record(record.manifest, record.samples, own=True, whole=True)
    assert not again.changes
    assert again.groups == record.groups
    remove_rows(tmp_path / "run", tmp_path / "stripped")  # raises if scores would change
