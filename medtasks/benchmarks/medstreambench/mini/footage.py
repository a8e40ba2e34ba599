"""Endoscopy-like footage: what a short clip shows and from when to when, and the drawing of one moment of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, cycle, islice

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

TISSUE = {
    "abdomen": (188, 104, 78),
    "colon": (206, 122, 100),
    "capsule": (196, 128, 70),
    "pad": (214, 186, 150),
    "nose": (176, 84, 80),
}
LOOKS = {
    "polyp": (0.62, 0.48, 0.15, (240, 158, 164)),
    "spots": (0.42, 0.75, 0.05, (176, 16, 22)),
    "thread": (0.50, 0.60, 0.06, (30, 40, 120)),
    "redness": (0.28, 0.78, 0.08, (206, 84, 74)),
    "bleeding": (0.28, 0.78, 0.20, (150, 6, 12)),
    "clip": (0.50, 0.63, 0.06, (216, 180, 40)),
    "grasper": (0.85, 0.70, 0.14, (206, 210, 216)),
    "scissors": (0.15, 0.65, 0.14, (104, 110, 118)),
}
"""What can be seen: across, down, radius (as parts of width and height) and colour of a disc."""


@dataclass(frozen=True)
class Event:
    """One thing that can be seen, in seconds of the clip: ``kind`` is a branch of :func:`draw_moment`."""

    kind: str
    start: float = 0.0
    end: float = math.inf


@dataclass(frozen=True)
class Footage:
    """One clip: where it lies below its dataset's folder, when its frames are taken, and what they show."""

    dataset: str
    video_id: str
    path: str
    times: tuple[Fraction, ...]
    tissue: str
    events: tuple[Event, ...]
    size: tuple[int, int] = (128, 96)
    time_base: Fraction = Fraction(1, 1000)
    on_disk: str = "whole"
    """``whole``, ``truncated`` (the file is cut short and cannot be opened) or ``missing``."""

    @property
    def media_path(self) -> str:
        """The path as the release writes it, below the media folder."""
        return f"Stream_Bench/{self.dataset}/{self.dataset}/{self.path}"


def _every(gap: Fraction, number: int) -> tuple[Fraction, ...]:
    return tuple(gap * index for index in range(number))


def _uneven(milliseconds: tuple[int, ...], number: int) -> tuple[Fraction, ...]:
    gaps = (Fraction(gap, 1000) for gap in islice(cycle(milliseconds), number - 1))
    return tuple(accumulate(gaps, initial=Fraction(0)))


