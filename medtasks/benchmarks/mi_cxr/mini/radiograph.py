"""Chest-radiograph-like pictures of synthetic patients, drawn from per-visit severities."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageFilter

SIDE = 320
FINDINGS = ("left pleural effusion", "right pleural effusion", "right upper zone opacity", "cardiomegaly")

Field = npt.NDArray[np.float64]


def region(finding: str) -> tuple[int, int, int, int]:
    """Left, top, right, bottom of the part of the picture in which ``finding`` shows (patient's left is right)."""
    return {
        "left pleural effusion": (190, 180, 265, 245),
        "right pleural effusion": (55, 180, 130, 245),
        "right upper zone opacity": (75, 80, 125, 130),
        "cardiomegaly": (212, 175, 254, 200),
    }[finding]


def draw_radiograph(patient: str, visit: int, severities: Mapping[str, int], seed: int = 0) -> Image.Image:
    """One visit's picture: 8-bit grey, 320 by 320.

    A patient's anatomy stays the same over visits, pose and noise change a little; each finding shows with its
    severity from 0 (absent) to 3.
    """
    anatomy = _generator(seed, patient)
    pose = _generator(seed, f"{patient}/{visit}")
    rows, columns = np.mgrid[0:SIDE, 0:SIDE].astype(np.float64)
    rows, columns = rows + pose.uniform(-2, 2), columns + pose.uniform(-2, 2)
    wide, tall = 58 + anatomy.uniform(-4, 4), 104 + anatomy.uniform(-6, 6)
    lungs = np.maximum(_ellipse(rows, columns, 150, 98, tall, wide), _ellipse(rows, columns, 150, 222, tall, wide))
    body = _ellipse(rows, columns, 175, 160, 190, 158)
    light = 0.16 + 0.50 * body - 0.40 * lungs
    light += 0.05 * lungs * (np.sin((rows - 0.16 * np.abs(columns - 160)) / 4.4) > 0.72)
    heart = 44 + 11 * severities.get("cardiomegaly", 0)
    light = np.maximum(light, 0.66 * _ellipse(rows, columns, 196, 172, 54, heart))
    light = np.maximum(light, 0.60 * _ellipse(rows, columns, 120, 160, 120, 16))
    for side, middle in (("right", 98), ("left", 222)):
        light = np.maximum(light, _effusion(rows, columns, middle, severities.get(f"{side} pleural effusion", 0)))
    opacity = severities.get("right upper zone opacity", 0)
    if opacity:
        light = np.maximum(
            light, (0.36 + 0.10 * opacity) * _ellipse(rows, columns, 105, 100, 13 + 6 * opacity, 15 + 6 * opacity)
        )
    light += pose.normal(0, 0.012, light.shape)
    picture = Image.fromarray(np.clip(light * 255, 0, 255).astype(np.uint8))
    return picture.filter(ImageFilter.GaussianBlur(1.1))


def _generator(seed: int, name: str) -> np.random.Generator:
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:8], "big"))


def _ellipse(rows: Field, columns: Field, y: float, x: float, tall: float, wide: float) -> Field:
    """1 inside, 0 outside, with a soft edge."""
    distance = np.hypot((rows - y) / tall, (columns - x) / wide)
    inside: Field = np.clip((1.04 - distance) / 0.08, 0, 1)
    return inside


def _effusion(rows: Field, columns: Field, middle: float, severity: int) -> Field:
    """Fluid that fills the base with a meniscus; higher for a worse effusion."""
    if not severity:
        return np.zeros_like(rows)
    level = 236 - 17 * severity - 10 * np.abs((columns - middle) / 58) ** 2
    inside = _ellipse(rows, columns, 150, middle, 106, 60)
    fluid: Field = 0.64 * inside * np.clip((rows - level) / 6, 0, 1)
    return fluid
