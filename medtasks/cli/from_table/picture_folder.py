"""Where the pictures are that a table names by paths."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from medtasks.catalog.records import Where
from medtasks.cli.from_table.columns import TableColumn, is_like_picture
from medtasks.core.files import is_file
from medtasks.data.folder_cells import cell_list

_SAMPLE = 50
"""Paths that are looked up to find the directory of all."""
_MOST_FOLDERS = 200
"""Directories below that of the table that are searched."""


def picture_paths(columns: Iterable[TableColumn]) -> dict[str, Where]:
    """The different paths of pictures in columns, with the first row that names each; without URLs
    and pictures in cells.
    """
    paths: dict[str, Where] = {}
    for column in columns:
        for cell, where in zip(column.cells, column.places, strict=True):
            for item in cell_list(cell) or [cell]:
                if isinstance(item, str) and _is_path(item):
                    paths.setdefault(item.strip(), where)
    return paths


def _is_path(text: str) -> bool:
    """Whether a cell of an image column is a path, not a picture or the index of a row."""
    stripped = text.strip()
    if stripped.isdecimal():
        return False
    is_url = stripped.lower().startswith(("http://", "https://", "data:"))
    is_base64 = len(stripped) >= 64 and "." not in stripped[-8:] and is_like_picture(stripped)
    return bool(stripped) and not is_url and not is_base64


def has_urls(columns: Iterable[TableColumn]) -> bool:
    """Whether a cell names a picture by its URL."""
    for column in columns:
        for cell in column.cells:
            for item in cell_list(cell) or [cell]:
                if isinstance(item, str) and item.strip().lower().startswith(
                    ("http://", "https://")
                ):
                    return True
    return False


def picture_folder(table: Path, paths: Sequence[str]) -> Path:
    """The directory that the ``paths`` in a table are relative to.

    It is that of the table, or the one below it that has most of the first paths: more than half
    of them, as a few pictures may be missing. For absolute paths it is the directory that contains
    all of them.
    """
    beside = table.resolve().parent
    sample = paths[:_SAMPLE]
    if sample and all(Path(path).is_absolute() for path in sample):
        return Path(os.path.commonpath([str(Path(path).parent) for path in paths]))
    if _count(beside, sample) == len(sample):
        return beside
    counts = {folder: _count(folder, sample) for folder in (beside, *_folders_below(beside))}
    most = max(counts.values())
    matching = [folder for folder, count in counts.items() if count == most]
    is_clear = len(matching) == 1 and 2 * most > len(sample)
    return matching[0] if is_clear else beside


def _count(folder: Path, paths: Iterable[str]) -> int:
    """How many paths name a file below ``folder``."""
    return sum(is_file(folder / path.replace("\\", "/")) for path in paths)


def _folders_below(folder: Path) -> Iterator[Path]:
    """Yield the directories at most two levels below a directory, in order, up to a limit."""
    children = [*_children(folder)]
    grandchildren = [grandchild for child in children for grandchild in _children(child)]
    yield from (children + grandchildren)[:_MOST_FOLDERS]


def _children(folder: Path) -> list[Path]:
    """The directories in a directory that are not hidden; none if it cannot be read."""
    try:
        entries = sorted(folder.iterdir())
        return [path for path in entries if path.is_dir() and not path.name.startswith(".")]
    except OSError:
        return []
