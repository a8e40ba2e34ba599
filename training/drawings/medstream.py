"""The clips of the miniature MedStreamBench, whose frames show their own time.

``footage.json`` says what each clip shows and when; a picture sequence's times are its frames'
indices.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, cycle, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from . import BENCHMARKS, read_table
from .clips import draw_time_code, encode_clip

RECORDS = BENCHMARKS / "medstreambench/mini/records"
LOOKS = {
    "polyp": (0.62, 0.48, 0.15, "#f09ea4"),
    "spots": (0.42, 0.75, 0.05, "#b01016"),
    "thread": (0.50, 0.60, 0.06, "#1e2878"),
    "redness": (0.28, 0.78, 0.08, "#ce544a"),
    "bleeding": (0.28, 0.78, 0.20, "#96060c"),
    "clip": (0.50, 0.63, 0.06, "#d8b428"),
    "grasper": (0.85, 0.70, 0.14, "#ced2d8"),
    "scissors": (0.15, 0.65, 0.14, "#686e76"),
}
"""What can be seen: across, down, radius (as parts of width and height) and colour of a disc."""

VEILS = {"smoke": (0.55, "#d6d6d6"), "outside": (0.88, "black")}
"""What covers the whole picture: how densely, and its colour."""


@dataclass(frozen=True)
class Footage:
    """One clip: where it is below its dataset's directory, when its frames are taken, and what they
    show.
    """

    dataset: str
    video_id: str
    path: str
    gaps: tuple[Fraction, ...]
    """Seconds between its frames, again and again."""
    frames: int
    tissue: str
    shows: Mapping[str, tuple[float, ...]]
    """Keys of `LOOKS` and `VEILS`, each from when and, unless it stays, to when in seconds."""
    size: tuple[int, int] = (96, 96)
    time_base: Fraction = Fraction(1, 1000)
    on_disk: str = "whole"
    """``whole``, ``truncated`` (the file is cut short and cannot be opened) or ``missing``."""

    @property
    def times(self) -> tuple[Fraction, ...]:
        """Presentation times in seconds, or indices of pictures."""
        return tuple(accumulate(islice(cycle(self.gaps), self.frames - 1), initial=Fraction(0)))

    @property
    def media_path(self) -> str:
        """The path as the release writes it, below the media directory."""
        return f"Stream_Bench/{self.dataset}/{self.dataset}/{self.path}"


FOOTAGE = {clip.video_id: clip for clip in read_table("footage.json", tuple[Footage, ...])}
"""Every clip, picture sequence and picture, by its video id."""


def draw_all(directory: Path) -> None:
    """Write ``media/Stream_Bench/…``."""
    for clip in FOOTAGE.values():
        if clip.on_disk != "missing":
            _write_medium(directory / "media" / clip.media_path, clip)


def _write_medium(path: Path, clip: Footage) -> None:
    if path.suffix in (".mp4", ".mkv", ".avi"):
        path.parent.mkdir(parents=True, exist_ok=True)
        codec = "mpeg4" if path.suffix == ".avi" else None
        encode_clip(
            path,
            clip.times,
            lambda _, time: _frame(clip, time),
            codec=codec,
            time_base=clip.time_base,
        )
        if clip.on_disk == "truncated":
            data = path.read_bytes()
            path.write_bytes(data[: len(data) * 3 // 5])
    elif path.suffix:
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(_frame(clip, clip.times[0])).save(path)
    else:
        path.mkdir(parents=True, exist_ok=True)
        for number, time in enumerate(clip.times):
            Image.fromarray(_frame(clip, time)).save(path / f"frame_{number:04}.jpg", quality=90)


def _frame(clip: Footage, time: Fraction) -> npt.NDArray[np.uint8]:
    """The moment with its time on it: milliseconds of a video, a thousand times the index of a
    picture.
    """
    return draw_time_code(draw_moment(clip, time), int(time * 1000))


def draw_moment(clip: Footage, time: Fraction) -> npt.NDArray[np.uint8]:
    """What ``clip`` shows at ``time``, without its time code: RGB, (height, width, 3)."""
    picture = Image.new("RGB", clip.size, clip.tissue)
    draw = ImageDraw.Draw(picture)
    _disc(
        draw,
        clip.size,
        0.5 + 0.04 * math.sin(time / 3),
        0.5 + 0.03 * math.cos(time / 4),
        0.1,
        "#502820",
    )
    seen = [
        name
        for name, (start, *end) in clip.shows.items()
        if start <= time < min(end, default=math.inf)
    ]
    for name in seen:
        if name in LOOKS:
            _disc(draw, clip.size, *LOOKS[name])
        else:
            density, color = VEILS[name]
            picture.paste(Image.blend(picture, Image.new("RGB", clip.size, color), density))
    return np.asarray(picture)


def _disc(
    draw: ImageDraw.ImageDraw,
    size: tuple[int, int],
    across: float,
    down: float,
    part: float,
    color: str,
) -> None:
    x, y, radius = across * size[0], down * size[1], part * size[1]
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
