"""Files of runs are read strictly: an ambiguous key and a value of another type are errors, and
never a score.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.intake.check import check_results

from medtasks.benchmarks.documents import task_documents
from medtasks.core.errors import DataError
from medtasks.importers.imported_run import PredictionFile, score_predictions
from medtasks.scoring.run_folder import read_run, write_run

TASK = "kvasir_vqa_x1_level1"


def verdicts_on(document: dict[str, Any]) -> dict[str, Any]:
    return {name: {"score": 1, "reason": ""} for name in document["question_class"]}


@pytest.fixture(scope="module")
def judged_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with a verdict on each response."""
    folder = tmp_path_factory.mktemp("judged")
    rows = []
    for document in task_documents(TASK):
        identity = {"sample_id": document["sample_id"], "answer": document["answer"]}
        rows.append({**identity, "response": "A polyp.", "eval_json": verdicts_on(document)})
    (folder / "p.json").write_text(json.dumps(rows), encoding="utf-8")
    return write_run(
        folder / "run",
        score_predictions(PredictionFile(folder / "p.json", "json", TASK, verdicts_of="judge")),
    )


@pytest.fixture
def copy(judged_run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged_run, tmp_path / "run"))


def edit(path: Path, pattern: str, replacement: str) -> None:
    """Replace the first match in the file."""
    text, count = re.subn(pattern, replacement, path.read_text(encoding="utf-8"), count=1)
    assert count == 1
    path.write_text(text, encoding="utf-8")


def samples_of(folder: Path) -> Path:
    return folder / "samples" / f"{TASK}.jsonl"


def test_a_key_that_is_repeated_in_a_manifest_is_refused(copy: Path) -> None:
    edit(copy / "manifest.json", r'"answered": \d+', r'\g<0>, "answered": 1')
    with pytest.raises(
        DataError,
        match=r"manifest\.json: .*the key 'answered' is repeated, expected it once.*restore",
    ):
        read_run(copy)


def test_a_key_that_is_repeated_in_a_sample_is_refused_with_its_line(copy: Path) -> None:
    edit(samples_of(copy), r'"responses": ', '"responses": ["Another."], "responses": ')
    with pytest.raises(
        DataError, match=r"line 1: the key 'responses' is repeated, expected it once; restore it"
    ):
        read_run(copy)


def test_a_submission_with_a_repeated_key_is_rejected(copy: Path) -> None:
    edit(samples_of(copy), r'"target": ', '"target": "Another.", "target": ')
    rejected = [
        finding.message for finding in check_results([copy]).findings if finding.code == "LB102"
    ]
    assert len(rejected) == 1
    assert "the key 'target' is repeated" in rejected[0]


@pytest.mark.parametrize("value", ["true", '"1"', "1.0"])
def test_what_is_not_a_whole_number_is_no_score_of_a_verdict(value: str, copy: Path) -> None:
    edit(samples_of(copy), r'("scores": \{"\w+": )1', rf"\g<1>{value}")
    with pytest.raises(
        DataError, match=r"line 1: field `verdicts\..*\.scores\..*` is .*, expected a whole number"
    ):
        read_run(copy)


@pytest.mark.parametrize("value", ["true", '"1"'])
def test_what_is_not_a_number_is_no_count_of_a_manifest(value: str, copy: Path) -> None:
    edit(copy / "manifest.json", r'"answered": \d+', f'"answered": {value}')
    with pytest.raises(
        DataError, match=rf"field `tasks\.{TASK}\.answered` is .*, expected a whole number"
    ):
        read_run(copy)
