"""Endoscopy-like footage: what each short clip shows and when, and the drawing of one moment of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate, cycle, islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

ABDOMEN, COLON, CAPSULE, PAD, NOSE = "#bc684e", "#ce7a64", "#c48046", "#d6ba96", "#b05450"
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
    """One clip: where it is below its dataset's directory, when its frames are taken, and what they show."""

    dataset: str
    video_id: str
    path: str
    times: tuple[Fraction, ...]
    tissue: str
    shows: Mapping[str, tuple[float, float]]
    """Keys of `LOOKS` and `VEILS`, each from when to when in seconds."""
    size: tuple[int, int] = (96, 96)
    time_base: Fraction = Fraction(1, 1000)
    on_disk: str = "whole"
    """``whole``, ``truncated`` (the file is cut short and cannot be opened) or ``missing``."""

    @property
    def media_path(self) -> str:
        """The path as the release writes it, below the media directory."""
        return f"Stream_Bench/{self.dataset}/{self.dataset}/{self.path}"


def _every(gap: Fraction, number: int) -> tuple[Fraction, ...]:
    return tuple(gap * index for index in range(number))


def _uneven(milliseconds: tuple[int, ...], number: int) -> tuple[Fraction, ...]:
    gaps = (Fraction(gap, 1000) for gap in islice(cycle(milliseconds), number - 1))
    return tuple(accumulate(gaps, initial=Fraction(0)))


def _from(start: float) -> tuple[float, float]:
    return start, math.inf


_FIRST = (
    Footage(
        "cholec80", "mini-chole01", "video/mini-chole01.mp4", _every(Fraction(1, 5), 66), ABDOMEN,
        {"grasper": _from(8), "redness": _from(13), "bleeding": _from(16)}, size=(128, 96),
    ),
    Footage(
        "HeiChole", "mini-hei02", "Videos/Full/mini-hei02.mp4", _uneven((100, 250, 125, 400, 75), 90), ABDOMEN,
        {"scissors": _from(3), "smoke": (9.5, 14)}, size=(128, 96),
    ),
    Footage(
        "Colonoscopic-web", "mini-NBI(54)", "Adenoma/mini NBI (54) [cut].mp4", _every(Fraction(1, 8), 63), COLON,
        {"polyp": _from(0)}, size=(96, 72),
    ),
    Footage(
        "Colonoscopic-web", "mini-WL(09)", "Serrated/mini-WL(09).mp4", _every(Fraction(1, 4), 25), COLON,
        {"polyp": _from(2)}, size=(96, 72), on_disk="truncated",
    ),
    Footage(
        "hyper-kvasir", "mini-lower03", "labeled-videos/lower-gi-tract/mini-lower03.avi", _every(Fraction(1, 8), 96),
        COLON, {"polyp": _from(4.5), "grasper": _from(9)}, size=(112, 84),
    ),
    Footage(
        "kvasir-capsule", "mini-capsule05", "labelled_videos/mini-capsule05.mkv", _every(Fraction(1, 4), 41), CAPSULE,
        {"spots": (3, 6)}, size=(112, 112),
    ),
    Footage(
        "JIGSAWS", "mini-suturing06", "Suturing/Suturing/video/mini-suturing06.mp4", _every(Fraction(1, 5), 76), PAD,
        {"thread": _from(0), "grasper": _from(2), "scissors": _from(10)}, size=(160, 120),
    ),
    Footage(  # every sixth frame of broadcast video: no whole milliseconds
        "PitVis", "mini-video08", "mini-video08.mp4", _every(Fraction(6006, 30000), 61), NOSE,
        {"outside": (0, 3), "grasper": _from(5), "scissors": _from(7), "bleeding": _from(9)},
        size=(128, 96), time_base=Fraction(1, 30000),
    ),
    Footage(
        "EndoVis2019", "mini-endovis09", "videos/mini-endovis09.mp4", _every(Fraction(1, 4), 41), ABDOMEN,
        {"grasper": _from(2), "clip": _from(6.5)},
    ),
    Footage(
        "EndoVis2019", "mini-endovis10", "videos/mini-endovis10.mp4", _every(Fraction(1, 4), 41), ABDOMEN,
        {"scissors": _from(1)}, on_disk="missing",
    ),
    Footage(
        "MultiBypass140", "mini-SBP11", "videos/mini-SBP11.mp4", _every(Fraction(1, 4), 80), ABDOMEN,
        {"grasper": _from(4), "clip": _from(12)}, size=(128, 96),
    ),
    # pictures, not video: a time is a frame's index
    Footage(
        "CVC-ClinicDB", "mini-seq07", "mini-seq07/frames", _every(Fraction(1), 12), COLON, {"polyp": _from(5)},
        size=(96, 72),
    ),
    Footage(
        "CVC-ClinicDB", "mini-612", "Original/mini-612.png", _every(Fraction(1), 1), COLON, {"polyp": _from(0)},
        size=(96, 72),
    ),
)  # fmt: skip

