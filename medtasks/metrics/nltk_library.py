"""NLTK, imported as cheaply as it can be, and its data, found without importing it.

NLTK imports SciPy and scikit-learn if they are installed, for its collocations, parsers and
classifiers alone. They are most of the time that the import takes, which is more than scoring a few
hundred answers.
"""

from __future__ import annotations

import os
import sys
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

UNUSED = frozenset({"scipy", "scipy.stats", "sklearn"})
"""The optional packages whose import NLTK tries, and whose absence it expects."""


@cache
def import_nltk() -> Any:
    """The module ``nltk``, without the parts of it that need the `UNUSED` packages."""
    with _absent(UNUSED):
        import nltk
    return nltk


@contextmanager
def _absent(names: frozenset[str]) -> Iterator[None]:
    """Within the block, this thread cannot import these modules, unless they are loaded already."""
    finder = _AbsentModules(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _AbsentModules(MetaPathFinder):
    """Reports some modules as not installed to the thread that makes it; others find them."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._thread = threading.get_ident()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        del path, target
        if fullname in self._names and threading.get_ident() == self._thread:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def nltk_folders() -> list[Path]:
    """The directories in which NLTK looks for data: ``nltk.data.path`` if NLTK is imported, else
    what it will be (nltk.org/data.html).
    """
    data = sys.modules.get("nltk.data")
    if data is not None:
        return [Path(str(folder)) for folder in data.path]
    folders = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    folders.append("~/nltk_data")
    for part in ("", "share/", "lib/"):
        folders.append(f"{sys.prefix}/{part}nltk_data")
    for root in ("/usr", "/usr/local"):
        for part in ("share", "lib"):
            folders.append(f"{root}/{part}/nltk_data")
    return [Path(folder).expanduser() for folder in folders]


@cache  # so that samples that cannot be scored do not touch the disk either
def find_nltk_data(name: str) -> Path | zipfile.Path | None:
    """The directory ``name``, such as ``corpora/wordnet``, unpacked or in an archive of that name;
    None without one.
    """
    for data_folder in nltk_folders():
        folder = data_folder / name
        if folder.is_dir():
            return folder
        archive = folder.with_name(f"{folder.name}.zip")
        if archive.is_file():
            return zipfile.Path(archive, f"{folder.name}/")
    return None
