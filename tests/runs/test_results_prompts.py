"""Questions asked with paraphrased prompts: documents, closed forms of every score, and what is never scored."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from medtasks.leaderboard.intake.remove_rows import remove_rows
from variant_runs import FAILURE, plain, policy, run_of, scores_of, values

from medtasks.benchmarks.documents import prompt_text, task_documents, task_rows
from medtasks.benchmarks.variants import joined_items, varied_rows
from medtasks.catalog.benchmark import SampleView, Value
from medtasks.catalog.prompts import template_path
from medtasks.catalog.registry import get_benchmark
from medtasks.catalog.spec import leaf_tasks, load_spec
from medtasks.catalog.task_model import MOST_PROMPTS, prompt_metrics
from medtasks.core.errors import UsageError
from medtasks.metrics.base import Array
from medtasks.metrics.registry import get_metric
from medtasks.metrics.variants import half_of, prompt_statistics
from medtasks.verify.scored import scored_record

Document = Mapping[str, Any]
MI_CXR = get_benchmark("mi_cxr")
ICR = "mi_cxr_icr_prompts"
FAMILIES = [
    *("mi_cxr_prompts", "mi_cxr_icr_variant_prompts", "med_cmr_mcq_prompts", "medstreambench_prompts"),
    "kvasir_vqa_x1_prompts",
]
TASKS = [leaf for family in FAMILIES for leaf in leaf_tasks(family)]
OVER = ("worst_prompt", "best_prompt", "prompt_spread")
HALVES = (0, 1)


# --- documents and hashes ---


@pytest.mark.parametrize("task", TASKS)
def test_every_question_is_asked_once_with_every_template(task: str) -> None:
    originals, templates = plain(task), load_spec(task).metadata.prompts
    documents = task_documents(task)
    asked = [name for name in originals if any(one["prompt_of"] == name for one in documents)]
    assert [(one["prompt_of"], one["prompt_template"]) for one in documents] == [
        *itertools.product(asked, templates)  # the prompts of a question are neighbours, so that they share its media
    ]
    assert len(originals) - len(asked) == sum(task_rows(task).excluded().values())
    facts = {"prompt_of", "prompt", "prompts", "prompt_template", "prompt_metric", "prompt_half", "sample_id"}
    for document in documents:
        original = originals[document["prompt_of"]]
        assert {name: one for name, one in document.items() if name not in facts} == {
            name: one for name, one in original.items() if name != "sample_id"
        }
        assert document["prompts"] == len(templates)
        assert templates[document["prompt"] - 1] == document["prompt_template"]
        assert document["prompt_half"] == half_of(original["cluster"])
    assert len({one["sample_id"] for one in documents}) == len(documents)


@pytest.mark.parametrize("task", TASKS)
def test_prompts_of_a_question_differ_and_the_first_is_the_plain_one(task: str) -> None:
    spec = load_spec(task)
    before = load_spec(str(spec.metadata.compare_with))
    assert (spec.filters, spec.generation, spec.metrics) == (before.filters, before.generation, before.metrics)
    originals = plain(task)
    for name, group in by_question(task_documents(task)).items():
        prompts = [prompt_text(one, str(spec.template)) for one in group]
        assert prompts[0] == prompt_text(originals[name], str(before.template))
        assert len(set(prompts)) == len(prompts) >= 3


@pytest.mark.parametrize("number", range(4))
def test_the_hash_covers_every_template_and_no_plain_hash_changes(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, before = load_spec(ICR), load_spec("mi_cxr_icr")
    was = spec.prompt_hash, before.prompt_hash
    name = spec.metadata.prompts[number]
    changed = tmp_path / name
    changed.parent.mkdir()
    changed.write_text(template_path(name).read_text(encoding="utf-8") + ".", encoding="utf-8")
    monkeypatch.setenv("MEDTASKS_TEMPLATES", str(tmp_path))
    assert spec.prompt_hash != was[0]
    assert (before.prompt_hash == was[1]) == (number > 0)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"options": []}, "no_options"),
        ({"options": ["yes", "no"], "multi_select": True}, "not_one_answer"),
        ({"options": ["yes", "no"], "rounds": 3}, "not_one_answer"),
        ({"options": ["yes", "no"]}, ""),
        ({"choices": {"A": "yes", "B": "no"}}, ""),
        ({"question": "an open one"}, ""),
    ],
)
def test_what_has_no_single_answer_is_left_out_with_its_reason(changed: dict[str, Any], reason: str) -> None:
    rows = task_rows("medstreambench_present_prompts")
    assert rows.unusable is not None
    assert rows.unusable({"target": "yes", **changed}) == reason


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"prompts": ("mi_cxr/mcq_2.j2", "mi_cxr/mcq.j2")},
            r"prompts\[0\] is 'mi_cxr/mcq_2\.j2', expected 'mi_cxr/mcq",
        ),
        ({"compare_with": "mi_cxr"}, r"compare_with is 'mi_cxr', expected a task that asks each question once"),
        ({"compare_with": ICR}, r"expected a task that asks each question once"),
        ({"compare_with": "mi_cxr_icr_circular"}, r"expected a task that asks each question once"),
    ],
)
def test_what_cannot_be_paraphrased_is_refused_in_one_sentence(change: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        varied_rows(ICR, load_spec(ICR).metadata.model_copy(update=change))


# --- closed forms ---


@pytest.mark.parametrize("task", TASKS)
def test_the_oracle_does_not_depend_on_the_prompt(task: str) -> None:
    found = values(scores_of(task, policy("oracle")))
    first, count = load_spec(task).metrics[0], len(load_spec(task).metadata.prompts)
    assert [found[name] for name in (first, *(f"prompt_{number + 1}" for number in range(count)))] == [1.0] * (
        count + 1
    )
    assert found["prompt_agreement"] == (None if task.startswith("kvasir") else 1.0)
    assert set(prompt_metrics(count)) <= set(found)
    assert {found[name] for name in OVER[:2]} <= {1.0, None}  # None: the miniature data have too few clusters
    assert found["prompt_spread"] in (0.0, None)


@pytest.mark.parametrize("right", [1, 2, 3, 4])
def test_a_policy_that_is_right_only_under_one_prompt(right: int) -> None:
    """Scores 1, 0, 0, 0: mean 1/4, and a standard deviation of 1/2."""
    found = values(scores_of(ICR, lambda one: str(one["target"]) if one["prompt"] == right else ""))
    assert found == {
        "accuracy": 0.25,
        "worst_prompt": 0.0,
        "best_prompt": 1.0,
        "prompt_spread": pytest.approx(0.5),
        "prompt_agreement": 0.0,
        **{f"prompt_{number}": float(number == right) for number in range(1, 5)},
    }


def views(answers: Sequence[str], target: str = "A", name: str = "q", half: int = 0) -> list[SampleView]:
    """One question's answers under each prompt."""
    found = []
    for number, answer in enumerate(answers, start=1):
        status = "ok" if answer in "ABCDE" else answer.strip("[]")
        value = {"accuracy": Value(statistics=(float(answer == target), 1.0))}
        if status == "failed":
            value = {"accuracy": Value(low=(0.0, 1.0), high=(1.0, 1.0), failed=True)}
        facts = {"prompt_of": name, "prompts": len(answers), "prompt_metric": "accuracy", "prompt_half": half}
        document = {**facts, "prompt": number, "target": target}
        found.append(SampleView(f"{name}~p{number}", "p", document, answer, status, value))
    return found