_BY_ID = {clip.video_id: clip for clip in _FIRST}


def _more(
    first: str,
    video_id: str,
    seconds: int | None = None,
    shows: Mapping[str, tuple[float, float]] | None = None,
) -> Footage:
    """Another clip of the dataset of ``first``, which shows the same at the same times unless ``shows`` is given.

    With ``seconds`` it has two frames a second, which are drawn sooner than those of ``first``.
    """
    clip = _BY_ID[first]
    times = clip.times
    if seconds is not None:
        times = _every(Fraction(1, 2), 2 * seconds + 1) if Path(clip.path).suffix else _every(Fraction(1), seconds)
    path = clip.path.replace(first, video_id)
    shows = clip.shows if shows is None else shows
    return replace(clip, video_id=video_id, path=path, times=times, shows=shows, on_disk="whole")


_CLIPS = (
    *_FIRST,
    _more("mini-chole01", "mini-chole02", 24),
    _more("mini-chole01", "mini-chole03", 16),
    _more("mini-chole01", "mini-chole04", 18),
    _more("mini-chole01", "mini-chole05", 20),
    _more("mini-chole01", "mini-chole06", 6, {"grasper": _from(2)}),
    _more("mini-chole01", "mini-chole07", 6, {"scissors": _from(0), "bleeding": _from(4)}),
    _more("mini-chole01", "mini-chole08", 7, {"grasper": _from(3)}),
    _more("mini-chole01", "mini-chole09", 7, {"scissors": _from(0), "redness": _from(3), "bleeding": _from(6)}),
    _more("mini-hei02", "mini-hei03"),
    _more("mini-hei02", "mini-hei04"),
    _more("mini-hei02", "mini-hei05", 7, {"grasper": _from(2), "smoke": _from(4.5)}),
    _more("mini-hei02", "mini-hei06", 4, {"grasper": _from(2)}),
    _more("mini-WL(09)", "mini-WL(10)", 4, {"polyp": _from(1)}),
    _more("mini-lower03", "mini-lower04", 7),
    _more("mini-lower03", "mini-lower05", 5, {"polyp": _from(0), "grasper": _from(3)}),
    _more("mini-lower03", "mini-lower06", 7, {"polyp": _from(6)}),
    _more("mini-capsule05", "mini-capsule06", 5, {}),
    _more("mini-capsule05", "mini-capsule07", 4, {"spots": _from(2)}),
    _more("mini-suturing06", "mini-suturing07", 8),
    _more("mini-suturing06", "mini-suturing08", 15),
    _more("mini-suturing06", "mini-suturing09", 12),
    _more("mini-suturing06", "mini-suturing10", 6, {"thread": _from(0), "scissors": _from(3)}),
    _more("mini-video08", "mini-video09"),
    _more("mini-video08", "mini-video10"),
    _more("mini-video08", "mini-video11", 4, {"outside": (0, 1), "grasper": _from(3)}),
    _more("mini-video08", "mini-video12", 6, {"outside": _from(2)}),
    _more("mini-endovis09", "mini-endovis11", 7),
    _more("mini-endovis09", "mini-endovis12", 6, {"grasper": _from(3)}),
    _more("mini-endovis09", "mini-endovis13", 5, {"grasper": _from(0)}),
    _more("mini-endovis09", "mini-endovis14", 5, {"scissors": _from(3)}),
    _more("mini-endovis09", "mini-endovis15", 5, {"grasper": _from(1), "clip": _from(4.5)}),
    _more("mini-SBP11", "mini-SBP12", 6, {"clip": _from(2)}),
    _more("mini-seq07", "mini-seq08", 6, {}),
    _more("mini-seq07", "mini-seq09", 6, {"polyp": _from(0)}),
)

FOOTAGE = {clip.video_id: clip for clip in _CLIPS}
"""Every clip, picture sequence and picture, by its video id."""


def draw_moment(clip: Footage, time: Fraction) -> npt.NDArray[np.uint8]:
    """What ``clip`` shows at ``time``, without its time code: RGB, (height, width, 3)."""
    picture = Image.new("RGB", clip.size, clip.tissue)
    draw = ImageDraw.Draw(picture)
    _disc(draw, clip.size, 0.5 + 0.04 * math.sin(time / 3), 0.5 + 0.03 * math.cos(time / 4), 0.1, "#502820")
    seen = [name for name, (start, end) in clip.shows.items() if start <= time < end]
    for name in seen:
        if name in LOOKS:
            _disc(draw, clip.size, *LOOKS[name])
        else:
            density, color = VEILS[name]
            picture.paste(Image.blend(picture, Image.new("RGB", clip.size, color), density))
    return np.asarray(picture)


def _disc(
    draw: ImageDraw.ImageDraw, size: tuple[int, int], across: float, down: float, part: float, color: str
) -> None:
    x, y, radius = across * size[0], down * size[1], part * size[1]
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
