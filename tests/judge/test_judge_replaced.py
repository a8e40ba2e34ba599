"""A judge that is no longer served: its stored verdicts measure a replacement, and nobody asks
it.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judged_run import judged, manifest_of

from medtasks.judge.stub import StubJudge

pytestmark = pytest.mark.slow  # whole runs, or libraries that take seconds to load

GONE = "http://127.0.0.1:9/v1"  # nobody listens


def panel(path: Path, served: StubJudge) -> str:
    judges = [
        {"model": "old-judge", "base_url": GONE, "budget": {"max_requests": 0}},
        {"model": "new-judge", "base_url": served.url},
    ]
    path.write_text(json.dumps({"judges": judges, "combine": "mean"}), encoding="utf-8")
    return str(path)


def test_stored_verdicts_of_a_judge_that_is_gone_measure_its_replacement(
    folder: Path, tmp_path: Path
) -> None:
    with StubJudge() as before:
        judged(folder, f"model=old-judge,base_url={before.url}", store=tmp_path / "verdicts")
        asked = len(before.requests)
    with StubJudge() as now:
        judged(folder, panel(tmp_path / "both.yaml", now), store=tmp_path / "verdicts")
        assert {request["model"] for request in now.requests} == {"new-judge"}
        assert len(now.requests) == asked
    facts = manifest_of(folder)["judge"]["med_cmr_open"]
    assert facts["judged"] == facts["asked"]
    assert facts["agreement"]["raters"] == ["new-judge", "old-judge"]
    pairs = [one for one in facts["agreement"]["measures"] if one["measure"] == "Spearman's rho"]
    assert {one["aspect"] for one in pairs} == {
        "consistency",
        "coherence",
        "visual_accuracy",
        "ground_truth_correctness",
    }
    assert {one["value"] for one in pairs} == {1.0}  # the stub's rule does not depend on its name


def test_without_its_verdicts_nothing_stands_in_for_a_judge_that_is_gone(
    folder: Path, tmp_path: Path
) -> None:
    with StubJudge() as now:
        scores = judged(folder, panel(tmp_path / "both.yaml", now), store=tmp_path / "verdicts")
    assert scores["med_cmr_open"]["metrics"]["open_total"]["value"] is None
    facts = manifest_of(folder)["judge"]["med_cmr_open"]
    assert facts["unjudged"] == {"old-judge: budget": facts["asked"]}
