"""Chest radiographs of invented patients: a few ellipses and boxes that show each finding at its severity."""

from __future__ import annotations

from collections.abc import Mapping

from PIL import Image, ImageDraw

SIDE = 320
LEFT, RIGHT, OPACITY, HEART = FINDINGS = (
    "left pleural effusion",
    "right pleural effusion",
    "right upper zone opacity",
    "cardiomegaly",
)


def draw_radiograph(patient: str, visit: int, severities: Mapping[str, int]) -> Image.Image:
    """One visit's picture: 8-bit grey, 320 by 320; the patient's left is on the right side.

    Anatomy depends on the patient, the position of the body on the visit, and each finding shows with its severity
    from 0 (absent) to 3: an effusion rises, an opacity and the heart grow.
    """
    picture = Image.new("L", (SIDE, SIDE), 40)
    draw = ImageDraw.Draw(picture)
    number, shift = int(patient[1:]), visit % 3
    wide, tall = 44 + 5 * number % 21, 92 + 7 * number % 13  # 273 builds

    def ellipse(x: int, y: int, half_width: int, half_height: int, grey: int) -> None:
        draw.ellipse((x - half_width + shift, y - half_height, x + half_width + shift, y + half_height), fill=grey)

    ellipse(160, 175, 155, 190, 168)
    for x, effusion in ((98, RIGHT), (222, LEFT)):
        ellipse(x, 150, wide, tall, 66)
        half_angle = 32 + 9 * severities.get(effusion, 0)
        if half_angle > 32:
            lung = (x - wide + shift, 150 - tall, x + wide + shift, 150 + tall)
            draw.chord(lung, 90 - half_angle, 90 + half_angle, fill=164)
    draw.rectangle((146 + shift, 20, 174 + shift, 250), fill=152)
    ellipse(172, 196, 44 + 11 * severities.get(HEART, 0), 54, 180)
    opacity = severities.get(OPACITY, 0)
    if opacity:
        ellipse(100, 105, 13 + 6 * opacity, 13 + 6 * opacity, 92 + 26 * opacity)
    return picture
