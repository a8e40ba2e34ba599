"""Videos with sound, covers and several streams, whose frames show their own time or four
colours.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from training.drawings.clips import draw_time_code

WIDTH, HEIGHT = 96, 64
MILLISECOND = Fraction(1, 1000)
_RATE, _BLOCK = 44_100, 1024
_ATTACHED, _DEFAULT = 1024, 1
"""FFmpeg's numbers of dispositions."""


@dataclass(frozen=True)
class Clip:
    """One stream of pictures: when each frame is shown, in milliseconds, and how it is encoded."""

    times: Sequence[int]
    codec: str = "libx264"
    pixel_format: str = "yuv420p"
    b_frames: int = 0
    default: bool = False
    picture: np.ndarray | None = None  # by default each frame shows its time
    aspect: Fraction | None = None
    size: tuple[int, int] = (WIDTH, HEIGHT)

    def frames(self) -> Iterator[av.VideoFrame]:
        for number, time in enumerate(self.times):
            picture = self.picture
            if picture is None:
                grey = np.full((self.size[1], self.size[0], 3), 90 + number % 60, dtype=np.uint8)
                picture = draw_time_code(grey, time)
            frame = av.VideoFrame.from_ndarray(
                picture, format="rgba" if picture.shape[2] == 4 else "rgb24"
            )
            frame.pts, frame.time_base = time, MILLISECOND
            yield frame


@dataclass(frozen=True)
class Film:
    """A file with these streams, in this order: pictures, then a cover, then sound that lasts
    ``sound`` seconds.
    """

    clips: Sequence[Clip] = ()
    cover: bool = False
    sound: float = 0.0
    options: dict[str, str] = field(default_factory=dict)
    container: str | None = None  # by default that of the suffix


FOUR = np.zeros((HEIGHT, WIDTH, 3), dtype=np.uint8)
"""Red, green, black and blue quarters, in reading order."""
FOUR[: HEIGHT // 2, : WIDTH // 2] = (250, 0, 0)
FOUR[: HEIGHT // 2, WIDTH // 2 :] = (0, 250, 0)
FOUR[HEIGHT // 2 :, WIDTH // 2 :] = (0, 0, 250)


def quarters(picture: Any) -> str:
    """The colours of the four quarters in reading order: r, g, b, k (black) or w (white)."""
    pixels = np.asarray(picture)
    height, width = pixels.shape[:2]
    names = ""
    for down in (1, 3):
        for along in (1, 3):
            bright = tuple(
                value > 128 for value in pixels[height * down // 4, width * along // 4].tolist()
            )
            names += {
                (1, 0, 0): "r",
                (0, 1, 0): "g",
                (0, 0, 1): "b",
                (0, 0, 0): "k",
                (1, 1, 1): "w",
            }[bright]
    return names


def write_film(path: Path, film: Film) -> Path:
    """Write the film; the suffix selects the container."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with av.open(str(path), "w", film.container, options=film.options) as container:
        streams = [_add_clip(container, clip) for clip in film.clips]
        cover = _add_cover(container) if film.cover else None
        sound = _add_sound(container) if film.sound else None
        if cover is not None:
            frame = av.VideoFrame.from_ndarray(
                np.full((120, 160, 3), 200, np.uint8), format="rgb24"
            )
            frame.pts, frame.time_base = 0, Fraction(1, 25)
            container.mux([*cover.encode(frame), *cover.encode(None)])
        if sound is not None:
            for number in range(round(film.sound * _RATE / _BLOCK)):
                container.mux(sound.encode(_silence(number)))
            container.mux(sound.encode(None))
        for clip, stream in zip(film.clips, streams, strict=True):
            for frame in clip.frames():
                container.mux(stream.encode(frame))
            container.mux(stream.encode(None))
    return path


def _add_clip(container: Any, clip: Clip) -> Any:
    gaps = {later - earlier for earlier, later in zip(clip.times, clip.times[1:], strict=False)}
    rate = Fraction(1000, min(gaps)) if gaps else Fraction(25)
    options = {"g": "12", "bf": str(clip.b_frames)}
    if clip.codec == "libx264":
        options |= {"preset": "veryfast", "sc_threshold": "0", "b_adapt": "0"}
    stream = container.add_stream(clip.codec, rate=rate, options=options)
    stream.width, stream.height = clip.size
    stream.pix_fmt = clip.pixel_format
    if not str(container.name).endswith(".avi") and clip.codec != "mpeg2video":
        stream.codec_context.time_base = MILLISECOND
    if clip.aspect is not None:
        stream.codec_context.sample_aspect_ratio = clip.aspect
    stream.disposition = _DEFAULT if clip.default else 0
    return stream


def _add_cover(container: Any) -> Any:
    cover = container.add_stream("mjpeg", rate=25)
    cover.width, cover.height, cover.pix_fmt = 160, 120, "yuvj420p"
    cover.disposition = _ATTACHED
    return cover


def _add_sound(container: Any) -> Any:
    sound = container.add_stream("aac", rate=_RATE)
    sound.layout = "mono"
    return sound


def _silence(number: int) -> av.AudioFrame:
    frame = av.AudioFrame.from_ndarray(
        np.zeros((1, _BLOCK), np.float32), format="fltp", layout="mono"
    )
    frame.sample_rate, frame.pts, frame.time_base = _RATE, number * _BLOCK, Fraction(1, _RATE)
    return frame


def with_display_matrix(path: Path, matrix: tuple[float, float, float, float], out: Path) -> Path:
    """A copy of an MP4 file of one stream with this display matrix (a, b, c, d)."""
    data = path.read_bytes()
    start = data.index(b"tkhd") + 44
    a, b, c, d = (round(entry * 2**16) for entry in matrix)
    packed = struct.pack(">9i", a, b, 0, c, d, 0, 0, 0, 2**30)
    out.write_bytes(data[:start] + packed + data[start + len(packed) :])
    return out
