"""Challenge files are new files: a wrong path is refused in one sentence, before any scoring."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Command
from medtasks.api import UsageError

from medtasks_challenges.output_files import refuse_unwritable, write_file, write_folder


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("file", "exists already; give another name, or remove it."),
        ("folder", "exists already; give another name, or remove it."),
        ("none/new", "none is not a directory; create it first."),
        ("file/new", "file is not a directory; create it first."),
        ("x" * 300, "cannot be written ("),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(
    name: str, expected: str, tmp_path: Path, command: Command
) -> None:
    (tmp_path / "file").write_text("kept", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError) as refused:
        refuse_unwritable(tmp_path / name)
    assert expected in str(refused.value)
    # the run is missing, too: the path is checked first
    with pytest.raises(SystemExit) as ended:
        command("medreason", tmp_path / "no-run", "-o", tmp_path / name)
    assert expected in str(ended.value)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "kept"


def test_what_appears_in_the_meantime_is_not_overwritten(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_bytes(b"theirs")
    with pytest.raises(UsageError, match="cannot be written"):
        write_file(taken, b"ours")
    with pytest.raises(UsageError, match="cannot be written"):
        write_folder(taken, {"a.txt": "ours"})
    assert taken.read_bytes() == b"theirs"
