"""Baselines through the real harness: what a perfect, a stubborn, a silent and a guessing model score."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from runs import ALL_GROUPS, Run, baseline, leaf_names
from scipy.stats import binom

from medtasks.benchmarks.documents import task_documents

MCQ = [name for name in leaf_names() if name.startswith("mi_cxr")]
OPEN = [name for name in leaf_names() if name.startswith("kvasir")]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("baselines")


@pytest.fixture(scope="module")
def oracle(output: Path) -> Run:
    return baseline("oracle", ALL_GROUPS, output / "oracle")


@pytest.fixture(scope="module")
def abstain(output: Path) -> Run:
    return baseline("abstain", ALL_GROUPS, output / "abstain")


@pytest.fixture(scope="module")
def constant(output: Path) -> Run:
    return baseline("constant", ALL_GROUPS, output / "constant")


@pytest.fixture(scope="module")
def uniform(output: Path) -> Run:
    return baseline("uniform,seed=1", ALL_GROUPS, output / "uniform")


def gold(task: str) -> Counter[str]:
    return Counter(document["target"] for document in task_documents(task))


@pytest.mark.parametrize("task", MCQ)
def test_the_oracle_is_always_right(oracle: Run, task: str) -> None:
    assert oracle.scores[task]["metrics"]["accuracy"]["value"] == 1.0


@pytest.mark.parametrize("task", OPEN)
def test_the_oracle_matches_every_answer(oracle: Run, task: str) -> None:
    metrics = oracle.scores[task]["metrics"]
    assert (metrics["exact_match"]["value"], metrics["rougeL"]["value"]) == (1.0, 1.0)


@pytest.mark.parametrize("task", MCQ)
def test_abstaining_scores_the_share_of_null_options(abstain: Run, task: str) -> None:
    counts = gold(task)
    assert abstain.scores[task]["metrics"]["accuracy"]["value"] == pytest.approx(counts["E"] / counts.total())


@pytest.mark.parametrize("task", MCQ)
def test_a_constant_letter_scores_its_share(constant: Run, task: str) -> None:
    counts = gold(task)
    assert constant.scores[task]["metrics"]["accuracy"]["value"] == pytest.approx(counts["A"] / counts.total())


@pytest.mark.parametrize("task", OPEN)
def test_one_sentence_for_every_question_matches_nothing(constant: Run, abstain: Run, task: str) -> None:
    for run in (constant, abstain):
        assert run.scores[task]["metrics"]["exact_match"]["value"] == 0.0


@pytest.mark.parametrize("task", [*MCQ, "mi_cxr"])
def test_guessing_lies_in_its_binomial_interval(uniform: Run, task: str) -> None:
    scores = uniform.scores[task]
    low, high = binom.interval(0.999, scores["samples"], 0.2)
    assert low <= round(scores["metrics"]["accuracy"]["value"] * scores["samples"]) <= high


def test_guessing_reports_its_margin_over_chance(uniform: Run) -> None:
    accuracy = uniform.scores["mi_cxr"]["metrics"]["accuracy"]
    assert accuracy["margin_over_chance"] == pytest.approx(accuracy["value"] - 0.2)


def test_positional_bias_is_reported_beside_the_gold_letters(constant: Run) -> None:
    letters = constant.scores["mi_cxr"]["letters"]
    assert letters["chosen"] == {"A": 49, "B": 0, "C": 0, "D": 0, "E": 0}
    assert sum(letters["gold"].values()) == 49


def test_two_runs_give_the_same_bytes(uniform: Run, output: Path) -> None:
    again = baseline("uniform,seed=1", ALL_GROUPS, output / "again")
    assert again.files() == uniform.files()
    changing = {"created", "settings"}
    first, second = uniform.manifest, again.manifest
    assert {key: first[key] for key in first.keys() - changing} == {
        key: second[key] for key in second.keys() - changing
    }


def test_groups_pool_their_samples(uniform: Run) -> None:
    lines = [line for level in (1, 2, 3) for line in uniform.samples(f"kvasir_vqa_x1_level{level}")]
    mean = sum(line["scores"]["rougeL"] for line in lines) / len(lines)
    assert uniform.scores["kvasir_vqa_x1"]["metrics"]["rougeL"]["value"] == pytest.approx(mean, abs=1e-12)
