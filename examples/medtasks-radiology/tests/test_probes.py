"""The table of probes, of a CheXbert that was trained to see negations, and of no weights."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from medtasks_radiology import probes
from medtasks_radiology.chexbert import CHEXBERT

MICRO = CHEXBERT[0]
needs_radeval = pytest.mark.skipif(
    importlib.util.find_spec("radeval") is None, reason="radeval is not installed"
)


def test_every_edit_changes_a_report_and_every_claim_has_a_probe() -> None:
    found = probes.read_probes()
    kinds = {probe.kind for probe in found}
    for probe in found:
        assert all(map(str.__ne__, probe.reports, probe.changed))
    for metric in probes.METRICS:
        assert metric.sees <= kinds - {probes.CONTROL}


def test_a_metric_without_weights_is_not_computed_and_misses_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert probes.main(["--metric", MICRO.name]) == 0
    assert "| chexbert_micro14 | not computed, because" in capsys.readouterr().out


@needs_radeval
@pytest.mark.usefixtures("chexbert")
def test_flipped_negations_lower_chexbert_and_flipped_sides_do_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert probes.main(["--json", "--metric", MICRO.name]) == 0
    results = {row["kind"]: row for row in json.loads(capsys.readouterr().out)}
    assert (results["negation"]["lowered"], results["negation"]["reports"]) == (6, 6)
    assert results["negation"]["drop"] == 1
    assert results["omission"]["drop"] > 0
    assert results["laterality"]["drop"] == 0  # CheXbert reads no side
    assert not results["laterality"]["is_claimed"]


@needs_radeval
@pytest.mark.usefixtures("chexbert")
def test_an_edit_that_should_be_seen_and_is_not_ends_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "probes.yaml"
    side = {
        "report": "There is a left pleural effusion.",
        "changed": "There is a right pleural effusion.",
    }
    path.write_text(json.dumps([{"kind": "negation", "pairs": [side]}]), encoding="utf-8")
    assert probes.main(["--metric", MICRO.name, "--probes", str(path)]) == 1
    printed = capsys.readouterr()
    assert "**0.00 (0/1) not seen**" in printed.out
    assert f"{MICRO.name} should see negation, and does not" in printed.err
