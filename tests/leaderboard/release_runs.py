"""Runs on data that say they are a release from the hub: the miniature data of Med-CMR under another fingerprint."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from invented_runs import Invented, edit_json, write_run_of

from medtasks.data.store import open_prepared

GOOD = Invented("lab/Good-7B", "noisy_oracle", seed=1, accuracy=0.8)
GROUP = "med_cmr_mcq"
COMMIT = "5503434ddd753f426f4b38109466949a1217c2bb"
FINGERPRINT = "f" * 64


def write_release(root: Path) -> Path:
    """The directory of prepared data (``MEDTASKS_DATA``)."""
    shutil.copytree(open_prepared("med_cmr").directory, root / "med_cmr")
    source = {"kind": "hub", "name": "aaassddaadf/Med-CMR", "revision": COMMIT}
    manifest = root / "med_cmr" / "manifest.json"
    edit_json(manifest, lambda it: it.update(mini=False, source=source, fingerprint=FINGERPRINT))
    return root


def write_release_run(root: Path, model: Invented = GOOD, **options: Any) -> Path:
    """A complete run that was asked those data."""
    folder = write_run_of(root, model, [GROUP], mini=False, **options)
    edit_json(folder / "manifest.json", lambda it: it["data"]["med_cmr"].update(fingerprint=FINGERPRINT))
    return folder