_CLIPS = (
    Footage(
        "cholec80",
        "mini-chole01",
        "video/mini-chole01.mp4",
        _every(Fraction(1, 5), 120),
        "abdomen",
        (Event("grasper", 8.0), Event("redness", 13.0), Event("bleeding", 16.0)),
    ),
    Footage(
        "HeiChole",
        "mini-hei02",
        "Videos/Full/mini-hei02.mp4",
        _uneven((100, 250, 125, 400, 75), 90),
        "abdomen",
        (Event("scissors", 3.0), Event("smoke", 9.5, 14.0)),
    ),
    Footage(
        "Colonoscopic-web",
        "mini-NBI(54)",
        "Adenoma/mini NBI (54) [cut].mp4",
        _every(Fraction(1, 8), 63),
        "colon",
        (Event("polyp"),),
        size=(96, 72),
    ),
    Footage(
        "Colonoscopic-web",
        "mini-WL(09)",
        "Serrated/mini-WL(09).mp4",
        _every(Fraction(1, 4), 25),
        "colon",
        (Event("polyp", 2.0),),
        size=(96, 72),
        on_disk="truncated",
    ),
    Footage(
        "hyper-kvasir",
        "mini-lower03",
        "labeled-videos/lower-gi-tract/mini-lower03.avi",
        _every(Fraction(1, 8), 96),
        "colon",
        (Event("polyp", 4.5), Event("grasper", 9.0)),
        size=(112, 84),
    ),
    Footage(
        "kvasir-capsule",
        "mini-capsule05",
        "labelled_videos/mini-capsule05.mkv",
        _every(Fraction(1, 4), 41),
        "capsule",
        (Event("spots", 3.0, 6.0),),
        size=(112, 112),
    ),
    Footage(
        "JIGSAWS",
        "mini-suturing06",
        "Suturing/Suturing/video/mini-suturing06.mp4",
        _every(Fraction(1, 5), 76),
        "pad",
        (Event("thread"), Event("grasper", 2.0), Event("scissors", 10.0)),
        size=(160, 120),
    ),
    Footage(
        "PitVis",
        "mini-video08",
        "mini-video08.mp4",
        _every(Fraction(6006, 30000), 61),  # every sixth frame of broadcast video: no whole milliseconds
        "nose",
        (Event("outside", 0.0, 3.0), Event("grasper", 5.0), Event("scissors", 7.0), Event("bleeding", 9.0)),
        time_base=Fraction(1, 30000),
    ),
    Footage(
        "EndoVis2019",
        "mini-endovis09",
        "videos/mini-endovis09.mp4",
        _every(Fraction(1, 4), 41),
        "abdomen",
        (Event("grasper", 2.0), Event("clip", 6.5)),
        size=(96, 96),
    ),
    Footage(
        "EndoVis2019",
        "mini-endovis10",
        "videos/mini-endovis10.mp4",
        _every(Fraction(1, 4), 41),
        "abdomen",
        (Event("scissors", 1.0),),
        size=(96, 96),
        on_disk="missing",
    ),
    Footage(
        "MultiBypass140",
        "mini-SBP11",
        "videos/mini-SBP11.mp4",
        _every(Fraction(1, 4), 80),
        "abdomen",
        (Event("grasper", 4.0), Event("clip", 12.0)),
    ),
    # pictures, not video: a time is a frame's index
    Footage(
        "CVC-ClinicDB",
        "mini-seq07",
        "mini-seq07/frames",
        _every(Fraction(1), 12),
        "colon",
        (Event("polyp", 5.0),),
        size=(96, 72),
    ),
    Footage(
        "CVC-ClinicDB",
        "mini-612",
        "Original/mini-612.png",
        _every(Fraction(1), 1),
        "colon",
        (Event("polyp"),),
        (96, 72),
    ),
)

FOOTAGE = {clip.video_id: clip for clip in _CLIPS}
"""Every clip, picture sequence and picture, by its video id."""


def draw_moment(clip: Footage, time: Fraction) -> npt.NDArray[np.uint8]:
    """What ``clip`` shows at ``time``, without its time code: RGB, (height, width, 3)."""
    at = float(time)
    now = [event.kind for event in clip.events if event.start <= at < event.end]
    width, height = clip.size
    picture = _tissue(TISSUE[clip.tissue], width, height, at)
    draw = ImageDraw.Draw(picture)
    for kind in now:
        if kind in LOOKS:
            across, down, size, color = LOOKS[kind]
            x, y, radius = across * width, down * height, size * height
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=color)
    pixels = np.asarray(picture)
    if "smoke" in now:
        pixels = (pixels * 0.45 + 0.55 * 214).astype(np.uint8)
    if "outside" in now:
        pixels = (pixels * 0.12).astype(np.uint8)
    return pixels


def _tissue(color: tuple[int, int, int], width: int, height: int, at: float) -> Image.Image:
    """Tissue lit from the lens, with folds around a dark depth that sways slowly."""
    rows, columns = np.mgrid[0:height, 0:width]
    x, y = width * (0.5 + 0.04 * math.sin(at / 3)), height * (0.55 + 0.03 * math.cos(at / 4))
    distance = np.hypot((columns - x) / width, (rows - y) / height)
    light = 1.05 - 0.7 * distance + 0.05 * np.sin(distance * 34) - 0.6 * np.exp(-((distance / 0.1) ** 2))
    return Image.fromarray(np.clip(np.array(color) * light[..., None], 0, 255).astype(np.uint8))