def summed(name: str, samples: Sequence[SampleView]) -> float:
    rows = [item.values[name].statistics for item in joined_items(MI_CXR, samples).items]
    return float(get_metric(name).score(np.sum(np.array(rows), axis=0)))


def test_scores_worked_out_by_hand() -> None:
    """One half scores 1, 1/2, 0 under the three prompts, the other 1/2, 1/2, 0."""
    samples = [
        *views("AAB", name="1", half=0),
        *views("ABB", name="2", half=0),
        *views("ABB", name="3", half=1),
        *views("BAB", name="4", half=1),
    ]
    # best: prompt 1 on the first half, 1/2 on the second; prompts 1 and 2 on the second, (1 + 1/2) / 2 on the first
    assert summed("best_prompt", samples) == pytest.approx((1 / 2 + 3 / 4) / 2)
    assert summed("worst_prompt", samples) == 0.0
    # deviations 1/2, 0, -1/2 and 1/6, 1/6, -1/3: covariance (1/12 + 0 + 1/6) / 2
    assert summed("prompt_spread", samples) == pytest.approx((1 / 8) ** 0.5)
    assert summed("prompt_agreement", samples) == 0.0
    assert summed("accuracy", samples) == pytest.approx(5 / 12)
    assert [summed(f"prompt_{number}", samples) for number in (1, 2, 3)] == [0.75, 0.5, 0.0]


def halves_of(first: Sequence[float], second: Sequence[float]) -> Array:
    """Totals with these scores of the prompts in the two halves."""
    sides = zip((first, second), HALVES, strict=True)
    return np.sum([prompt_statistics([(one, 1) for one in side], half) for side, half in sides], axis=0)


