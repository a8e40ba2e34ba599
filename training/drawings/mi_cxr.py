"""The radiographs of the miniature MI-CXR: 28 invented patients (``timelines.json``).

Rows and pictures agree: every right option was derived from `TIMELINES` when the rows were written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from PIL import Image, ImageDraw

from . import BENCHMARKS, read_table

ROW_FILES = tuple(
    BENCHMARKS / f"mi_cxr/mini/{name}.jsonl" for name in ("micxr_test", "micxr_icr_variant")
)

TIMELINES = read_table("timelines.json", dict[str, dict[str, tuple[int, ...]]])
"""Severity (0 absent to 3) per visit; findings that are not listed are absent throughout."""

SIDE = 320
LEFT, RIGHT, OPACITY, HEART = FINDINGS = (
    "left pleural effusion",
    "right pleural effusion",
    "right upper zone opacity",
    "cardiomegaly",
)


def image_path(patient: str, visit: int) -> str:
    """Path of a visit's picture as in MIMIC-CXR-JPG, with numbers that no real study has."""
    digest = hashlib.sha256(f"{patient}/{visit}".encode()).hexdigest()
    name = "-".join(["00000000", *(digest[start : start + 8] for start in range(0, 32, 8))])
    return f"files/p00/{patient}/s{int(patient[1:]):05d}{visit:03d}/{name}.jpg"


def draw_all(directory: Path) -> None:
    """Write ``files/…`` of every patient and visit."""
    for patient, timelines in TIMELINES.items():
        for visit in range(len(next(iter(timelines.values())))):
            path = directory / image_path(patient, visit)
            path.parent.mkdir(parents=True, exist_ok=True)
            severities = {finding: levels[visit] for finding, levels in timelines.items()}
            draw_radiograph(patient, visit, severities).save(path, quality=90)


def draw_radiograph(patient: str, visit: int, severities: Mapping[str, int]) -> Image.Image:
    """One visit's picture: 8-bit grey, 320 by 320; the patient's left is on the right side.

    Anatomy depends on the patient, the position of the body on the visit, and each finding shows
    with its severity from 0 (absent) to 3: an effusion rises, an opacity and the heart grow.
    """
    picture = Image.new("L", (SIDE, SIDE), 40)
    draw = ImageDraw.Draw(picture)
    number, shift = int(patient[1:]), visit % 3
    wide, tall = 44 + 5 * number % 21, 92 + 7 * number % 13  # 273 builds

    def ellipse(x: int, y: int, half_width: int, half_height: int, grey: int) -> None:
        draw.ellipse(
            (x - half_width + shift, y - half_height, x + half_width + shift, y + half_height),
            fill=grey,
        )

    ellipse(160, 175, 155, 190, 168)
    for x, effusion in ((98, RIGHT), (222, LEFT)):
        ellipse(x, 150, wide, tall, 66)
        half_angle = 32 + 9 * severities.get(effusion, 0)
        if half_angle > 32:
            lung = (x - wide + shift, 150 - tall, x + wide + shift, 150 + tall)
            draw.chord(lung, 90 - half_angle, 90 + half_angle, fill=164)
    draw.rectangle((146 + shift, 20, 174 + shift, 250), fill=152)
    ellipse(172, 196, 44 + 11 * severities.get(HEART, 0), 54, 180)
    opacity = severities.get(OPACITY, 0)
    if opacity:
        ellipse(100, 105, 13 + 6 * opacity, 13 + 6 * opacity, 92 + 26 * opacity)
    return picture
