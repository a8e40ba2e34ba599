"""Pictures in the colours of eight imaging modalities, with marks drawn at places that a test can ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from medtasks.benchmarks.med_cmr.mini.shapes import SHAPES, ellipse, smooth_noise

CAPTION = 18
"""Height in pixels of the strip above the panels where one has a caption."""

Field = npt.NDArray[np.float64]
Color = float | tuple[float, float, float]


@dataclass(frozen=True)
class Mark:
    """One drawn target. Middle and half extents are fractions of the panel, ``color`` is a grey or RGB value 0..1."""

    name: str
    shape: str
    x: float
    y: float
    wide: float
    tall: float
    color: Color
    opacity: float = 1.0


@dataclass(frozen=True)
class Panel:
    """A square part of a picture: a backdrop of :data:`BACKDROPS`, marks (later ones on top), a caption or none."""

    backdrop: str
    marks: tuple[Mark, ...]
    caption: str = ""


@dataclass(frozen=True)
class Picture:
    """Everything that a picture shows, and the words in which the release describes it."""

    name: str
    modality: str
    organ_system: str
    description: str
    panels: tuple[Panel, ...]

    @property
    def side(self) -> int:
        """Side of one panel in pixels; several panels stand in a row."""
        return {1: 256, 2: 224}.get(len(self.panels), 160)

    @property
    def above(self) -> int:
        """Height in pixels of what stands above the panels."""
        return CAPTION if any(panel.caption for panel in self.panels) else 0


def mark_box(picture: Picture, name: str, panel: int = 0) -> tuple[int, int, int, int]:
    """Left, top, right, bottom in pixels of the mark ``name`` of a panel; the mark changes no pixel outside them.

    Raises:
        KeyError: the panel has no mark of that name.
    """
    marks = {mark.name: mark for mark in picture.panels[panel].marks}
    left, top, right, bottom = _extent(marks[name], picture.side)
    aside, above = panel * picture.side, picture.above
    return left + aside, top + above, right + aside, bottom + above


def _extent(mark: Mark, side: int) -> tuple[int, int, int, int]:
    left, right = round((mark.x - mark.wide) * side), round((mark.x + mark.wide) * side)
    top, bottom = round((mark.y - mark.tall) * side), round((mark.y + mark.tall) * side)
    return left, top, right, bottom


def draw_picture(picture: Picture, without: str = "") -> Image.Image:
    """The picture, 8 bits, grey where every backdrop is: the same for the same ``picture``.

    ``without`` leaves out the marks of that name, so that one can see where they are.
    """
    side, above = picture.side, picture.above
    canvas = Image.new("RGB", (side * len(picture.panels), side + above))
    for number, panel in enumerate(picture.panels):
        canvas.paste(_panel(picture.name, panel, side, without), (number * side, above))
        ImageDraw.Draw(canvas).text((number * side + 6, 3), panel.caption, fill=(235, 235, 235))
    gray = all(isinstance(BACKDROPS[panel.backdrop][1], float) for panel in picture.panels)
    return canvas.convert("L") if gray else canvas


def _panel(name: str, panel: Panel, side: int, without: str) -> Image.Image:
    # the panel's number is no part of the seed: the same anatomy on day 1 and day 90, and in a brain's CT and MRI
    digest = hashlib.sha256(f"{name}/{panel.backdrop.split()[0]}".encode()).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    rows, columns = (np.mgrid[0:side, 0:side] + 0.5) / side
    ground, body = (np.broadcast_to(color, 3) for color in BACKDROPS[panel.backdrop])
    inside = ellipse(rows, columns, 0.5, 0.5, 0.46, 0.46)[..., None]
    noise = 0.03 * smooth_noise(generator, 40, (side, side))[..., None]
    light = ground * (1 - inside) + (body + noise) * inside
    for mark in panel.marks:
        if mark.name == without:
            continue
        left, top, right, bottom = _extent(mark, side)
        down, across = np.mgrid[top:bottom, left:right] + 0.5
        u = 2 * (across - left) / (right - left) - 1
        v = 2 * (down - top) / (bottom - top) - 1
        cover = (mark.opacity * SHAPES[mark.shape](u, v))[..., None]
        part = light[top:bottom, left:right]
        light[top:bottom, left:right] = part * (1 - cover) + np.asarray(mark.color) * cover
    return Image.fromarray(np.clip(light * 255, 0, 255).astype(np.uint8))


BACKDROPS: Mapping[str, tuple[Color, Color]] = {
    "cxr": (0.14, 0.24),
    "chest ct": (0.04, 0.12),
    "abdominal ct": (0.04, 0.58),
    "brain ct": (0.04, 0.42),
    "brain mri": (0.04, 0.50),
    "ultrasound": (0.02, 0.40),
    "fundus": ((0.0, 0.0, 0.0), (0.64, 0.30, 0.13)),
    "histology": ((0.95, 0.74, 0.84), (0.89, 0.70, 0.79)),
    "dermoscopy": ((0.93, 0.74, 0.64), (0.88, 0.70, 0.61)),
    "endoscopy": ((0.0, 0.0, 0.0), (0.77, 0.42, 0.36)),
}
"""What a panel can show: the colour around the body and that of the body, a round with soft noise."""
