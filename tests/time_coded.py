"""Generated videos whose frames show their own time, in milliseconds, as a code that can be read
back.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL.Image import Image

from training.drawings.clips import (
    CODE_HEIGHT,
    COLUMNS,
    ROWS,
    Picture,
    blocks,
    check_bits,
    draw_time_code,
    encode_clip,
)

WIDTH, HEIGHT = 96, 64
DARK, BRIGHT = 96, 160
"""Levels up to which a block is black, and from which it is white."""


def write_video(path: Path, milliseconds: Sequence[int], codec: str | None = None) -> Path:
    """A video with one frame at each time, showing it."""

    def draw(index: int, time: Fraction) -> np.ndarray:
        grey = np.full((HEIGHT, WIDTH, 3), 90 + index % 60, dtype=np.uint8)
        return draw_time_code(grey, int(time * 1000))

    path.parent.mkdir(parents=True, exist_ok=True)
    encode_clip(path, [Fraction(time, 1000) for time in milliseconds], draw, codec=codec)
    return path


def read_time_code(picture: Picture) -> int | None:
    """Milliseconds in the code of :func:`draw_time_code`; None if there is no valid code."""
    height, width = picture.shape[:2]
    if width < COLUMNS or height < ROWS / CODE_HEIGHT:
        return None
    word = 0
    for top, bottom, left, right in blocks(height, width):
        across, down = (
            (right - left) // 4,
            (bottom - top) // 4,
        )  # the border of a block bleeds into its neighbours
        level = float(picture[top + down : bottom - down, left + across : right - across].mean())
        if DARK < level < BRIGHT:
            return None
        word = word << 1 | (level >= BRIGHT)
    milliseconds, check = word >> 8, word & 0xFF
    return milliseconds if check == check_bits(milliseconds) else None


def shown(picture: Image) -> int:
    """The time that a decoded frame shows, in milliseconds."""
    found = read_time_code(np.asarray(picture.convert("RGB")))
    assert found is not None, "the picture carries no time code"
    return found
