"""Installed distributions whose entry points cannot be read: one sentence each, and everything else works."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NAMED = "Metadata-Version: 2.1\nName: acme-bench\nVersion: 1.0\n"


@pytest.mark.parametrize(
    ("metadata", "entry_points", "said"),
    [
        (NAMED, b"x = not a valid : : value", "acme-bench 1.0 is left out: its entry point is 'not a valid : : value'"),
        (NAMED, b"x =", "acme-bench 1.0 is left out: its entry point is '', expected the name of a module"),
        (NAMED, b"x = a..b", "acme-bench 1.0 is left out: its entry point is 'a..b', expected the name of a module"),
        (NAMED, b"x = acme_bench [more]", "acme-bench 1.0 is left out: its module acme_bench does not exist"),
        ("Metadata-Version: 2.1\n", b"x = acme_bench", "x unknown is left out: its module acme_bench does not exist"),
        (NAMED, b"x", "acme_bench-1.0.dist-info is left out: its entry points cannot be read (TypeError: "),
        (NAMED, b"x = \xff", "acme_bench-1.0.dist-info is left out: its entry points cannot be read (UnicodeDecodeErr"),
    ],
)
def test_a_malformed_entry_point_is_one_sentence(
    python: Any, tmp_path: Path, metadata: str, entry_points: bytes, said: str
) -> None:
    folder = tmp_path / "site" / "acme_bench-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(metadata)
    (folder / "entry_points.txt").write_bytes(b"[medtasks.tasks]\n" + entry_points + b"\n")
    listed = "from medtasks.task_files import task_files; print(len(list(task_files())))"
    done = python("-c", listed, PYTHONPATH=str(folder.parent))
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith(f"medtasks: {said}")
    assert int(done.stdout) > 20
