"""What the demo prints of a board: the headline scores with intervals, two benchmarks beside each other."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from medtasks.leaderboard.publish import publish

from medtasks.benchmarks.documents import task_documents
from medtasks.cli.demo import _report


def test_the_report_has_each_models_score_with_its_interval(
    medtasks: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{one['sample_id']},{one['target']}" for one in task_documents("mi_cxr_icr")]
    (tmp_path / "p.csv").write_text("\n".join(["sample_id,response", *rows]))
    medtasks("score", "p.csv", "--task", "mi_cxr_icr", "--model", "lab/Sure-7B", "--out", "run_medtasks")
    board = publish([tmp_path / "run_medtasks"], tmp_path / "page", title="t", demonstration=True)
    capsys.readouterr()
    _report(board, tmp_path)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("lab/Sure-7B"))
    assert re.fullmatch(r"lab/Sure-7B  100\.0 \[100\.0\D+100\.0\]", line), line
