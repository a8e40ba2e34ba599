"""NLTK, imported as cheaply as it can be, and its data directories, searched without it: the import takes longer than
scoring a few hundred answers."""

from __future__ import annotations

import os
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any


def import_nltk() -> Any:
    """NLTK; without SciPy and scikit-learn, which are most of the import and only serve its collocations, parsers and
    classifiers.

    That needs a single thread: another one may be importing them.
    """
    alone = "nltk" not in sys.modules and threading.active_count() == 1
    hidden = [name for name in ("scipy", "scipy.stats", "sklearn") if alone and name not in sys.modules]
    for name in hidden:
        sys.modules[name] = None  # type: ignore[assignment]  # its import fails, which NLTK expects
    try:
        import nltk
    finally:
        for name in hidden:
            del sys.modules[name]
    return nltk


def nltk_folders() -> list[Path]:
    """Where NLTK looks for data: ``nltk.data.path`` if NLTK is imported, else what it will be (nltk.org/data.html)."""
    data = sys.modules.get("nltk.data")
    if data is not None:
        return [Path(str(folder)) for folder in data.path]
    named = [folder for folder in os.environ.get("NLTK_DATA", "").split(os.pathsep) if folder]
    system = [f"{root}/{part}/nltk_data" for part in ("share", "lib") for root in ("/usr", "/usr/local")]
    own = [f"{sys.prefix}/{part}nltk_data" for part in ("", "share/", "lib/")]
    return [Path(folder).expanduser() for folder in (*named, "~/nltk_data", *own, *system)]


def find_nltk_data(name: str) -> Path | zipfile.Path | None:
    """The directory ``name``, such as ``corpora/wordnet``, unpacked or in an archive of that name; None without one."""
    candidates = [folder / name for folder in nltk_folders()]
    unpacked = next((folder for folder in candidates if folder.is_dir()), None)
    if unpacked is not None:
        return unpacked
    archive = next((path for path in (one.with_name(f"{one.name}.zip") for one in candidates) if path.is_file()), None)
    return None if archive is None else zipfile.Path(archive, f"{Path(name).name}/")
