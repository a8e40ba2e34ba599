"""The real harness with one process and with two: what differs is found, and a run that fails says why."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks.validation.processes import validate_processes


@pytest.mark.slow
def test_a_run_that_depends_on_the_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # what a process imports at its start may do anything; this one changes a filter where there are several
    (tmp_path / "sitecustomize.py").write_text(DEPENDING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found = validate_processes(["mi_cxr_icr", "kvasir_vqa_x1_medico2025"], limit=4)
    assert {one.code for one in found} == {"MT510"}
    assert {one.where for one in found} == {"mi_cxr_icr", "scores.json"}  # two processes equal one for the other


DEPENDING = """
import os
if os.environ.get("WORLD_SIZE", "1") != "1":
    from medtasks.filters.base import Reading
    from medtasks.filters.option_letter import OptionLetterFilter
    OptionLetterFilter.readings = lambda self, resps, docs: [[Reading("[none]") for _ in texts] for texts in resps]
"""


@pytest.mark.slow
def test_a_run_that_fails_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEDTASKS_BLIND", "perhaps")
    (found,) = validate_processes(["mi_cxr_icr"])
    assert found.code == "MT510"
    assert "MEDTASKS_BLIND is 'perhaps'" in found.message