SCORES = st.lists(st.tuples(*[st.floats(0, 1, width=16)] * 2), min_size=2, max_size=MOST_PROMPTS)


@given(SCORES, st.randoms(use_true_random=False))
@settings(max_examples=60, derandomize=True)
def test_scores_agree_with_an_independent_computation(pairs: list[tuple[float, float]], order: Any) -> None:
    first, second = ([*side] for side in zip(*pairs, strict=True))
    totals = halves_of(first, second)
    covariance = float(np.cov(first, second, ddof=1)[0, 1])
    assert float(get_metric("prompt_spread").score(totals)) == pytest.approx(max(0.0, covariance) ** 0.5, abs=1e-7)
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


# --- what is counted, and what is never scored ---


def test_a_response_without_one_option_is_wrong_and_does_not_agree() -> None:
    scores = scores_of(ICR, lambda one: "I cannot tell." if one["prompt"] == 1 else str(one["target"]))
    assert values(scores)["accuracy"] == 0.75
    assert values(scores)["prompt_agreement"] == 0.0
    assert scores.status == {"none": scores.items, "ok": 3 * scores.items}
    silent = scores_of(ICR, lambda _: "")
    assert values(silent)["prompt_agreement"] == 0.0  # the same status is not the same option


def test_prompts_of_a_question_are_one_item_of_its_cluster() -> None:
    scores = scores_of(ICR, policy("oracle"))
    direct = plain(ICR)
    assert (scores.items, scores.samples) == (len(direct), 4 * len(direct))
    assert scores.clusters == len({one["cluster"] for one in direct.values()})


def test_a_question_with_a_failed_prompt_is_scored_only_under_the_others() -> None:
    first = task_documents(ICR)[0]["prompt_of"]
    scores = scores_of(
        ICR, lambda one: FAILURE if (one["prompt_of"], one["prompt"]) == (first, 3) else str(one["target"])
    )
    for name in ("accuracy", "prompt_agreement", "prompt_3", *OVER):
        score = scores.metrics[name]
        assert (score.samples, score.answered, score.incomplete) == (scores.items, scores.items - 1, True)
        assert score.value == (0.0 if name == "prompt_spread" else 1.0)
    assert scores.metrics["prompt_3"].bounds == pytest.approx((1 - 1 / scores.items, 1.0))
    assert scores.metrics["accuracy"].bounds == pytest.approx((1 - 0.25 / scores.items, 1.0))
    assert scores.metrics["prompt_spread"].bounds is None
    assert (scores.metrics["prompt_2"].answered, scores.metrics["prompt_2"].value) == (None, 1.0)


def test_prompts_that_were_not_asked_make_a_question_incomplete() -> None:
    scores = scores_of(ICR, policy("oracle"), task_documents(ICR)[:6])
    assert (scores.items, scores.incomplete, scores.samples) == (1, 1, 6)
    assert values(scores)["prompt_4"] == 1.0


def test_one_cluster_has_no_spread_and_says_so() -> None:
    scores = scores_of(ICR, policy("oracle"), task_documents(ICR)[:4])
    for name in OVER:
        assert scores.metrics[name].value is None
        assert scores.metrics[name].reason == "it is undefined for so few clusters"


# --- a run: group, comparison with the plain task, rescoring, strip ---


def by_question(documents: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for one in documents:
        found.setdefault(one["prompt_of"], []).append(one)
    return found


OPEN_ANSWERS = pytest.param(("kvasir_vqa_x1_prompts",), marks=pytest.mark.slow)


@pytest.mark.parametrize("groups", [("mi_cxr", "mi_cxr_prompts"), ("medstreambench_prompts",), OPEN_ANSWERS])
def test_a_run_is_pooled_compared_rescored_and_stripped(groups: Sequence[str], tmp_path: Path) -> None:
    record = run_of(tmp_path / "run", policy("noisy_oracle", seed=3), groups)
    group = record.groups[groups[-1]]
    first = load_spec(leaf_tasks(groups[-1])[0]).metrics[0]
    right = [one.scores[first] for task in leaf_tasks(groups[-1]) for one in record.samples[task]]
    if first != "content":  # of which samples have a payload
        assert group.metrics[first].value == pytest.approx(np.mean(np.array(right, dtype=float)))
    assert {*prompt_metrics(3)} <= {*group.metrics}
    again = scored_record(record.manifest, record.samples, own=True, whole=True)
    assert not again.changes
    assert again.groups == record.groups
    remove_rows(tmp_path / "run", tmp_path / "stripped")  # raises if scores would change
