"""`medtasks export inspect`: Inspect's own package reads the logs, and they hold our scores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from invented_runs import MODELS, edit_json, write_run_of, write_runs
from medtasks.leaderboard.exports.inspect_logs import write_inspect_logs

from medtasks.benchmarks import layouts
from medtasks.core.errors import UsageError
from medtasks.importers.inspect_log import read_inspect
from medtasks.runs.folder import read_run

OPEN, CHOICE, STREAM = "med_cmr_open_cr", "mi_cxr_tel_single", "medstreambench_proactive"
GUESS = MODELS[3]


@pytest.mark.slow
def test_inspect_reads_the_logs_and_finds_our_scores(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    write_runs(tmp_path / "results", [GUESS], [OPEN, CHOICE, STREAM])
    written, notes = write_inspect_logs([tmp_path / "results"], tmp_path / "logs")
    assert len(written) == 3
    assert any("PhysioNet" in note for note in notes)
    (folder,) = tmp_path.glob("results/*/*_medtasks")
    _, samples = read_run(folder)
    expected = json.loads((folder / "scores.json").read_text(encoding="utf-8"))["tasks"]
    for path in written:
        found = log.read_eval_log(path)
        task = found.eval.task
        ours = {sample.sample_id: sample for sample in samples[task]}
        assert found.status == "success"
        assert found.eval.model == GUESS.name
        assert {sample.id for sample in found.samples} == ours.keys()
        for sample in found.samples:
            mine = ours[sample.id]
            assert sample.output.completion == mine.responses[0]
            assert sample.input[0].text == mine.prompt
            assert sample.target == mine.target
            values = {name: score.value for name, score in sample.scores.items()}
            assert values == {name: value for name, value in mine.scores.items() if value is not None}
            assert not any(part.type == "image" for part in sample.input[0].content)
        totals = {score.name: score.metrics for score in found.results.scores}
        for name, score in expected[task]["metrics"].items():
            assert score["value"] == (totals[name]["score"].value if "score" in totals[name] else None)
            if score["interval"] is not None:
                assert [totals[name][end].value for end in ("ci95_low", "ci95_high")] == score["interval"]
        predictions = {one.sample_id: one.response for one in read_inspect(path)}  # and so does our own reader
        assert predictions == {name: sample.responses[0] for name, sample in ours.items()}


def test_a_failed_request_is_an_error_and_has_no_score(tmp_path: Path) -> None:
    log = pytest.importorskip("inspect_ai.log")
    folder = write_run_of(tmp_path, GUESS, [CHOICE])

    lost = {"status": "failed", "responses": [""], "failed": ["no connection"], "filtered": "[failed]"}
    unscored = {"scores": {"accuracy": None}, "statistics": {}, "limits": {"accuracy": [[0.0, 1.0], [1.0, 1.0]]}}
    edit_json(folder / "samples" / f"{CHOICE}.jsonl", lambda sample: sample.update(lost | unscored), line=0)
    ((path,), _) = write_inspect_logs([tmp_path], tmp_path / "logs")
    first = log.read_eval_log(path).samples[0]
    assert first.error.message == "no connection"
    assert not first.scores


def test_pictures_are_included_only_where_the_licence_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = pytest.importorskip("inspect_ai.log")
    known = layouts.all_layouts()
    allowed = {**known, "mi_cxr": replace(known["mi_cxr"], shows="media")}
    monkeypatch.setattr("medtasks.leaderboard.exports.inspect_logs.all_layouts", lambda: allowed)
    write_run_of(tmp_path, GUESS, [CHOICE])
    ((path,), notes) = write_inspect_logs([tmp_path], tmp_path / "logs")
    assert notes == []
    for sample in log.read_eval_log(path, resolve_attachments=True).samples:
        pictures = [part.image for part in sample.input[0].content if part.type == "image"]
        assert len(pictures) == len(sample.metadata["media"]) == 5
        assert all(one.startswith("data:image/png;base64,") for one in pictures)


def test_what_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    with pytest.raises(UsageError, match="no result directory"):
        write_inspect_logs([tmp_path], tmp_path / "logs")
    with pytest.raises(UsageError, match="exists already"):
        write_inspect_logs([tmp_path], tmp_path)
