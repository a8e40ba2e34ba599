"""Frames as players show them: in RGB, with square pixels, turned as the container says."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PIXELS
from medtasks.data.media.pixel_values import as_rgb

if TYPE_CHECKING:
    from PIL.Image import Image, Transpose


def frame_as_rgb(frame: Any, name: str) -> Image:
    """The frame as RGB of 8 bits per channel, transparency on white."""
    from PIL import Image

    if any(component.is_alpha for component in frame.format.components):
        return as_rgb(Image.fromarray(frame.to_ndarray(format="rgba")), name)
    picture: Image.Image = frame.to_image()
    return picture


def with_square_pixels(picture: Image, aspect: Fraction | None, name: str) -> Image:
    """The picture with one of its sides stretched by the aspect ratio of its pixels."""
    from PIL.Image import Resampling

    if not aspect or aspect == 1:
        return picture
    width, height = picture.size
    if aspect > 1:
        width = round(width * aspect)
    else:
        height = round(height / aspect)
    if width * height > MAX_PIXELS:
        raise MediaError(
            f"{name}: its pixels have an aspect ratio of {aspect}, which makes frames of "
            f"{width:,} × {height:,} pixels, more than the limit of {MAX_PIXELS:,}; "
            "correct the ratio."
        )
    if (width, height) == picture.size:
        return picture
    return picture.resize((width, height), Resampling.BICUBIC)


_TURNS: Mapping[tuple[int, int, int, int], str] = {
    (1, 0, 0, 1): "",
    (-1, 0, 0, 1): "FLIP_LEFT_RIGHT",
    (1, 0, 0, -1): "FLIP_TOP_BOTTOM",
    (-1, 0, 0, -1): "ROTATE_180",
    (0, 1, -1, 0): "ROTATE_270",
    (0, -1, 1, 0): "ROTATE_90",
    (0, 1, 1, 0): "TRANSPOSE",
    (0, -1, -1, 0): "TRANSVERSE",
}
"""Pillow's name for the effect of a display matrix, by the signs of a, b, c and d.

The pixel in column x and row y is shown in column a x + c y and row b x + d y.
"""


def turn_of(frame: Any, name: str) -> Transpose | None:
    """The turn or mirroring of the frame before it is shown; None for neither."""
    from av.sidedata.sidedata import Type
    from PIL.Image import Transpose

    matrix = frame.side_data.get(Type.DISPLAYMATRIX)
    if matrix is None:
        return None
    # stored by rows: (a, b, u), (c, d, v), (x, y, w)
    a, b, _, c, d, *_ = struct.unpack("=9i", bytes(matrix))
    largest = max(map(abs, (a, b, c, d)))
    signs = _sign(a, largest), _sign(b, largest), _sign(c, largest), _sign(d, largest)
    if signs not in _TURNS:
        raise MediaError(
            f"{name}: is turned by an angle that is no multiple of 90 degrees; convert it to MP4."
        )
    turn = _TURNS[signs]
    return Transpose[turn] if turn else None


def _sign(entry: int, largest: int) -> int:
    """-1, 0 or 1; rounding leaves small numbers where 0 is meant."""
    if abs(entry) * 100 < largest:
        return 0
    return 1 if entry > 0 else -1
