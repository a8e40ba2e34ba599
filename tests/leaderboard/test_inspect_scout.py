"""The scanners in ``examples/inspect-scout`` on exported runs, and the table on their page."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from medtasks.judge.stub import StubJudge

REPOSITORY = Path(__file__).parent.parent.parent
EXAMPLE = REPOSITORY / "examples" / "inspect-scout"
PAGE = REPOSITORY / "docs" / "inspect-scout.md"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def validation() -> Iterator[ModuleType]:
    """The example's ``validate``, on miniature data."""
    pytest.importorskip("inspect_scout")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        patch.setenv("MEDTASKS_DATA", "mini")
        yield importlib.import_module("validate")


@pytest.fixture(scope="module")
def logs(validation: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The logs of the labelled responses."""
    exported: Path = validation.export_logs(tmp_path_factory.mktemp("scout"))
    return exported


def test_the_page_has_the_table_that_scout_computes(validation: ModuleType, logs: Path) -> None:
    statuses = {}
    for split in ("dev", "test"):
        statuses[split] = validation.validate(logs, split, model=None, base_url=None)
    lines = list(validation.table(statuses))
    assert len(lines) == 10
    assert "\n".join(lines) in PAGE.read_text(encoding="utf-8")


def test_labels_and_scanners_have_the_same_names(validation: ModuleType) -> None:
    for split in ("dev", "test"):
        rows = validation.labelled_responses(split)
        used = {label for row in rows for label in row["labels"]}
        assert used == set(validation.LABELS)
        assert any(not row["labels"] for row in rows)
        assert len({row["sample_id"] for row in rows}) == len(rows)


def byte_vocabulary(patch: pytest.MonkeyPatch) -> None:
    """Give tiktoken a vocabulary of single bytes, in place of the one that it downloads."""
    tiktoken = pytest.importorskip("tiktoken")
    vocabulary = {bytes([byte]): byte for byte in range(256)}
    encoding = tiktoken.Encoding(
        "o200k_base", pat_str=r"[\s\S]", mergeable_ranks=vocabulary, special_tokens={}
    )
    patch.setitem(tiktoken.registry.ENCODINGS, "o200k_base", encoding)


def test_a_model_is_asked_each_question_about_each_response(
    validation: ModuleType, logs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    byte_vocabulary(monkeypatch)
    monkeypatch.setenv("JUDGE_API_KEY", "none")
    asked = importlib.import_module("llm_scanners")
    questions = {label: getattr(asked, label.upper()) for label in validation.LABELS}
    rows = validation.labelled_responses("test")
    missed = next(row for row in rows if "refusal" in row["labels"])

    def decide(request: Mapping[str, Any]) -> str:
        """The label of the response, apart from one refusal that is overlooked."""
        prompt = json.dumps(request["messages"], ensure_ascii=False)
        (label,) = [name for name, text in questions.items() if text in prompt]
        for row in rows:
            is_asked = json.dumps(row["response"], ensure_ascii=False)[1:-1] in prompt
            if is_asked and label in row["labels"] and (label, row) != ("refusal", missed):
                return "As [M2] shows.\n\nANSWER: yes"
        return "Nothing of that kind.\n\nANSWER: no"

    with StubJudge(decide) as stub:
        status = validation.validate(logs, "test", model="openai-api/judge/stub", base_url=stub.url)
    assert not status.errors
    assert len(stub.requests) == 4 * len(rows)
    for label in validation.LABELS:
        metrics = status.summary.scanners[label].validation.metrics
        labelled = sum(label in row["labels"] for row in rows)
        overlooked = int(label == "refusal")
        assert (metrics.total, metrics.fp, metrics.fn) == (len(rows), 0, overlooked)
        assert metrics.tp == labelled - overlooked


def test_every_response_of_several_runs_is_a_transcript(logs: Path, validation: ModuleType) -> None:
    infos = asyncio.run(validation.index(validation.transcripts_from(str(logs))))
    samples = 0
    for path in logs.parent.glob("*/samples/*.jsonl"):
        samples += len(path.read_text(encoding="utf-8").splitlines())
    assert samples == len({info.transcript_id for info in infos})
    assert {info.model for info in infos} == {"dev", "test"}


def test_the_command_of_the_page_scans_exported_logs(logs: Path, tmp_path: Path) -> None:
    command = "scan examples/inspect-scout/scanners.py -T logs"
    assert f"scout {command}" in PAGE.read_text(encoding="utf-8")
    program = "from inspect_scout._cli.main import main; main()"  # the script `scout`
    few = ["--limit", "5", "--max-processes", "1", "--display", "none"]
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    (tmp_path / "logs").symlink_to(logs)
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split(), *few],
        cwd=tmp_path,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (summary,) = tmp_path.glob("scans/*/_summary.json")
    scanners = json.loads(summary.read_text(encoding="utf-8"))["scanners"]
    scans = {name: scanner["scans"] for name, scanner in scanners.items()}
    assert scans == dict.fromkeys(scans, 5)
    assert len(scans) == 4
