"""Minimum detectable differences from pilot runs and from assumptions, against numbers worked out here."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from made_runs import FAIR, GOOD, cxr, right, run
from medtasks.leaderboard.rank.planning import Spread, assumed_spread, default_metric, pilot_spread, plan_task
from scipy import stats
from typer.testing import CliRunner

from medtasks.benchmarks.documents import task_documents
from medtasks.cli.app import app
from medtasks.core.errors import UsageError


def jackknife(values: np.ndarray) -> float:
    """The standard error of a mean over 60 clusters of four."""
    by_cluster = values.reshape(60, 4)
    without = np.array([np.delete(by_cluster, one, axis=0).mean() for one in range(60)])
    return float(np.sqrt(59 / 60 * ((without - without.mean()) ** 2).sum()))


def test_two_pilots_give_the_spread_of_their_difference_and_one_an_upper_bound() -> None:
    spread = pilot_spread("mi_cxr", "accuracy", GOOD, FAIR)
    error = jackknife((right(0.8, 0) - right(0.6, 1))[:, 0])
    assert (spread.error, spread.clusters) == (pytest.approx(error), 60)
    factor = stats.t.ppf(0.975, 239) + stats.t.ppf(0.8, 239)
    assert spread.detectable(240) == pytest.approx(factor * error / 2)
    spread = pilot_spread("mi_cxr", "accuracy", GOOD)
    assert spread.error == pytest.approx(math.sqrt(2) * jackknife(right(0.8, 0)[:, 0]))
    assert "upper bound" in spread.basis


def test_pilots_and_scores_without_spread_are_refused_not_planned_with() -> None:
    """A model that is always right says nothing about how models differ: 0 would detect anything."""
    for task, pilots, said in (
        ("mi_cxr", (GOOD, run("twin", [cxr(0.8, 0)])), "no spread"),
        ("mi_cxr_tel", (GOOD,), "has no mi_cxr_tel"),
        ("mi_cxr", (run("always", [cxr(2.0, 0)]),), "the pilot run shows no spread"),
    ):
        with pytest.raises(UsageError, match=said):
            pilot_spread(task, "accuracy", *pilots)
    with pytest.raises(UsageError, match="--score 1"):
        assumed_spread("mi_cxr_icr", "accuracy", task_documents("mi_cxr_icr"), 1.0)


def test_assumptions_without_a_pilot() -> None:
    documents = [{"sample_id": f"s{number}", "cluster": f"c{number // 5}"} for number in range(500)]
    spread = assumed_spread("mi_cxr", "accuracy", documents, score=0.6, icc=0.2)
    assert spread.error == pytest.approx(math.sqrt(2 * 0.24 / 500 * (1 + 4 * 0.2)))
    assert spread.clusters == 100
    published = assumed_spread("mi_cxr", "accuracy", documents)
    assert "median of 12 published" in published.basis
    with pytest.raises(UsageError, match="give a pilot"):
        assumed_spread("kvasir_vqa_x1", "bleu", documents)


@pytest.mark.parametrize("difference", [0.02, 0.05, 0.2])
def test_the_clusters_needed_are_the_fewest(difference: float) -> None:
    spread = Spread(0.04, 60, "")
    needed = spread.needed(difference)
    assert needed is not None
    assert (spread.detectable(needed) or 1) <= difference < (spread.detectable(needed - 1) or 1)
    assert spread.needed(0.00001) is None


def test_sizes_follow_the_subsets_of_each_task() -> None:
    whole, half = plan_task("kvasir_vqa_x1", score=0.5, shares=(1.0, 0.5)).subsets
    assert (whole.clusters, whole.documents) == (24, 79)
    assert half.clusters == 13  # not every picture has questions of every level
    assert half.detectable is not None
    assert whole.detectable is not None
    assert half.detectable > whole.detectable


def test_the_default_metric_is_the_first_headline_score() -> None:
    found = [default_metric(task) for task in ("mi_cxr", "med_cmr_mcq", "med_cmr_open", "kvasir_vqa_x1_level1")]
    assert found == ["accuracy", "accuracy", "open_total", "judged_accuracy"]


def test_the_command_says_what_to_run(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["plan", "mi_cxr", "--score", "0.5", "--difference", "5"])
    assert result.exit_code == 0
    for said in ("MEDTASKS_SUBSET=0.5@0", "A difference of 5 needs about", "the data have 28"):
        assert said in result.stdout
    assert isinstance(CliRunner().invoke(app, ["plan", "mi_cxr", "--share", "1.5"]).exception, UsageError)
    assert CliRunner().invoke(app, ["plan", "mi_cxr", "--pilot", str(tmp_path)]).exit_code == 1
