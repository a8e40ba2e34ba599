"""Pictures that look like eight imaging modalities, with marks drawn at places that a test can ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw

from medtasks.benchmarks.med_cmr.mini.shapes import SHAPES, ellipse, smooth_noise

__all__ = ["BACKDROPS", "CAPTION", "Mark", "Panel", "Picture", "draw_picture", "mark_box"]

CAPTION = 18
"""Height in pixels of the strip above the panels where one has a caption."""

Field = npt.NDArray[np.float64]
Color = float | tuple[float, float, float]
Backdrop = Callable[[Field, Field, np.random.Generator], Field]


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
    gray = {"cxr", "chest ct", "abdominal ct", "brain ct", "brain mri", "ultrasound"}
    return canvas.convert("L") if {panel.backdrop for panel in picture.panels} <= gray else canvas


def _panel(name: str, panel: Panel, side: int, without: str) -> Image.Image:
    # the panel's number is no part of the seed: the same anatomy on day 1 and day 90, and in a brain's CT and MRI
    digest = hashlib.sha256(f"{name}/{panel.backdrop.split()[0]}".encode()).digest()
    generator = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    rows, columns = (np.mgrid[0:side, 0:side] + 0.5) / side
    light = BACKDROPS[panel.backdrop](rows, columns, generator)
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


def _gray(light: Field) -> Field:
    return np.repeat(light[..., None], 3, axis=2)


def _tinted(light: Field, color: tuple[float, float, float]) -> Field:
    return np.asarray(light[..., None] * np.asarray(color))


def _painted(picture: Field, cover: Field, color: tuple[float, float, float]) -> Field:
    return np.asarray(picture * (1 - cover[..., None]) + np.asarray(color) * cover[..., None])


def _cxr(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """Frontal chest radiograph: dark lungs with ribs, bright heart and spine."""
    lungs = np.maximum(ellipse(rows, columns, 0.47, 0.29, 0.34, 0.18), ellipse(rows, columns, 0.47, 0.71, 0.34, 0.18))
    light = 0.14 + 0.50 * ellipse(rows, columns, 0.58, 0.5, 0.62, 0.50) - 0.40 * lungs
    light += 0.05 * lungs * (np.sin((rows - 0.3 * np.abs(columns - 0.5)) * 74) > 0.6)
    light = np.maximum(light, 0.64 * ellipse(rows, columns, 0.62, 0.55, 0.17, 0.15))
    light = np.maximum(light, 0.58 * ellipse(rows, columns, 0.42, 0.5, 0.50, 0.06))
    return _gray(light + generator.normal(0, 0.008, light.shape))


def _chest_ct(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """Axial slice of the chest: two black lungs, the middle, one bright vertebra."""
    light = 0.04 + 0.44 * ellipse(rows, columns, 0.52, 0.5, 0.36, 0.46)
    lungs = np.maximum(ellipse(rows, columns, 0.50, 0.27, 0.25, 0.17), ellipse(rows, columns, 0.50, 0.73, 0.25, 0.17))
    light = light - 0.36 * lungs
    light = np.maximum(light, 0.55 * ellipse(rows, columns, 0.46, 0.52, 0.13, 0.09))
    light = np.maximum(light, 0.88 * ellipse(rows, columns, 0.74, 0.5, 0.055, 0.06))
    return _gray(
        light + 0.03 * lungs * smooth_noise(generator, 40, light.shape) + generator.normal(0, 0.01, light.shape)
    )


def _abdominal_ct(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """Axial slice of the belly: a large liver on the picture's left, two kidneys, one bright vertebra."""
    body = ellipse(rows, columns, 0.51, 0.5, 0.37, 0.46)
    light = 0.04 + 0.20 * body + 0.18 * ellipse(rows, columns, 0.51, 0.5, 0.33, 0.41)
    light = np.maximum(light, 0.58 * ellipse(rows, columns, 0.45, 0.31, 0.24, 0.21))
    for middle in (0.30, 0.70):
        light = np.maximum(light, 0.66 * ellipse(rows, columns, 0.70, middle, 0.065, 0.075))
    light = np.maximum(light, 0.52 * ellipse(rows, columns, 0.36, 0.70, 0.13, 0.12))
    light = np.maximum(light, 0.90 * ellipse(rows, columns, 0.73, 0.5, 0.055, 0.06))
    return _gray(light + 0.03 * body * smooth_noise(generator, 50, light.shape))


def _brain(rows: Field, columns: Field, generator: np.random.Generator, skull: float, tissue: float) -> Field:
    light = skull * ellipse(rows, columns, 0.5, 0.5, 0.45, 0.38)
    inside = ellipse(rows, columns, 0.5, 0.5, 0.415, 0.345)
    folds = smooth_noise(generator, 22, light.shape)
    rim = inside - ellipse(rows, columns, 0.5, 0.5, 0.33, 0.26)
    light = light * (1 - inside) + inside * (tissue + 0.14 * rim * folds)
    for middle in (0.465, 0.535):
        hole = ellipse(rows, columns, 0.48, middle, 0.12, 0.024)
        light = light * (1 - hole) + 0.12 * hole
    return _gray(light + 0.015 * inside * smooth_noise(generator, 60, light.shape))


