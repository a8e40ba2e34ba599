"""The layouts of Kvasir-VQA-x1's rows, and where their pictures may be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medtasks.catalog.records import Where
from medtasks.core.errors import DataError, UsageError
from medtasks.data.fetch import hub_tree
from medtasks.data.manifest import Source
from medtasks.data.sources import SourceRow, read_jsonl, read_parquet

HUB = "SimulaMet/Kvasir-VQA-x1"

_PATTERNS = ("test.jsonl", "test*.jsonl", "*test.jsonl", "**/test*.parquet")
"""Test rows in a directory or on the hub; the first pattern that matches counts."""


@dataclass(frozen=True)
class KvasirSource:
    """Rows, directories that may have ``<img_id>.jpg`` (the first that exists counts), and the source of the rows.

    Paths within the rows are relative to ``base``, which is None for the hub.
    """

    rows: Iterator[SourceRow]
    folders: tuple[Path, ...]
    source: Source
    base: Path | None


def open_kvasir(source: str) -> KvasirSource:
    """The rows of ``source``: ``hub``, a directory, a JSONL or parquet file, or a pattern of such files.

    A directory has ``test*.jsonl`` or ``test*.parquet``, or was written by ``save_to_disk`` of ``datasets``.

    Raises:
        UsageError: there is no such file or directory, or the directory has no test rows.
        DataError: the hub cannot be reached, or a saved dataset cannot be read.
    """
    if source == "hub":
        folder, commit = hub_tree(HUB, *_PATTERNS)
        origin = Source(kind="hub", name=HUB, revision=commit)
        return KvasirSource(_in_folder(folder).rows, (), origin, None)
    path = Path(source)
    if path.is_dir():
        return _in_folder(path)
    files = [path] if path.exists() else _fitting(path)
    if not files:
        raise UsageError(f"--source {source}: no such file or directory; give hub, a directory, a file or a pattern.")
    beside = files[0].parent
    folders = (beside / "images", beside.parent / "images")
    return KvasirSource(_rows_of(files), folders, Source(kind="file", name=files[0].name), beside)


def _in_folder(path: Path) -> KvasirSource:
    rows = saved_rows(path, "test")
    name = path.resolve().name
    if rows is None:
        files = next(filter(None, (sorted(path.glob(pattern)) for pattern in _PATTERNS)), None)
        if files is None:
            raise UsageError(f"{path}: has neither test*.jsonl nor test*.parquet; give the directory that does.")
        rows, name = _rows_of(files), files[0].name
    return KvasirSource(rows, (path / "images",), Source(kind="directory", name=name), path)


def _fitting(pattern: Path) -> list[Path]:
    """The files that match a pattern such as ``data/test-*.parquet``."""
    if not any(sign in pattern.name for sign in "*?["):
        return []
    return sorted(path for path in pattern.parent.glob(pattern.name) if path.is_file())


def _rows_of(files: Sequence[Path]) -> Iterator[SourceRow]:
    for path in files:
        yield from read_parquet(path) if path.suffix == ".parquet" else read_jsonl(path)


def saved_rows(folder: Path, split: str) -> Iterator[SourceRow] | None:
    """The rows (of ``split``) of a dataset that ``datasets`` saved into ``folder``; None if there is none.

    Raises :class:`DataError` if it cannot be read, or lacks the split.
    """
    splits = (folder / "dataset_dict.json").is_file()
    if not splits and not (folder / "state.json").is_file():
        return None
    from datasets import load_from_disk

    try:
        dataset: Any = load_from_disk(str(folder))
        if splits:
            dataset = dataset[split]
    except KeyError as error:
        raise DataError(f"{folder}: the saved dataset has no split {split!r}; save that split, too.") from error
    except Exception as error:  # of arrow, JSON, the file system
        raise DataError(f"{folder}: not a readable saved dataset ({error}); save or fetch it again.") from error
    return _stored(dataset, folder.resolve().name)


def _stored(dataset: Any, name: str) -> Iterator[SourceRow]:
    """Rows of a ``datasets.Dataset``; a picture stays as it is stored: its bytes, its path, or both."""
    from datasets import Image

    if isinstance(dataset.features.get("image"), Image):
        dataset = dataset.cast_column("image", Image(decode=False))
    for number, row in enumerate(dataset, start=1):
        yield SourceRow(Where(name, number, unit="row"), row)
