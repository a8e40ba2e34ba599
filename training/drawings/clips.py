"""Short videos whose frames show their exact presentation times as a block code."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from medtasks.core.errors import UsageError

if TYPE_CHECKING:
    import av
    from av.container import OutputContainer

Picture = npt.NDArray[np.uint8]
"""Red, green and blue samples, shape (height, width, 3)."""

GOP = 12
"""Frames from one key frame to the next: few enough for a seek to land between others, more than a
round's frames.
"""

COLUMNS, ROWS, DATA_BITS = 16, 2, 24
CODE_HEIGHT = 0.2
"""Share of a picture's height, from the top, that the time code covers."""


def encode_clip(
    path: Path,
    times: Sequence[Fraction],
    draw: Callable[[int, Fraction], Picture],
    *,
    codec: str | None = None,
    time_base: Fraction = Fraction(1, 1000),
) -> None:
    """Write a video whose frame ``i`` is ``draw(i, times[i])`` and is presented at exactly
    ``times[i]`` seconds.

    The suffix selects the container: ``.mp4`` (with B-frames if the codec has them), ``.mkv``, or
    ``.avi``, which can only be MPEG-4 at a constant rate, since AVI has no presentation times.
    Equal PyAV builds write equal bytes.

    Args:
        path: File to write; its directory must exist.
        times: Increasing, from 0 or later, constant rate or not, each a multiple of ``time_base``.
        draw: Gives pictures of one even height and width.
        codec: An encoder's name; default H.264 (libx264) if this PyAV has it, otherwise MPEG-4.
        time_base: The unit of timestamps in seconds. Matroska always uses milliseconds, AVI the gap
        between frames.

    Raises:
        UsageError: the times cannot be kept exactly.
    """
    import av

    if codec is None:
        codec = "libx264" if "libx264" in av.codecs_available and path.suffix != ".avi" else "mpeg4"
    base = times[1] - times[0] if path.suffix == ".avi" and len(times) > 1 else time_base
    stamps = _stamps(path, times, base)
    with av.open(str(path), "w", options={"fflags": "+bitexact"}) as container:
        stream: av.VideoStream | None = None
        for index, (time, stamp) in enumerate(zip(times, stamps, strict=True)):
            picture = draw(index, time)
            if stream is None:
                height, width = picture.shape[:2]
                rate = 1 / base if path.suffix == ".avi" else _mean_rate(times)
                stream = _stream(container, codec, rate, base, b_frames=path.suffix == ".mp4")
                stream.width, stream.height = width, height
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts, frame.time_base = stamp, base
            container.mux(stream.encode(frame))
        if stream is not None:
            container.mux(stream.encode(None))


def _stamps(path: Path, times: Sequence[Fraction], base: Fraction) -> list[int]:
    """The times in units of ``base``."""
    if not times:
        raise UsageError(f"{path.name}: a clip needs at least one frame.")
    earlier = Fraction(-1)
    for time in times:
        if time < 0 or time <= earlier or (time / base).denominator != 1:
            raise UsageError(
                f"{path.name}: frame times must be increasing multiples of {base} s from 0, found "
                f"{time}."
            )
        earlier = time
    return [int(time / base) for time in times]


def _mean_rate(times: Sequence[Fraction]) -> Fraction:
    """Frames per second, as the encoder's rate control wants it; timestamps do not depend on it."""
    if len(times) < 2:
        return Fraction(1)
    return ((len(times) - 1) / (times[-1] - times[0])).limit_denominator(1001)


def _stream(
    container: OutputContainer, codec: str, rate: Fraction, base: Fraction, *, b_frames: bool
) -> av.VideoStream:
    """A stream whose encoding depends on neither the clock nor the number of cores."""
    from av.codec.context import Flags
    from av.video.stream import VideoStream

    options = {"threads": "1", "g": str(GOP)}
    if codec == "libx264":
        # Matroska shifts all times when the first decoding time is negative, so B-frames are for
        # MP4 with its edit list
        options |= {
            "preset": "veryfast",
            "crf": "28",
            "sc_threshold": "0",
            "bf": "2" if b_frames else "0",
        }
        options["x264-params"] = (
            "asm=0"  # its assembly chooses other B-frames from one run to the next
        )
    elif codec == "mpeg4":
        options |= {"qmin": "5", "qmax": "9"}
    stream = container.add_stream(codec, rate=rate, options=options)
    assert isinstance(stream, VideoStream)
    stream.pix_fmt = "yuv420p"
    stream.time_base = base
    stream.codec_context.time_base = base
    stream.codec_context.flags |= int(Flags.bitexact)
    return stream


def draw_time_code(picture: Picture, milliseconds: int) -> Picture:
    """A copy of ``picture`` with its time written over the top fifth, in two rows of 16 black or
    white blocks.

    24 bits of the time (at most 4 h 39 min), most significant first, then 8 check bits. Blocks are
    shares of the picture, of at least 64 by 40, so that the code survives resizing as well as lossy
    compression.
    """
    height, width = picture.shape[:2]
    word = milliseconds << 8 | check_bits(milliseconds)
    coded: Picture = picture.copy()
    for place, (top, bottom, left, right) in enumerate(blocks(height, width)):
        coded[top:bottom, left:right] = 255 if word >> (COLUMNS * ROWS - 1 - place) & 1 else 0
    return coded


def blocks(height: int, width: int) -> list[tuple[int, int, int, int]]:
    """Top, bottom, left and right of each block in reading order."""
    rows = [round(height * CODE_HEIGHT * row / ROWS) for row in range(ROWS + 1)]
    columns = [round(width * column / COLUMNS) for column in range(COLUMNS + 1)]
    edges = []
    for top, bottom in pairwise(rows):
        for left, right in pairwise(columns):
            edges.append((top, bottom, left, right))
    return edges


def check_bits(milliseconds: int) -> int:
    """Eight check bits; an all-black or all-white top fails the check."""
    return zlib.crc32(milliseconds.to_bytes(DATA_BITS // 8, "big")) & 0xFF
