"""Directories are replaced whole; hidden ones of killed processes are removed by the next one,
those in use are not.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from medtasks.core.files import file_sha256, short_hash
from medtasks.core.locks import held
from medtasks.core.replacement import (
    recover_directory,
    remove_abandoned,
    replace_directory,
    replaced,
    temporary_beside,
)
from medtasks.scoring.run_cache import RunStore

_WORK = """
import sys, time
from pathlib import Path
from medtasks.core.replacement import temporary_beside
with temporary_beside(Path(sys.argv[1])) as folder:
    (folder / "samples").mkdir()
    print("working", flush=True)
    time.sleep(600)
"""


_STOP_BEFORE_THE_LOCK = """
import sys, tempfile, time
from pathlib import Path
from medtasks.core.replacement import temporary_beside
make = tempfile.mkdtemp
def made_and_stopped(*arguments, **options):
    make(*arguments, **options)
    print("working", flush=True)
    time.sleep(600)
tempfile.mkdtemp = made_and_stopped
with temporary_beside(Path(sys.argv[1])):
    pass
"""

_MANY = """
import sys
from pathlib import Path
from medtasks.core.replacement import replaced
for number in range(150):
    with replaced(Path(sys.argv[1]) / f"{sys.argv[2]}-{number}") as partial:
        partial.write_text(str(number))
"""


@contextmanager
def working(target: Path, code: str = _WORK) -> Iterator[subprocess.Popen[str]]:
    """Another process that makes ``target``."""
    with subprocess.Popen(
        [sys.executable, "-c", code, str(target)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        try:
            yield process
        finally:
            process.kill()


def hidden(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name.startswith("."))


def write(target: Path) -> None:
    with temporary_beside(target) as folder:
        folder.rename(target)


@pytest.mark.parametrize(
    "start", [remove_abandoned, lambda directory: write(directory / "other_medtasks")]
)
def test_what_a_killed_process_left_is_removed_by_the_next_one(
    start: Callable[[Path], None], tmp_path: Path
) -> None:
    with working(tmp_path / "run_medtasks") as process:
        (left,) = hidden(tmp_path)
        assert (
            tmp_path / left
        ).stat().st_mode & 0o777 == 0o700  # it may hold rows that must not be shared
        start(tmp_path)
        assert hidden(tmp_path) == [left]  # it is at work
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert hidden(tmp_path) == [left]
    start(tmp_path)
    assert hidden(tmp_path) == []


def test_what_a_process_left_that_was_killed_before_it_had_locked_it_is_removed(
    tmp_path: Path,
) -> None:
    with working(tmp_path / "run_medtasks", _STOP_BEFORE_THE_LOCK) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(hidden(tmp_path)) == 1
    remove_abandoned(tmp_path)
    assert hidden(tmp_path) == []


def test_processes_that_write_side_by_side_remove_nothing_of_each_other(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", _MANY, str(tmp_path), name]) for name in "abc"
    ]
    assert [process.wait() for process in writers] == [0, 0, 0]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{a}-{n}" for a in "abc" for n in range(150)
    )


def test_a_cache_that_is_only_read_is_rid_of_what_a_killed_process_left(tmp_path: Path) -> None:
    with working(tmp_path / "key.zip") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert len(hidden(tmp_path)) == 1
    RunStore(tmp_path)
    assert hidden(tmp_path) == []


def test_nothing_else_is_removed(tmp_path: Path) -> None:
    names = [".data.partial", ".run_medtasks.aside", ".git", ".a.b.tmp", "x.abcdefgh.tmp"]
    for name in names:
        (tmp_path / name / "inside").mkdir(parents=True)
    (tmp_path / ".file.abcdefgh.tmp").write_text("", encoding="utf-8")
    (tmp_path / ".link.abcdefgh.tmp").symlink_to(tmp_path / ".git")
    before = hidden(tmp_path)
    remove_abandoned(tmp_path)
    remove_abandoned(tmp_path / "absent")
    assert hidden(tmp_path) == before
    assert (tmp_path / ".git" / "inside").is_dir()
    assert (tmp_path / "x.abcdefgh.tmp").is_dir()


def test_a_folder_that_failed_or_took_its_place_leaves_nothing(tmp_path: Path) -> None:
    write(tmp_path / "done")
    with pytest.raises(ValueError, match="broken"), temporary_beside(tmp_path / "failed"):
        raise ValueError("broken")
    assert [path.name for path in tmp_path.iterdir()] == ["done"]
    (tmp_path / "ordinary").mkdir()
    assert (tmp_path / "done").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    with replaced(path) as partial:
        partial.write_text("first")
    with contextlib.suppress(ZeroDivisionError), replaced(path) as partial:
        partial.write_text("half")
        1 / 0  # noqa: B018 - a crash within the block
    assert path.read_text() == "first"
    assert list(tmp_path.iterdir()) == [path]


def test_hashes_are_those_of_hashlib(tmp_path: Path) -> None:
    content = "é".encode() * 2_000_000
    (tmp_path / "large").write_bytes(content)
    assert file_sha256(tmp_path / "large") == hashlib.sha256(content).hexdigest()
    assert short_hash("é") == hashlib.sha256("é".encode()).hexdigest()[:16]
    with pytest.raises(OSError, match="a directory"):
        file_sha256(tmp_path)


def directory(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "a.txt").write_text(text)
    return path


@pytest.mark.parametrize(
    "platform", [sys.platform, "other"]
)  # another kernel cannot exchange directories
def test_a_directory_is_replaced_whole(
    platform: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", platform)
    target = tmp_path / "run"
    for text in ("1", "2", "3"):
        replace_directory(target, directory(tmp_path / "new", text))
        assert (target / "a.txt").read_text() == text
        assert list(tmp_path.iterdir()) == [target]


def test_a_directory_left_aside_by_a_crash_comes_back(tmp_path: Path) -> None:
    kept = directory(tmp_path / "run", "1")
    kept.rename(tmp_path / ".run.aside")
    recover_directory(kept)
    assert (kept / "a.txt").read_text() == "1"
    recover_directory(kept)
    assert list(tmp_path.iterdir()) == [kept]


def test_a_directory_that_cannot_be_replaced_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "other")
    kept = directory(tmp_path / "run", "1")
    with pytest.raises(OSError, match="missing"):
        replace_directory(kept, tmp_path / "missing")
    assert (kept / "a.txt").read_text() == "1"


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_in_the_file_system_a_killed_process_keeps_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def without_locks(*_: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", without_locks)
    with ExitStack() as killed:
        for _ in range(2):
            killed.enter_context(held(tmp_path / "run", "filled"))
