"""Baselines through the real harness: what a perfect, a stubborn, a silent and a guessing model score."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from runs import ALL_GROUPS, Run, baseline, leaf_names
from scipy.stats import binom

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import leaf_tasks

MI_CXR = [name for name in leaf_names() if name.startswith("mi_cxr") and name != "mi_cxr_report"]
MCQ = [*MI_CXR, *(name for name in leaf_names() if name.startswith("med_cmr_mcq"))]
LETTERS = ["mi_cxr", "med_cmr"]
GROUPS = ["kvasir_vqa_x1", *LETTERS]
"""What is scored alike in all tracks of a benchmark needs one of them."""
TRACKS = [task for task in MCQ if task in {leaf for group in GROUPS for leaf in leaf_tasks(group)}]
OPEN = [name for name in leaf_names() if name.startswith("kvasir")]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("baselines")


@pytest.fixture(scope="module")
def oracle(output: Path) -> Run:
    return baseline("oracle", [*GROUPS, "mi_cxr_stagewise", "medstreambench"], output / "oracle")


@pytest.fixture(scope="module")
def abstain(output: Path) -> Run:
    return baseline("abstain", [*GROUPS, "mi_cxr_icr_variant"], output / "abstain")


@pytest.fixture(scope="module")
def constant(output: Path) -> Run:
    return baseline("constant", LETTERS, output / "constant")


@pytest.fixture(scope="module")
def uniform(output: Path) -> Run:
    return baseline("uniform,seed=1", LETTERS, output / "uniform")


def gold(task: str) -> Counter[str]:
    return Counter(document["target"] for document in task_documents(task))


def value(run: Run, task: str, metric: str = "accuracy") -> float:
    found: float = run.scores[task]["metrics"][metric]["value"]
    return found


def check_oracle(run: Run) -> None:
    """It is always right, and matches every answer."""
    for task in run.manifest["tasks"]:
        if task in MCQ:
            assert value(run, task) == 1.0, task
        if task in OPEN:
            assert (value(run, task, "rougeL"), value(run, task, "bleu")) == (1.0, pytest.approx(1.0)), task
            assert run.scores[task]["metrics"].get("exact_match", {"value": 1.0})["value"] == 1.0, task


def test_the_oracle_is_always_right(oracle: Run) -> None:
    assert {*TRACKS, *leaf_tasks("kvasir_vqa_x1")} < oracle.manifest["tasks"].keys()
    check_oracle(oracle)


@pytest.mark.slow
def test_the_oracle_is_right_in_every_track(output: Path) -> None:
    check_oracle(baseline("oracle", ALL_GROUPS, output / "tracks"))


@pytest.mark.slow
def test_abstaining_scores_the_share_of_null_options(abstain: Run) -> None:
    for task in (one for one in MI_CXR if one in abstain.scores):
        assert value(abstain, task) == pytest.approx(gold(task)["E"] / gold(task).total()), task


def test_a_constant_letter_scores_its_share(constant: Run) -> None:
    for task in TRACKS:
        assert value(constant, task) == pytest.approx(gold(task)["A"] / gold(task).total()), task


@pytest.mark.slow
def test_one_sentence_for_every_question_matches_nothing(abstain: Run) -> None:
    for task in leaf_tasks("kvasir_vqa_x1"):
        assert abstain.scores[task]["metrics"].get("exact_match", {"value": 0.0})["value"] == 0.0
        assert value(abstain, task, "bleu") < 0.2


def test_guessing_lies_in_its_binomial_interval(uniform: Run) -> None:
    for task in (*TRACKS, "mi_cxr", "med_cmr_mcq"):
        count = uniform.scores[task]["samples"]
        low, high = binom.interval(0.999, count, 0.2)
        assert low <= round(value(uniform, task) * count) <= high, task


def test_guessing_reports_its_margin_over_chance(uniform: Run) -> None:
    accuracy = uniform.scores["mi_cxr"]["metrics"]["accuracy"]
    assert accuracy["margin_over_chance"] == pytest.approx(accuracy["value"] - 0.2)


def test_positional_bias_is_reported_beside_the_gold_letters(constant: Run) -> None:
    letters = constant.scores["mi_cxr"]["letters"]
    assert letters["chosen"] == {"A": 49, "B": 0, "C": 0, "D": 0, "E": 0}
    assert sum(letters["gold"].values()) == 49


STREAMS = ("medstreambench_future_streaming", "medstreambench_proactive")


def test_the_oracle_gives_every_closed_answer_in_time(oracle: Run) -> None:
    perfect = {"content_closed": 1.0, "responsiveness": 1.0, "stability": 1.0}
    wrong = {"false_alarm_rate": 0.0, "miss_rate": 0.0, "signed_delay": 0.0, "invalid_rate": 0.0}
    for task in leaf_tasks("medstreambench"):
        metrics = oracle.scores[task]["metrics"]
        for name, expected in {**perfect, **(wrong if task in STREAMS else {})}.items():
            if name in metrics:
                # one item is due half a second before a round ends, so even the oracle is that late
                late = 0.4 if name == "signed_delay" else 1e-12
                assert metrics[name]["value"] == pytest.approx(expected, abs=late), (task, name)
        assert metrics["content"]["bounds"][1] == pytest.approx(1.0), task


def test_open_answers_await_a_judge_and_count_as_neither(oracle: Run) -> None:
    total = oracle.scores["med_cmr_open"]["metrics"]["open_total"]
    assert (total["value"], total["interval"]) == (None, None)
    assert total["bounds"] == [0.0, 100.0]
    assert total["reason"] == "28 of 28 items await a judge"
    assert oracle.scores["med_cmr_open"]["status"] == {"ok": 28}


def test_the_mean_of_dimensions_stands_beside_the_pooled_accuracy(uniform: Run) -> None:
    entry = uniform.scores["med_cmr_mcq"]
    parts = [part["metrics"]["accuracy"] for part in entry["breakdowns"]["dimension"].values()]
    mean = sum(part["value"] for part in parts) / 7
    pooled = sum(part["value"] * part["samples"] for part in parts) / 43

    assert entry["metrics"]["accuracy_dimension_mean"]["value"] == pytest.approx(mean)
    assert entry["metrics"]["accuracy"]["value"] == pytest.approx(pooled)
    assert uniform.scores["med_cmr"]["metrics"]["accuracy"]["value"] == pytest.approx(pooled)
    parts = {"dimension", "ability", "modality", "organ_system", "question_type", "gold_option"}
    assert set(entry["breakdowns"]) == parts
    assert set(entry["breakdowns"]["ability"]) == {"vision", "reasoning"}


def test_coverage_stands_in_the_manifest_by_dataset(oracle: Run) -> None:
    data = oracle.manifest["data"]["medstreambench"]
    lacking = {entry["source"] for entry in data["coverage"] if entry["prepared"] < entry["records"]}
    assert lacking == {"Colonoscopic-web", "EndoVis2019"}
    assert data["excluded"] == {"degenerate": 2, "missing_media": 1, "unreadable_media": 1}
    assert oracle.scores["medstreambench"]["items"] == 56


@pytest.mark.slow
def test_two_runs_give_the_same_bytes(output: Path) -> None:
    once, again = (baseline("uniform,seed=1", ALL_GROUPS, output / name) for name in ("once", "again"))
    assert again.files() == once.files()
    changing = {"created", "settings", "harness_stamp"}
    first, second = once.manifest, again.manifest
    assert {key: first[key] for key in first.keys() - changing} == {
        key: second[key] for key in second.keys() - changing
    }
