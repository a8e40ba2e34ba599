"""Baselines through the real harness: what a perfect, a stubborn, a silent and a guessing model
score.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from runs import ALL_GROUPS, Run, baseline
from scipy.stats import binom

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import leaf_tasks
from medtasks.metrics.confidence import CONFIDENCE_NAMES

LEAVES = list(dict.fromkeys(leaf for group in ALL_GROUPS for leaf in leaf_tasks(group)))
MCQ = [
    name
    for name in LEAVES
    if name.startswith(("mi_cxr", "med_cmr_mcq")) and name != "mi_cxr_report"
]
LETTERS = ["mi_cxr", "med_cmr"]
GROUPS = ["kvasir_vqa_x1", *LETTERS]
"""What is scored alike in all tracks of a benchmark needs one of them."""
TRACKS = [task for task in MCQ if task in {leaf for group in GROUPS for leaf in leaf_tasks(group)}]
OPEN = [name for name in LEAVES if name.startswith("kvasir")]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("baselines")


@pytest.fixture(scope="module")
def oracle(output: Path) -> Run:
    return baseline("oracle", [*GROUPS, "mi_cxr_stagewise", "medstreambench"], output / "oracle")


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
            assert (value(run, task, "rougeL"), value(run, task, "bleu")) == (
                1.0,
                pytest.approx(1.0),
            ), task
            assert run.scores[task]["metrics"].get("exact_match", {"value": 1.0})["value"] == 1.0, (
                task
            )


def test_the_oracle_is_always_right(oracle: Run) -> None:
    assert {*TRACKS, *leaf_tasks("kvasir_vqa_x1")} < oracle.manifest["tasks"].keys()
    check_oracle(oracle)


@pytest.mark.slow
def test_the_oracle_is_right_in_every_track(output: Path) -> None:
    check_oracle(baseline("oracle", ALL_GROUPS, output / "tracks"))


def test_a_constant_letter_scores_its_share(output: Path) -> None:
    constant = baseline("constant", LETTERS, output / "constant")
    for task in TRACKS:
        assert value(constant, task) == pytest.approx(gold(task)["A"] / gold(task).total()), task


@pytest.mark.slow
def test_guessing_lies_in_its_binomial_interval(output: Path) -> None:
    uniform = baseline("uniform,seed=1", LETTERS, output / "uniform")
    for task in (*TRACKS, "mi_cxr", "med_cmr_mcq"):
        count = uniform.scores[task]["samples"]
        low, high = binom.interval(0.999, count, 0.2)
        assert low <= round(value(uniform, task) * count) <= high, task


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


@pytest.mark.slow
def test_two_runs_give_the_same_bytes(output: Path) -> None:
    once, again = (
        baseline("uniform,seed=1", ALL_GROUPS, output / name) for name in ("once", "again")
    )
    assert again.files() == once.files()
    changing = {"created", "settings", "harness_stamp"}
    first, second = once.manifest, again.manifest
    assert {key: first[key] for key in first.keys() - changing} == {
        key: second[key] for key in second.keys() - changing
    }


@pytest.mark.parametrize(
    "task",
    ["mi_cxr_tel_multiple", pytest.param("medstreambench_retrospective", marks=pytest.mark.slow)],
)
def test_a_baseline_states_its_confidence_in_both_ways(
    tmp_path: Path, task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    run = baseline("calibrated,seed=1", [task, f"{task}_verbalised"], tmp_path)
    assert capsys.readouterr().out.count("  ece 0.") == 2  # in the summary
    recorded, spoken = (run.scores[name]["metrics"] for name in (task, f"{task}_verbalised"))
    scored = set(CONFIDENCE_NAMES) - {
        "confidence_given"
    }  # open answers await a judge, and have no verbalised form
    assert {name: recorded[name] for name in scored} == {name: spoken[name] for name in scored}
    assert spoken["confidence_given"]["value"] == 1.0
    assert 0 < recorded["ece"]["value"] < 1
    bins = run.scores[task]["reliability"]["bins"]
    assert sum(one["answers"] for one in bins) == run.scores[f"{task}_verbalised"]["items"]
