"""The 24 pictures of the miniature Kvasir-VQA-x1 (``scenes.json``), about which its 79 rows ask."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw

from . import BENCHMARKS, read_table

ROW_FILE = BENCHMARKS / "kvasir_vqa_x1/mini/test.jsonl"
WIDTH, HEIGHT = 320, 256
CELLS = (
    "upper-left", "upper-center", "upper-right", "center-left", "center", "center-right",
    "lower-left", "lower-center", "lower-right",
)  # fmt: skip
COLORS = {"pink": (250, 165, 190), "red": (165, 12, 24), "white": (246, 243, 232)}
SIZES = {"<5mm": 11, "5-10mm": 18, "11-20mm": 27}


class Lesion(NamedTuple):
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
    box: str | None = None
    text: bool = False
    landmark: str | None = None
    landmark_cell: str = "center"


SCENES = read_table("scenes.json", tuple[Scene, ...])


def draw_all(directory: Path) -> None:
    """Write ``images/<img_id>.jpg``."""
    (directory / "images").mkdir(parents=True, exist_ok=True)
    for scene in SCENES:
        draw_scene(scene).save(directory / "images" / f"{scene.img_id}.jpg", quality=90)


def cell_center(cell: str) -> tuple[int, int]:
    """Pixel at the middle of a cell of the 3 by 3 grid inside the frame."""
    row, column = divmod(CELLS.index(cell), 3)
    return 70 + column * 90, 56 + row * 72


def draw_scene(scene: Scene) -> Image.Image:
    """The picture of ``scene``: RGB, 320 by 256."""
    picture = Image.new(
        "RGB",
        (WIDTH, HEIGHT),
        (196, 108, 88) if scene.procedure == "colonoscopy" else (204, 138, 104),
    )
    draw = ImageDraw.Draw(picture)
    x, y = cell_center(scene.landmark_cell)
    if scene.landmark == "z-line":
        draw.ellipse((x - 44, y - 44, x + 44, y + 44), outline=(245, 190, 180), width=7)
    elif scene.landmark:
        draw.chord((x - 44, y - 34, x + 44, y + 34), 20, 160, fill=(64, 22, 20))
    for lesion in scene.lesions:  # a disc with a dark rim, flat if it is an ulcer
        x, y = cell_center(lesion.cell)
        radius = SIZES[lesion.size]
        height = radius * (0.6 if lesion.kind == "ulcer" else 0.9)
        box = (x - radius, y - height, x + radius, y + height)
        draw.ellipse(box, fill=COLORS[lesion.color], outline=(90, 40, 40), width=2)
    # a shaft from the lower right corner, with the forceps' two jaws or a snare's loop at its tip
    if scene.instrument:
        x, y = cell_center("lower-right")
        draw.line((WIDTH, HEIGHT, x, y), fill=(88, 92, 98), width=13)
        if scene.instrument == "biopsy forceps":
            draw.line((x - 15, y - 4, x, y, x - 5, y - 16), fill=(205, 210, 216), width=5)
        else:
            draw.ellipse((x - 26, y - 22, x + 2, y + 4), outline=(222, 226, 120), width=3)
    if scene.box:
        draw.rectangle(
            (6, HEIGHT - 62, 62, HEIGHT - 8),
            fill=(20, 150, 60) if scene.box == "green" else (5, 5, 5),
        )
    if scene.text:
        draw.text((WIDTH - 78, 10), "MINI 01:23", fill=(240, 240, 240))
    draw.rectangle((0, 0, WIDTH - 1, HEIGHT - 1), outline=(4, 4, 6), width=5)
    return picture
