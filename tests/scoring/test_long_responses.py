"""A response that is too long to be scored whole is stored whole, scored in part, counted and
named.
"""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.verify.run_notes import run_notes

from medtasks.answers import AnswerTextFilter
from medtasks.answers.base import LONGEST_SCORED, scored_part
from medtasks.benchmarks.documents import task_documents
from medtasks.catalog.spec import load_spec
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.metrics.registry import get_metric, lexical_statistics
from medtasks.runs import protocol
from medtasks.runs.protocol import protocol_hash
from medtasks.scoring.run_folder import read_run, write_run
from medtasks.scoring.run_record import RunRecord
from medtasks.scoring.summary import summary
from medtasks.scoring.verified_runs import scored_record

TEXT, CHOICE = "kvasir_vqa_x1_level1", "mi_cxr_icr"
SENTENCE = "The polyp is small. "


def long_text(characters: int) -> str:
    return (SENTENCE * (characters // len(SENTENCE) + 1))[:characters]


def scored(folder: Path, task: str, first: str) -> RunRecord:
    """A run of right answers, but the first."""
    rows = [
        {"sample_id": one["sample_id"], "response": one["target"]} for one in task_documents(task)
    ]
    rows[0]["response"] = first
    (folder / "p.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return score_predictions(PredictionFile(folder / "p.jsonl", "jsonl", task))


def first_sample(run: RunRecord, task: str) -> Any:
    name = task_documents(task)[0]["sample_id"]
    return next(sample for sample in run.samples[task] if sample.sample_id == name)


def test_a_response_within_the_limit_is_scored_whole() -> None:
    assert scored_part(long_text(LONGEST_SCORED)) == long_text(LONGEST_SCORED)


def test_the_beginning_and_the_end_of_a_longer_one_are_scored() -> None:
    part = scored_part(f"begin {long_text(LONGEST_SCORED)} end")
    assert len(part) == LONGEST_SCORED
    assert part.startswith("begin ")
    assert part.endswith(" end")
    assert scored_part(part) == part


def test_a_long_response_is_stored_whole_and_marked(tmp_path: Path) -> None:
    response = long_text(LONGEST_SCORED + 1)
    sample = first_sample(scored(tmp_path, TEXT, response), TEXT)
    assert sample.responses == (response,)
    assert sample.scored_in_part
    assert len(sample.filtered) <= LONGEST_SCORED


@pytest.mark.slow
def test_what_is_scored_is_the_part(tmp_path: Path) -> None:
    response = f"{long_text(LONGEST_SCORED)} 5 mm"
    sample = first_sample(scored(tmp_path, TEXT, response), TEXT)
    (filtered,) = AnswerTextFilter().apply([[response]], [{}])
    assert sample.filtered == filtered
    expected = get_metric("rouge1").statistics(str(filtered), sample.target).tolist()
    assert list(sample.statistics["rouge1"]) == expected


def test_an_answer_at_the_end_of_a_long_reasoning_counts(tmp_path: Path) -> None:
    target = task_documents(CHOICE)[0]["target"]
    response = f"<think>{long_text(2 * LONGEST_SCORED)}</think>The answer is {target}."
    assert first_sample(scored(tmp_path, CHOICE, response), CHOICE).filtered == target


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunRecord:
    return scored(tmp_path_factory.mktemp("long"), TEXT, long_text(LONGEST_SCORED + 1))


COUNTED = "1 response of more than 1,048,576 characters, scored by the beginning and the end"


def test_long_responses_are_counted_in_the_manifest(run: RunRecord) -> None:
    assert run.manifest.tasks[TEXT].scored_in_part == 1


def test_long_responses_are_counted_in_the_summary(run: RunRecord) -> None:
    assert f"{TEXT}: {COUNTED}" in summary(run, None)


def test_long_responses_are_counted_on_the_page_of_the_run(run: RunRecord) -> None:
    assert f"{TEXT}: {COUNTED}" in [*run_notes(run.manifest, run.scores)]


def test_long_responses_are_named_when_predictions_are_scored(run: RunRecord) -> None:
    assert "scored by the beginning and the end: 1 response (p.jsonl, line 1)" in run.notes


@pytest.mark.slow
def test_a_run_with_a_long_response_scores_the_same_again(run: RunRecord, tmp_path: Path) -> None:
    again = scored_record(*read_run(write_run(tmp_path / "run", run)), own=True, whole=True)
    assert again.changes == ()
    assert again.manifest.tasks[TEXT].scored_in_part == 1


def test_the_limit_is_part_of_the_protocol(monkeypatch: pytest.MonkeyPatch) -> None:
    before = protocol_hash(load_spec(TEXT), {})
    monkeypatch.setattr(protocol, "LONGEST_SCORED", LONGEST_SCORED // 2)
    assert protocol_hash(load_spec(TEXT), {}) != before


@pytest.mark.slow
def test_many_long_texts_are_not_compared_at_once() -> None:
    pairs = [(long_text(200_000 + number), "A polyp.") for number in range(40)]
    tracemalloc.start()
    lexical_statistics(pairs, ["chrf", "rouge1"])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 200 * 2**20
