"""Folders change places whole, and a crash half-way is mended."""

from __future__ import annotations

from pathlib import Path

import pytest

from medtasks.results.swap import recover, swap


def folder(path: Path, text: str) -> Path:
    path.mkdir()
    (path / "a.txt").write_text(text)
    return path


def test_two_folders_change_places(tmp_path: Path) -> None:
    first, second = folder(tmp_path / "first", "1"), folder(tmp_path / "second", "2")
    swap(first, second)
    assert (first / "a.txt").read_text() == "2"
    assert (second / "a.txt").read_text() == "1"
    assert {path.name for path in tmp_path.iterdir()} == {"first", "second"}


def test_so_they_do_where_the_kernel_cannot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "other")
    test_two_folders_change_places(tmp_path)


def test_a_folder_left_aside_by_a_crash_comes_back(tmp_path: Path) -> None:
    kept = folder(tmp_path / "run", "1")
    kept.rename(tmp_path / ".run.aside")
    recover(kept)
    assert (kept / "a.txt").read_text() == "1"
    recover(kept)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_that_cannot_be_put_in_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "other")
    kept = folder(tmp_path / "run", "1")
    with pytest.raises(OSError, match="missing"):
        swap(tmp_path / "missing", kept)
    assert (kept / "a.txt").read_text() == "1"
