"""The layouts of Kvasir-VQA-x1's rows, and where their pictures may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from medtasks.core.errors import UsageError
from medtasks.data.fetch import hub_tree
from medtasks.data.manifest import Source
from medtasks.data.sources import SourceRow, read_jsonl, read_parquet

HUB = "SimulaMet/Kvasir-VQA-x1"

_PATTERNS = ("test.jsonl", "test*.jsonl", "*test.jsonl", "**/test*.parquet")
"""Test rows in a directory or on the hub; the first pattern that matches counts."""


@dataclass(frozen=True)
class KvasirSource:
    """Rows, directories that may have ``<img_id>.jpg`` (the first that exists counts), and the source of the rows."""

    rows: Iterator[SourceRow]
    folders: tuple[Path, ...]
    source: Source


def open_kvasir(source: str) -> KvasirSource:
    """The rows of ``source``: ``hub``, a directory with ``test*.jsonl`` or ``test*.parquet``, or such a file.

    Raises:
        UsageError: there is no such file or directory, or the directory has no test rows.
        DataError: the hub cannot be reached.
    """
    if source == "hub":
        folder, commit = hub_tree(HUB, *_PATTERNS)
        origin = Source(kind="hub", name=HUB, revision=commit)
        return KvasirSource(_rows_of(_test_files(folder)), (), origin)
    path = Path(source)
    if path.is_dir():
        files, folders = _test_files(path), (path / "images",)
    elif path.exists():
        files, folders = [path], (path.parent / "images", path.parent.parent / "images")
    else:
        raise UsageError(f"--source {source}: no such file or directory; give hub, a directory or a file.")
    origin = Source(kind="directory" if path.is_dir() else "file", name=files[0].name)
    return KvasirSource(_rows_of(files), folders, origin)


def _test_files(folder: Path) -> list[Path]:
    for pattern in _PATTERNS:
        if files := sorted(folder.glob(pattern)):
            return files
    raise UsageError(f"{folder}: has neither test*.jsonl nor test*.parquet; give the directory that does.")


def _rows_of(files: Sequence[Path]) -> Iterator[SourceRow]:
    for path in files:
        yield from read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path)
