"""Soft-edged shapes for drawn targets, on a square whose sides are at -1 and 1."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from PIL import Image

Field = npt.NDArray[np.float64]
Shape = Callable[[Field, Field], Field]


def ellipse(rows: Field, columns: Field, y: float, x: float, tall: float, wide: float) -> Field:
    """1 inside the ellipse around (y, x) with half axes ``tall`` and ``wide``, 0 outside, with a soft edge."""
    distance = np.hypot((rows - y) / tall, (columns - x) / wide)
    return np.asarray(np.clip((1.04 - distance) / 0.08, 0, 1))


def smooth_noise(generator: np.random.Generator, cells: int, shape: tuple[int, ...]) -> Field:
    """Noise from about -1 to 1 that varies over ``cells`` cells a side; smooth, so that a PNG of it stays small."""
    coarse = Image.fromarray((generator.random((cells, cells)) * 255).astype(np.uint8))
    grown = coarse.resize((shape[1], shape[0]), Image.Resampling.BICUBIC)
    return np.asarray(grown, dtype=np.float64) / 127.5 - 1


def _soft(inside: Field, edge: float = 0.10) -> Field:
    """1 where ``inside`` exceeds ``edge``, 0 where it is negative."""
    return np.asarray(np.clip(inside / edge, 0, 1))


def _disc(u: Field, v: Field) -> Field:
    return _soft(1 - np.hypot(u, v))


def _ring(u: Field, v: Field) -> Field:
    return _soft(0.2 - np.abs(np.hypot(u, v) - 0.8))


def _double_ring(u: Field, v: Field) -> Field:
    """A dense disc with a thin clear groove a little inside its rim."""
    return _disc(u, v) - 0.7 * _soft(0.09 - np.abs(np.hypot(u, v) - 0.74), 0.04)


def _jagged_right(u: Field, v: Field) -> Field:
    """A disc with a smooth left edge and a toothed right one."""
    reach = np.where(u > 0, 0.82 + 0.18 * np.sin(14 * np.arctan2(v, u)), 0.9)
    return _soft(reach - np.hypot(u, v), 0.08)


def _star(u: Field, v: Field) -> Field:
    """Eight thin rays from a small round middle."""
    distance = np.hypot(u, v)
    aside = np.abs(np.sin(4 * np.arctan2(v, u))) / 4 * distance
    rays = _soft(0.07 - aside, 0.05) * _soft(1 - distance)
    return np.maximum(rays, _soft(0.26 - distance, 0.08))


def _crescent(u: Field, v: Field) -> Field:
    """A disc with a bite out of its right side: the horns point right."""
    return _disc(u, v) * (1 - _soft(0.85 - np.hypot(u - 0.62, v)))


def _cross(u: Field, v: Field) -> Field:
    """Two thin crossing bars, upright and level."""
    bars = np.maximum(_soft(0.17 - np.abs(u)), _soft(0.17 - np.abs(v)))
    return bars * _soft(1 - np.maximum(np.abs(u), np.abs(v)))


def _worm(u: Field, v: Field) -> Field:
    """A curled thread: thick at its left end, thin as a hair at its right one."""
    thick = 0.09 + 0.13 * _soft(-u, 0.7)
    return _soft(thick - np.abs(v - 0.62 * np.sin(u * 5.2)), 0.08) * _soft(1 - np.abs(u))


def _triangle(u: Field, v: Field) -> Field:
    """A small roof, tip up."""
    return _soft(np.minimum((v + 1) / 2 - np.abs(u), 1 - v))


def _trail(u: Field, v: Field) -> Field:
    """A wavy line from left to right."""
    return _soft(0.22 - np.abs(v - 0.7 * np.sin(u * 4.5)), 0.1) * _soft(1 - np.abs(u))


def _shadow(u: Field, v: Field) -> Field:
    """A wedge that widens downwards."""
    return _soft(0.62 + 0.18 * (v + 1) - np.abs(u), 0.12) * _soft(1 - np.abs(v))


def _cap(u: Field, v: Field) -> Field:
    """The upper shell of a disc."""
    return _disc(u, v) * (1 - _soft(1 - np.hypot(u, v - 0.7), 0.2))


def _pool(u: Field, v: Field) -> Field:
    """Fluid in the lower half of an ellipse, its level drawn up at both sides."""
    return _soft(1 - np.hypot(u, v)) * _soft(v + 0.15 + 0.5 * u**2)


def _band(u: Field, v: Field) -> Field:
    return _soft(1 - np.abs(u), 0.4) * _soft(1 - np.abs(v), 0.2)


def _spots(u: Field, v: Field) -> Field:
    """Thirteen blots that fill the square."""
    cover = np.zeros_like(u)
    for place in range(13):
        x, y = np.cos(place * 2.4), np.sin(place * 2.4)
        far = 0.83 * np.sqrt(place / 12)
        cover = np.maximum(cover, _soft(0.17 - np.hypot(u - far * x, v - far * y), 0.05))
    return cover


SHAPES: Mapping[str, Shape] = {
    "disc": _disc,
    "ring": _ring,
    "double ring": _double_ring,
    "jagged right": _jagged_right,
    "star": _star,
    "crescent": _crescent,
    "cross": _cross,
    "worm": _worm,
    "triangle": _triangle,
    "trail": _trail,
    "shadow": _shadow,
    "cap": _cap,
    "pool": _pool,
    "band": _band,
    "spots": _spots,
}
"""Cover from 0 to 1 at (u, v); 0 wherever either lies outside -1 to 1."""
