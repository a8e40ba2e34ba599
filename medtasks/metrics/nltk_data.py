"""NLTK's data directories, searched without importing NLTK, which takes longer than scoring a few hundred answers."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path


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
