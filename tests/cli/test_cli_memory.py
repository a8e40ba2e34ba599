"""A command that needs more memory than it may have ends with one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

LIMITED = """
import resource, sys
from pathlib import Path
from medtasks.cli.app import main
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 150 * 2**20,) * 2)
sys.argv = ["medtasks", "score", "p.jsonl", "--task", "mi_cxr_icr"]
main()
"""


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="the memory of a process is not known here"
)
def test_a_command_without_enough_memory_ends_with_one_sentence(
    python: Any, tmp_path: Path
) -> None:
    with (tmp_path / "p.jsonl").open("wb") as file:
        file.truncate(250 * 2**20)  # a line of 250 MiB, which takes no space
    done = python("-c", LIMITED)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "medtasks: this needs more memory than the process may have; free some, or split the input into smaller files."
    ]
