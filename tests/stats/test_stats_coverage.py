"""Simulated intervals hold the truth: ``performance/coverage.py --quick`` keeps its bounds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "performance" / "coverage.py"


@pytest.mark.slow
def test_intervals_of_simulated_benchmarks_keep_their_bounds() -> None:
    done = subprocess.run(
        [sys.executable, SCRIPT, "--quick"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "MISSED" not in done.stdout
    assert "### Intervals of accuracies: coverage" in done.stdout