def _brain_mri(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """Axial brain slice: a grey scalp ring, folded cortex, two dark slits in the middle."""
    return _brain(rows, columns, generator, 0.34, 0.50)


def _brain_ct(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """The same slice as the MRI one with a bright bony ring and flat tissue."""
    return _brain(rows, columns, generator, 0.94, 0.42)


def _ultrasound(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """A speckled fan that opens downwards on black."""
    down, across = rows + 0.12, columns - 0.5
    reach = np.hypot(down, across)
    fan = (np.abs(np.arctan2(across, down)) < 0.62) & (reach > 0.20) & (reach < 1.05)
    speckle = 0.40 + 0.22 * smooth_noise(generator, 60, rows.shape) + 0.08 * np.sin(reach * 46)
    return _gray(np.where(fan, speckle * (1.1 - 0.35 * rows), 0.02))


def _fundus(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """Back of the eye: orange disc on black, pale optic disc on the picture's left, four dark vessel branches."""
    eye = ellipse(rows, columns, 0.5, 0.5, 0.47, 0.47)
    picture = _tinted(1.0 - 0.5 * np.hypot(rows - 0.5, columns - 0.5), (0.80, 0.38, 0.16))
    picture = _painted(picture, 0.5 * ellipse(rows, columns, 0.5, 0.66, 0.09, 0.09), (0.36, 0.13, 0.06))
    for sign in (-1, 1):
        for bend, thick in ((0.62, 0.011), (0.95, 0.008)):
            arc = 0.5 + sign * bend * np.sqrt(np.clip(columns - 0.28, 0, 1)) * 0.52
            picture = _painted(
                picture, np.clip(1.4 - np.abs(rows - arc) / thick, 0, 1) * (columns > 0.28), (0.42, 0.06, 0.05)
            )
    picture = _painted(picture, ellipse(rows, columns, 0.5, 0.28, 0.075, 0.065), (0.97, 0.86, 0.55))
    shade = 1 + 0.04 * smooth_noise(generator, 12, rows.shape)
    return np.asarray(picture * (eye * shade)[..., None])


def _histology(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """Stained tissue: pink ground with some 120 small purple nuclei."""
    picture = _tinted(0.94 + 0.05 * smooth_noise(generator, 16, rows.shape), (0.95, 0.74, 0.84))
    for place in range(121):
        y, x = (np.array(divmod(place, 11)) + 0.5 + generator.uniform(-0.25, 0.25, 2)) / 11
        tall, wide = generator.uniform(0.010, 0.017, 2)
        picture = _painted(picture, ellipse(rows, columns, y, x, tall, wide), (0.44, 0.26, 0.58))
    return picture


def _dermoscopy(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """Pale skin with a few dark hairs."""
    picture = _tinted(0.95 + 0.04 * smooth_noise(generator, 10, rows.shape), (0.93, 0.74, 0.64))
    for _ in range(3):
        start, slope, bend = generator.uniform(0.02, 0.9), generator.uniform(-0.5, 0.5), generator.uniform(-0.2, 0.2)
        hair = np.clip(1.5 - np.abs(columns - start - slope * rows - bend * rows**2) / 0.0045, 0, 1)
        picture = _painted(picture, 0.5 * hair, (0.25, 0.16, 0.12))
    return picture


def _endoscopy(rows: Field, columns: Field, generator: np.random.Generator) -> Field:
    """View into a pink tube: ring folds around a dark middle, dark corners."""
    distance = np.hypot(rows - 0.5, columns - 0.5)
    light = 0.98 - 0.30 * distance + 0.06 * np.sin(distance * 52) + 0.05 * smooth_noise(generator, 9, rows.shape)
    light *= np.clip(distance / 0.16, 0.25, 1)
    return _tinted(light * ellipse(rows, columns, 0.5, 0.5, 0.49, 0.49), (0.86, 0.47, 0.40))


BACKDROPS: Mapping[str, Backdrop] = {
    "cxr": _cxr,
    "chest ct": _chest_ct,
    "abdominal ct": _abdominal_ct,
    "brain ct": _brain_ct,
    "brain mri": _brain_mri,
    "ultrasound": _ultrasound,
    "fundus": _fundus,
    "histology": _histology,
    "dermoscopy": _dermoscopy,
    "endoscopy": _endoscopy,
}
"""What a panel can show: rows and columns from 0 to 1, both (side, side), and a generator to (side, side, 3) RGB."""
