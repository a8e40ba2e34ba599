"""Endoscopy-like pictures, drawn from a scene that also decides every answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

WIDTH, HEIGHT = 320, 256
CELLS = (
    "upper-left", "upper-center", "upper-right", "center-left", "center", "center-right",
    "lower-left", "lower-center", "lower-right",
)  # fmt: skip
COLORS = {"pink": (250, 165, 190), "red": (165, 12, 24), "white": (246, 243, 232)}
SIZES = {"<5mm": 11, "5-10mm": 18, "11-20mm": 27}


@dataclass(frozen=True)
class Lesion:
    """One drawn lesion: what it is, its colour, size class and place."""

    kind: str
    color: str
    size: str
    cell: str


@dataclass(frozen=True)
class Scene:
    """Everything that a picture shows."""

    img_id: str
    procedure: str
    lesions: tuple[Lesion, ...] = ()
    instrument: str | None = None
    instrument_cell: str = "lower-right"
    box: str | None = None
    text: bool = False
    landmark: str | None = None
    landmark_cell: str = "center"
    removed: bool = False


def cell_center(cell: str) -> tuple[int, int]:
    """Pixel at the middle of a cell of the 3 by 3 grid inside the frame."""
    row, column = divmod(CELLS.index(cell), 3)
    return 70 + column * 90, 56 + row * 72


def draw_scene(scene: Scene, seed: int) -> Image.Image:
    """The picture of ``scene``: RGB, 320 by 256, the same for the same scene and seed."""
    generator = np.random.default_rng(seed)
    picture = _mucosa(generator, scene.procedure)
    draw = ImageDraw.Draw(picture)
    if scene.landmark:
        _landmark(draw, scene.landmark, cell_center(scene.landmark_cell))
    for lesion in scene.lesions:
        _lesion(draw, lesion)
    picture = picture.filter(ImageFilter.GaussianBlur(0.8))
    draw = ImageDraw.Draw(picture)
    if scene.instrument:
        _instrument(draw, scene.instrument, cell_center(scene.instrument_cell))
    _frame(draw)
    if scene.box:
        draw.rectangle((6, HEIGHT - 62, 62, HEIGHT - 8), fill=(20, 150, 60) if scene.box == "green" else (5, 5, 5))
        draw.rectangle((6, HEIGHT - 62, 62, HEIGHT - 8), outline=(200, 200, 200))
    if scene.text:
        draw.text((WIDTH - 78, 10), "MINI 01:23", fill=(240, 240, 240))
    return picture


def _mucosa(generator: np.random.Generator, procedure: str) -> Image.Image:
    base = np.array((196, 108, 88) if procedure == "colonoscopy" else (204, 138, 104), dtype=np.float64)
    rows, columns = np.mgrid[0:HEIGHT, 0:WIDTH]
    center_x, center_y = WIDTH / 2 + generator.uniform(-20, 20), HEIGHT / 2 + generator.uniform(-15, 15)
    distance = np.hypot((columns - center_x) / WIDTH, (rows - center_y) / HEIGHT)
    folds = 0.05 * np.sin(distance * generator.uniform(28, 40) + generator.uniform(0, 6))
    coarse = Image.fromarray((generator.random((9, 12)) * 255).astype(np.uint8)).resize((WIDTH, HEIGHT), 3)
    light = 1.08 - 0.75 * distance + folds + 0.10 * (np.asarray(coarse) / 255 - 0.5)
    light = light + generator.normal(0, 0.012, light.shape)
    return Image.fromarray(np.clip(base * light[..., None], 0, 255).astype(np.uint8))


def _lesion(draw: ImageDraw.ImageDraw, lesion: Lesion) -> None:
    x, y = cell_center(lesion.cell)
    radius = SIZES[lesion.size]
    red, green, blue = COLORS[lesion.color]
    dark = (int(red * 0.55), int(green * 0.55), int(blue * 0.55))
    flat = 0.6 if lesion.kind == "ulcer" else 0.9
    draw.ellipse((x - radius - 3, y - radius * flat - 2, x + radius + 3, y + radius * flat + 5), fill=dark)
    draw.ellipse((x - radius, y - radius * flat, x + radius, y + radius * flat), fill=(red, green, blue))
    if lesion.kind == "polyp":  # a specular dot away from the middle, which shows the lesion's own colour
        spot = max(2, radius // 6)
        left, top = x - radius // 2, y - radius // 2
        draw.ellipse((left - spot, top - spot, left + spot, top + spot), fill=(255, 255, 255))


def _landmark(draw: ImageDraw.ImageDraw, landmark: str, center: tuple[int, int]) -> None:
    x, y = center
    if landmark == "z-line":
        for angle in range(0, 360, 12):
            reach = 46 if (angle // 12) % 2 else 38
            draw.arc((x - reach, y - reach, x + reach, y + reach), angle, angle + 12, fill=(245, 190, 180), width=7)
    else:
        draw.chord((x - 44, y - 34, x + 44, y + 34), 20, 160, fill=(64, 22, 20))


def _instrument(draw: ImageDraw.ImageDraw, instrument: str, tip: tuple[int, int]) -> None:
    x, y = tip
    draw.line((WIDTH, HEIGHT, x, y), fill=(88, 92, 98), width=13)
    draw.line((WIDTH, HEIGHT - 4, x, y - 3), fill=(168, 174, 182), width=4)
    if instrument == "biopsy forceps":
        draw.line((x, y, x - 15, y - 4), fill=(205, 210, 216), width=5)
        draw.line((x, y, x - 5, y - 16), fill=(205, 210, 216), width=5)
    else:
        draw.ellipse((x - 26, y - 22, x + 2, y + 4), outline=(222, 226, 120), width=3)


def _frame(draw: ImageDraw.ImageDraw) -> None:
    cut = 44
    for x, y, step_x, step_y in ((0, 0, 1, 1), (WIDTH, 0, -1, 1), (0, HEIGHT, 1, -1), (WIDTH, HEIGHT, -1, -1)):
        draw.polygon([(x, y), (x + step_x * cut, y), (x, y + step_y * cut)], fill=(4, 4, 6))
    draw.rectangle((0, 0, WIDTH - 1, HEIGHT - 1), outline=(4, 4, 6), width=5)
