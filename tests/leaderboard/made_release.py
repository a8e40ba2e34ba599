"""Prepared data of an invented release: the miniature data of Med-CMR in other bytes, so under
another fingerprint.
"""

from __future__ import annotations

import functools
import shutil
import tempfile
from pathlib import Path
from typing import Any

from invented_runs import edit_json

from medtasks.data.prepared import fingerprint
from medtasks.data.store import open_prepared

BENCHMARK = "med_cmr"


def write_release(root: Path, **facts: Any) -> Path:
    """The directory of the prepared data below ``root``, which `MEDTASKS_DATA` names; ``facts`` are
    of its manifest.
    """
    folder = Path(shutil.copytree(open_prepared(BENCHMARK).directory, root / BENCHMARK))
    records = folder / "records.jsonl"
    records.write_text(" " + records.read_text(encoding="utf-8"), encoding="utf-8")
    facts = {"mini": False, "fingerprint": fingerprint(folder), **facts}
    edit_json(folder / "manifest.json", lambda manifest: manifest.update(facts))
    return folder


@functools.cache
def release_fingerprint() -> str:
    with tempfile.TemporaryDirectory() as root:
        return fingerprint(write_release(Path(root)))


def on_release(folder: Path) -> Path:
    """The run, which now claims those data."""
    facts = {"fingerprint": release_fingerprint(), "mini": False}
    edit_json(folder / "manifest.json", lambda manifest: manifest["data"][BENCHMARK].update(facts))
    return folder
