"""Scores of a seeded baseline, pinned; set MEDTASKS_UPDATE_GOLDEN=1 to write the file anew, then
read the diff.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from variant_runs import FAILURE, policy, run_of

from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.registry import all_benchmarks
from medtasks.harness import run_tasks
from medtasks.runs.replies import Reply

ELSEWHERE = ("meteor", "bertscore", "bleurt")
"""What depends on the dictionary or the weights that are there is pinned elsewhere."""

GOLDEN = Path(__file__).parent / "golden_scores.json"


def pinned(scores: dict[str, Any]) -> dict[str, Any]:
    """Values to nine digits."""
    return {
        name: {
            "samples": entry["samples"],
            "status": entry["status"],
            **{
                metric: _value(score)
                for metric, score in entry["metrics"].items()
                if metric not in ELSEWHERE
            },
        }
        for name, entry in {**scores["tasks"], **scores["groups"]}.items()
    }


def _value(score: dict[str, Any]) -> float | list[float] | None:
    """The value or, while a judge is awaited, the bounds."""
    if score["value"] is not None:
        return round(score["value"], 9)
    return None if score["bounds"] is None else [round(bound, 9) for bound in score["bounds"]]


def test_a_seeded_noisy_oracle_scores_what_it_scored_before(tmp_path: Path) -> None:
    folder = run_tasks(
        "medtasks_baseline",
        "policy=noisy_oracle,accuracy=0.6,seed=5",
        list(all_benchmarks()),
        tmp_path,
    )
    check(pinned(json.loads((folder / "scores.json").read_text(encoding="utf-8"))))


def test_rotations_prompts_confidences_and_failures_score_what_they_scored_before(
    tmp_path: Path,
) -> None:
    calibrated = policy("calibrated", seed=3)

    def reply(document: dict[str, Any]) -> str | Reply:
        chance = hashlib.sha256(document["sample_id"].encode()).digest()[0]
        return FAILURE if chance < 20 else "I cannot tell." if chance < 30 else calibrated(document)

    groups = (
        "mi_cxr_circular",
        "medstreambench_circular",
        "med_cmr_mcq_prompts",
        "mi_cxr_verbalised",
        "medstreambench",
    )
    found = pinned(run_of(tmp_path / "run", reply, groups).results)
    check({f"with failures: {name}": entry for name, entry in found.items()})


def check(found: dict[str, Any]) -> None:
    """Every value in the golden file is found; a metric that was added since need not be in it."""
    golden = json.loads(GOLDEN.read_text(encoding="utf-8"))
    if os.environ.get("MEDTASKS_UPDATE_GOLDEN") == "1":
        golden = {**golden, **found}
        GOLDEN.write_text(json.dumps(golden, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name, entry in found.items():
        assert {key: entry[key] for key in golden[name]} == golden[name], name


def test_a_simple_back_end_of_the_harness_runs_our_tasks(tmp_path: Path) -> None:
    folder = run_tasks("dummy", "response=(A)", ["mi_cxr_tel"], tmp_path)
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["tasks"][
        "mi_cxr_tel_single"
    ]
    gold = [document["target"] for document in task_documents("mi_cxr_tel_single")]
    assert scores["metrics"]["accuracy"]["value"] == pytest.approx(gold.count("A") / len(gold))
    assert scores["letters"]["chosen"]["A"] == len(gold)


def test_a_simple_back_end_answers_streams_and_single_windows(tmp_path: Path) -> None:
    folder = run_tasks("dummy", "response=unanswerable", ["medstreambench"], tmp_path)
    scores = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["tasks"]
    silent = scores["medstreambench_future_streaming"]["metrics"]
    assert (silent["responsiveness"]["value"], silent["miss_rate"]["value"]) == (0.0, 1.0)
    # in a proactive stream it is none of the three states
    assert scores["medstreambench_proactive"]["status"] == {"invalid": 16}
    assert scores["medstreambench_proactive"]["metrics"]["invalid_rate"]["value"] == 1.0
