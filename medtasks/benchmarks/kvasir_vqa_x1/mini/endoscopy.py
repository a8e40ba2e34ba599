"""Endoscopy-like pictures, drawn from scenes that contain what the rows ask about."""

from __future__ import annotations

from dataclasses import dataclass

from PIL import Image, ImageDraw

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
    box: str | None = None
    text: bool = False
    landmark: str | None = None
    landmark_cell: str = "center"


_RED = tuple(Lesion("polyp", "red", "<5mm", cell) for cell in ("upper-center", "center-left"))
_RED_BELOW = tuple(Lesion("polyp", "red", "<5mm", cell) for cell in ("center-right", "lower-left"))
_WHITE = (Lesion("polyp", "white", "<5mm", "center-left"), Lesion("polyp", "white", "5-10mm", "upper-right"))

SCENES = (
    Scene("mini0001", "colonoscopy", (Lesion("polyp", "pink", "5-10mm", "center"),), text=True),
    Scene("mini0002", "colonoscopy", (Lesion("polyp", "red", "11-20mm", "upper-left"),), instrument="polyp snare"),
    Scene("mini0003", "colonoscopy", _WHITE, box="green"),
    Scene("mini0004", "gastroscopy", landmark="z-line", text=True),
    Scene("mini0005", "gastroscopy", (Lesion("ulcer", "white", "11-20mm", "lower-center"),), box="black"),
    Scene("mini0006", "colonoscopy", landmark="cecum", instrument="biopsy forceps"),
    Scene("mini0007", "colonoscopy", (*_RED, Lesion("polyp", "red", "5-10mm", "lower-center")), text=True),
    Scene("mini0008", "colonoscopy", box="black", instrument="polyp snare"),
    Scene("mini0009", "gastroscopy", (Lesion("ulcer", "red", "5-10mm", "center-right"),)),
    Scene("mini0010", "gastroscopy", landmark="z-line", landmark_cell="center-left", instrument="biopsy forceps"),
    Scene("mini0011", "colonoscopy", (Lesion("polyp", "pink", "11-20mm", "center-right"),), box="black", text=True),
    Scene("mini0012", "colonoscopy", box="green", instrument="biopsy forceps"),
    Scene("mini0013", "colonoscopy", (Lesion("polyp", "red", "5-10mm", "center"),)),
    Scene("mini0014", "colonoscopy", (Lesion("polyp", "red", "11-20mm", "upper-left"),), box="green", text=True),
    Scene("mini0015", "colonoscopy", _WHITE, text=True),
    Scene("mini0016", "gastroscopy", landmark="z-line", box="black"),
    Scene("mini0017", "gastroscopy", (Lesion("ulcer", "white", "11-20mm", "upper-center"),), box="black"),
    Scene("mini0018", "colonoscopy", landmark="cecum", instrument="polyp snare"),
    Scene("mini0019", "colonoscopy", (*_RED_BELOW, Lesion("polyp", "red", "5-10mm", "lower-center")), text=True),
    Scene("mini0020", "colonoscopy", landmark="cecum", box="green", instrument="polyp snare"),
    Scene("mini0021", "gastroscopy", (Lesion("ulcer", "red", "5-10mm", "center-left"),), text=True),
    Scene(
        "mini0022",
        "gastroscopy",
        landmark="z-line",
        landmark_cell="center-left",
        instrument="polyp snare",
        box="green",
    ),
    Scene("mini0023", "colonoscopy", (Lesion("polyp", "pink", "5-10mm", "center-right"),), box="black", text=True),
    Scene("mini0024", "colonoscopy", instrument="biopsy forceps"),
)


def cell_center(cell: str) -> tuple[int, int]:
    """Pixel at the middle of a cell of the 3 by 3 grid inside the frame."""
    row, column = divmod(CELLS.index(cell), 3)
    return 70 + column * 90, 56 + row * 72


def draw_scene(scene: Scene) -> Image.Image:
    """The picture of ``scene``: RGB, 320 by 256."""
    picture = Image.new("RGB", (WIDTH, HEIGHT), (196, 108, 88) if scene.procedure == "colonoscopy" else (204, 138, 104))
    draw = ImageDraw.Draw(picture)
    x, y = cell_center(scene.landmark_cell)
    if scene.landmark == "z-line":
        draw.ellipse((x - 44, y - 44, x + 44, y + 44), outline=(245, 190, 180), width=7)
    elif scene.landmark:
        draw.chord((x - 44, y - 34, x + 44, y + 34), 20, 160, fill=(64, 22, 20))
    for lesion in scene.lesions:
        _lesion(draw, lesion)
    if scene.instrument:
        _instrument(draw, scene.instrument)
    if scene.box:
        draw.rectangle((6, HEIGHT - 62, 62, HEIGHT - 8), fill=(20, 150, 60) if scene.box == "green" else (5, 5, 5))
    if scene.text:
        draw.text((WIDTH - 78, 10), "MINI 01:23", fill=(240, 240, 240))
    draw.rectangle((0, 0, WIDTH - 1, HEIGHT - 1), outline=(4, 4, 6), width=5)
    return picture


def _lesion(draw: ImageDraw.ImageDraw, lesion: Lesion) -> None:
    """A disc with a dark rim, flat if it is an ulcer."""
    x, y = cell_center(lesion.cell)
    radius = SIZES[lesion.size]
    height = radius * (0.6 if lesion.kind == "ulcer" else 0.9)
    box = (x - radius, y - height, x + radius, y + height)
    draw.ellipse(box, fill=COLORS[lesion.color], outline=(90, 40, 40), width=2)


def _instrument(draw: ImageDraw.ImageDraw, instrument: str) -> None:
    """A shaft from the lower right corner, with the forceps' two jaws or a snare's loop at its tip."""
    x, y = cell_center("lower-right")
    draw.line((WIDTH, HEIGHT, x, y), fill=(88, 92, 98), width=13)
    if instrument == "biopsy forceps":
        draw.line((x - 15, y - 4, x, y, x - 5, y - 16), fill=(205, 210, 216), width=5)
    else:
        draw.ellipse((x - 26, y - 22, x + 2, y + 4), outline=(222, 226, 120), width=3)
