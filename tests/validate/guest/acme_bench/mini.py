"""Miniature data: drawn pictures and questions about them, in the format of the real source."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from PIL import Image, ImageDraw

from acme_bench.records import FILE, OPTIONS

SHAPES = ("circle", "square", "triangle", "bar")
NUMBERS = ("one", "two", "three", "four")
PATIENTS = 24
"""Enough for a comparison: with fewer than 20 clusters, only large differences are detected."""


def mini(folder: Path) -> None:
    """Write a source of two pictures of each patient, with two questions each, into ``folder``."""
    (folder / "pictures").mkdir()
    lines = []
    for index in range(2 * PATIENTS):
        shape, count = index % 4, index // 2 % 4
        path = f"pictures/{index + 1}.png"
        _picture(SHAPES[shape], count + 1, 255 - 4 * index).save(folder / path)
        shared = {"patient": f"p{index // 2 + 1}", "image": path}
        place = (index + index // 4) % 4  # correct letters are evenly distributed
        for topic, question, texts, right in (
            ("shape", "Which shape does the picture show?", SHAPES, shape),
            ("number", "How many shapes are there?", NUMBERS, count),
        ):
            choices = _choices(texts, right, place)
            asked = {"id": f"{topic}-{index + 1}", "topic": topic, "question": question}
            answer = OPTIONS[place]
            lines.append(json.dumps({**asked, **shared, "choices": choices, "answer": answer}))
    (folder / FILE).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _choices(texts: Sequence[str], right: int, place: int) -> dict[str, str]:
    """The texts by letter, rotated so that the correct one is at ``place``."""
    return {
        letter: texts[(right - place + number) % len(texts)]
        for number, letter in enumerate(OPTIONS)
    }


def _picture(shape: str, count: int, shade: int) -> Image.Image:
    image, fill = Image.new("RGB", (96, 64)), (shade, shade, shade)
    draw = ImageDraw.Draw(image)
    for number in range(count):
        left = 4 + 23 * number
        box = (left, 24, left + 16, 40)
        if shape == "circle":
            draw.ellipse(box, fill=fill)
        elif shape == "square":
            draw.rectangle(box, fill=fill)
        elif shape == "triangle":
            draw.polygon([(left, 40), (left + 8, 24), (left + 16, 40)], fill=fill)
        else:
            draw.rectangle((left + 6, 12, left + 10, 52), fill=fill)
    return image
