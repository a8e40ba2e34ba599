"""Small release-format sources, for tests that break them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from PIL import Image

POLYP = {"q": "How many polyps are in the image?", "a": "1"}


def kvasir_row(**changes: Any) -> dict[str, Any]:
    """A valid level-1 row; a change to None removes the field."""
    row = {
        "img_id": "img1",
        "complexity": 1,
        "question": "How many polyps are there?",
        "answer": "One polyp.",
        "original": json.dumps([POLYP]),
        "question_class": ["polyp_count"],
        **changes,
    }
    return {key: value for key, value in row.items() if value is not None}


def image_paths(patient: str = "p00000001") -> dict[str, str]:
    return {
        f"T{number}": f"files/p00/{patient}/s0000000{number}/00000000-0000000{number}-00000000-00000000-00000000.jpg"
        for number in range(1, 6)
    }


def mi_cxr_row(**changes: Any) -> dict[str, Any]:
    """A valid TEL row; a change to None removes the field."""
    row = {
        "q_id": 0,
        "group_type": "TEL",
        "qtype": "single_emergence",
        "images": image_paths(),
        "question": "When does it appear?",
        "choices": {
            "A": "T1 → T2",
            "B": "T2 → T3",
            "C": "T3 → T4",
            "D": "T4 → T5",
            "E": "None of these",
        },
        "answer": "B",
        **changes,
    }
    return {key: value for key, value in row.items() if value is not None}


def picture(path: Path, color: int = 90) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (32, 24), (color, 40, 40)).save(path, quality=90)


def write_kvasir(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A folder of rows and the pictures they name."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "test.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    for number, name in enumerate(sorted({row["img_id"] for row in rows})):
        picture(folder / "images" / f"{name}.jpg", 60 + number)
    return folder


def write_mi_cxr(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A row file and the pictures its rows name; returns the row file."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for row in rows:
        for number, name in enumerate(row["images"].values()):
            picture(folder / name, 60 + number)
    return path


def interrupted_at(number: int) -> Callable[[int, int], None]:
    """A listener to the progress of a preparation, which it interrupts."""

    def listen(done: int, _: int) -> None:
        if done == number:
            raise KeyboardInterrupt

    return listen
