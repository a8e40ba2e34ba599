"""Runs of a subset: whole clusters, marked as such, comparable with runs of the same subset
only.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from medtasks.leaderboard.board.build import build_board
from medtasks.leaderboard.intake.collect import collect
from runs import Run, baseline

from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import UsageError
from medtasks.core.settings import Subset, read_subset
from medtasks.runs.signature import parse_signature

SHARES = some.floats(0.01, 0.99)


@settings(max_examples=60, derandomize=True)
@given(some.lists(some.text(max_size=3), max_size=40), SHARES, SHARES, some.integers(0, 3))
def test_whole_clusters_and_a_smaller_share_is_part_of_a_larger(
    clusters: list[str], one: float, other: float, seed: int
) -> None:
    documents = [
        {"sample_id": f"s{number}", "cluster": cluster} for number, cluster in enumerate(clusters)
    ]
    small, large = (Subset(share, seed).of(documents) for share in sorted((one, other)))
    assert [document for document in large if document in small] == small
    kept = {document["cluster"] for document in large}
    assert large == [document for document in documents if document["cluster"] in kept]
    assert len(kept) == math.ceil(max(one, other) * len(set(clusters)))


@pytest.mark.parametrize("text", ["0", "1", "1.5", "-0.1", "nan", "half", "0.5@x", "@3", "0.5@1@2"])
def test_a_malformed_subset_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"0\.25@0"):
        read_subset(text)


def run_of(
    policy: str, subset: str, to: Path, monkeypatch: pytest.MonkeyPatch, task: str = "mi_cxr_tel"
) -> Run:
    monkeypatch.setenv("MEDTASKS_SUBSET", subset)
    return baseline(policy, [task], to)


def test_a_run_of_a_subset_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    levels = [f"kvasir_vqa_x1_level{level}" for level in (1, 2, 3)]
    documents = {task: task_documents(task) for task in levels}
    run = run_of("oracle", "0.5@3", tmp_path, monkeypatch, "kvasir_vqa_x1")
    for task in levels:
        chosen = {line["cluster"] for line in run.samples(task)}
        asked = sorted(line["sample_id"] for line in run.samples(task))
        assert asked == sorted(
            one["sample_id"] for one in documents[task] if one["cluster"] in chosen
        )
        assert len(chosen) == math.ceil(len({one["cluster"] for one in documents[task]}) / 2)
    asked = run.samples("kvasir_vqa_x1_level1")
    facts = run.manifest["tasks"]["kvasir_vqa_x1_level1"]
    assert (facts["subset"], facts["asked"], facts["answered"]) == ("0.5@3", len(asked), len(asked))


@pytest.mark.slow
def test_subsets_on_the_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_of("noisy_oracle,seed=1", "0.5@3", tmp_path / "a", monkeypatch)
    assert "Subset of the clusters (0.5@3)" in capsys.readouterr().out
    run_of("uniform,seed=1", "0.5@3", tmp_path / "b", monkeypatch)
    run_of("oracle", "0.5@4", tmp_path / "c", monkeypatch)
    monkeypatch.delenv("MEDTASKS_SUBSET")
    digests, refused = collect([tmp_path])
    assert not refused
    made = build_board(digests, title="S", demonstration=True, published=False)
    (benchmark,) = made.benchmarks
    table = next(table for table in benchmark.tables if table.rows)
    assert len(table.rows) == 2
    assert all(
        one.outcome == "verified" for digest in digests for one in digest.verification.values()
    )
    (other,) = table.apart
    assert any("subset" in reason for reason in other.reasons)
    signature = next(iter(table.rows[0].cells.values())).signature
    assert parse_signature(signature)["subset"] == "0.5@3"
    baseline("abstain", ["mi_cxr_tel"], tmp_path / "d")
    digests, _ = collect([tmp_path])
    made = build_board(digests, title="S", demonstration=True, published=False)
    (benchmark,) = made.benchmarks
    table = next(table for table in benchmark.tables if table.rows)
    assert [len(table.rows), len(table.apart)] == [
        1,
        3,
    ]  # the run of all clusters, although fewer models have it
    assert any(
        "MEDTASKS_SUBSET=0.5@3" in command for run in made.runs.values() for command in run.commands
    )


def test_documents_outside_the_claimed_subset_are_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of("oracle", "0.5@3", tmp_path, monkeypatch)
    monkeypatch.delenv("MEDTASKS_SUBSET")
    manifest = run.folder / "manifest.json"
    manifest.write_text(
        manifest.read_text(encoding="utf-8").replace("0.5@3", "0.5@4"), encoding="utf-8"
    )
    digests, _ = collect([tmp_path])
    made = build_board(digests, title="S", demonstration=True, published=False)
    tables = made.benchmarks[0].tables
    assert not any(table.rows for table in tables)
    assert any(
        "are of no document of the task" in reason
        for one in tables[0].apart
        for reason in one.reasons
    )
