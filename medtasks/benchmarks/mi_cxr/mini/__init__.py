"""A miniature MI-CXR: 28 invented patients, and rows of every question type in the release's format.

Rows and pictures agree: `tests/data/test_mini_mi_cxr.py` derives every right option from `TIMELINES`.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from medtasks.benchmarks.mi_cxr.mini.radiograph import HEART, LEFT, OPACITY, RIGHT, draw_radiograph
from medtasks.benchmarks.mi_cxr.prepare import prepare_mi_cxr
from medtasks.data.prepared import Prepared

ROW_FILES = tuple(Path(__file__).with_name(f"{name}.jsonl") for name in ("micxr_test", "micxr_icr_variant"))

TIMELINES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "p00000001": {LEFT: (0, 1, 2, 1, 0, 0, 2), OPACITY: (0, 0, 2, 0, 3, 3, 0), HEART: (1, 1, 1, 2, 2, 2, 2)},
    "p00000002": {LEFT: (0, 0, 2, 0, 3, 3, 0), RIGHT: (1, 1, 1, 2, 2, 2, 2), OPACITY: (0, 1, 2, 1, 0, 0, 2)},
    "p00000003": {RIGHT: (0, 0, 2, 0, 3, 3, 0), OPACITY: (0, 1, 2, 1, 0, 0, 2), HEART: (1, 1, 1, 2, 2, 2, 2)},
    "p00000004": {RIGHT: (0, 1, 2, 1, 0, 0, 2), OPACITY: (1, 1, 1, 2, 2, 2, 2), HEART: (0, 0, 2, 0, 3, 3, 0)},
    "p00000005": {RIGHT: (0, 1, 2, 1, 0, 0, 2), OPACITY: (0, 0, 2, 0, 3, 3, 0), HEART: (1, 1, 1, 2, 2, 2, 2)},
    "p00000006": {LEFT: (1, 1, 1, 2, 2, 2, 2), RIGHT: (0, 0, 2, 0, 3, 3, 0), HEART: (0, 1, 2, 1, 0, 0, 2)},
    "p00000007": {LEFT: (0, 0, 0, 0, 0, 0), RIGHT: (2, 1, 0, 0, 1, 3), OPACITY: (1, 1, 2, 3, 2, 2)},
    "p00000008": {LEFT: (2, 1, 0, 0, 1, 3), OPACITY: (1, 1, 2, 3, 2, 2), HEART: (0, 0, 0, 0, 0, 0)},
    "p00000009": {LEFT: (1, 1, 2, 3, 2, 2), OPACITY: (2, 1, 0, 0, 1, 3), HEART: (0, 0, 0, 0, 0, 0)},
    "p00000010": {LEFT: (0, 0, 0, 0, 0, 0), RIGHT: (1, 1, 2, 3, 2, 2), OPACITY: (2, 1, 0, 0, 1, 3)},
    "p00000011": {RIGHT: (0, 0, 0, 0, 0, 0), OPACITY: (1, 1, 2, 3, 2, 2), HEART: (2, 1, 0, 0, 1, 3)},
    "p00000012": {LEFT: (0, 0, 0, 0, 0, 0), OPACITY: (1, 1, 2, 3, 2, 2), HEART: (2, 1, 0, 0, 1, 3)},
    "p00000013": {LEFT: (0, 0, 0, 0, 0, 0), RIGHT: (1, 1, 2, 3, 2, 2), HEART: (2, 1, 0, 0, 1, 3)},
    "p00000014": {LEFT: (1, 1, 2, 3, 2, 2), RIGHT: (0, 0, 0, 0, 0, 0), OPACITY: (2, 1, 0, 0, 1, 3)},
    "p00000015": {RIGHT: (1, 1, 2, 3, 2, 2), OPACITY: (0, 0, 0, 0, 0, 0), HEART: (2, 1, 0, 0, 1, 3)},
    "p00000016": {RIGHT: (3, 2, 2, 1, 0), OPACITY: (0, 2, 0, 1, 0), HEART: (0, 0, 0, 0, 0)},
    "p00000017": {LEFT: (3, 2, 2, 1, 0), RIGHT: (0, 0, 0, 0, 0), HEART: (0, 2, 0, 1, 0)},
    "p00000018": {LEFT: (0, 0, 0, 0, 0), RIGHT: (3, 2, 2, 1, 0), OPACITY: (0, 2, 0, 1, 0)},
    "p00000019": {LEFT: (0, 0, 0, 0, 0), RIGHT: (0, 2, 0, 1, 0), HEART: (3, 2, 2, 1, 0)},
    "p00000020": {LEFT: (2, 0, 2, 0, 1), OPACITY: (2, 2, 2, 2, 2), HEART: (0, 0, 1, 2, 3)},
    "p00000021": {RIGHT: (2, 0, 2, 0, 1), OPACITY: (0, 0, 1, 2, 3), HEART: (2, 2, 2, 2, 2)},
    "p00000022": {LEFT: (0, 0, 1, 2, 3), RIGHT: (2, 2, 2, 2, 2), HEART: (2, 0, 2, 0, 1)},
    "p00000023": {LEFT: (0, 0, 1, 2, 3), OPACITY: (2, 2, 2, 2, 2), HEART: (2, 0, 2, 0, 1)},
    "p00000024": {LEFT: (1, 2, 3, 2, 1, 0), RIGHT: (0, 1, 0, 0, 2, 0), OPACITY: (3, 0, 0, 2, 0, 0)},
    "p00000025": {LEFT: (3, 0, 0, 2, 0, 0), OPACITY: (1, 2, 3, 2, 1, 0), HEART: (0, 1, 0, 0, 2, 0)},
    "p00000026": {RIGHT: (3, 0, 0, 2, 0, 0), OPACITY: (1, 2, 3, 2, 1, 0), HEART: (0, 1, 0, 0, 2, 0)},
    "p00000027": {LEFT: (0, 1, 0, 0, 2, 0), RIGHT: (1, 2, 3, 2, 1, 0), HEART: (3, 0, 0, 2, 0, 0)},
    "p00000028": {LEFT: (3, 3, 0, 2, 0), RIGHT: (0, 0, 0, 3, 3), HEART: (3, 2, 2, 1, 1)},
}
"""Severity (0 absent to 3) per visit; findings that are not listed are absent throughout."""


def image_path(patient: str, visit: int) -> str:
    """Path of a visit's picture as in MIMIC-CXR-JPG, with numbers that no real study has."""
    digest = hashlib.sha256(f"{patient}/{visit}".encode()).hexdigest()
    name = "-".join(["00000000", *(digest[start : start + 8] for start in range(0, 32, 8))])
    return f"files/p00/{patient}/s{int(patient[1:]):05d}{visit:03d}/{name}.jpg"


def write_mi_cxr_source(directory: Path) -> None:
    """Write the row files and ``files/…`` in the release's layout; same bytes every time."""
    directory.mkdir(parents=True, exist_ok=True)
    for patient, timelines in TIMELINES.items():
        for visit in range(len(next(iter(timelines.values())))):
            path = directory / image_path(patient, visit)
            path.parent.mkdir(parents=True)
            severities = {finding: levels[visit] for finding, levels in timelines.items()}
            draw_radiograph(patient, visit, severities).save(path, quality=90)
    for file in ROW_FILES:
        shutil.copyfile(file, directory / file.name)


def prepare_mini(source: Path, out: Path) -> Prepared:
    """Prepare what :func:`write_mi_cxr_source` wrote."""
    return prepare_mi_cxr([source / file.name for file in ROW_FILES], source, out, mini=True)
