"""Real harness requests over a small task dictionary, with pictures drawn on the spot."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PIL import Image, ImageDraw


@dataclass
class Bench:
    """A task dictionary as the harness hands it to a model, and the requests over it."""

    task_dict: dict[str, dict[str, list[dict[str, Any]]]] = field(default_factory=dict)

    def task(
        self,
        name: str,
        docs: list[dict[str, Any]],
        to_messages: Callable[[dict[str, Any]], list[dict[str, Any]]] | None = None,
        repeats: int = 1,
        **settings: Any,
    ) -> list[Any]:
        """Register a task and return its requests, each with a copy of ``settings``."""
        from lmms_eval.api.instance import Instance

        self.task_dict[name] = {"test": docs}
        requests = [
            Instance(
                request_type="generate_until",
                arguments=(
                    doc.get("question", ""),
                    to_messages or show_and_ask,
                    dict(settings),
                    i,
                    name,
                    "test",
                ),
                idx=0,
                metadata={"task": name, "doc_id": i, "repeats": repeats, "split": "test"},
            )
            for i, doc in enumerate(docs)
        ]
        return [request for request in requests for _ in range(repeats)]


def draw(name: str, size: tuple[int, int] = (320, 320)) -> Image.Image:
    """A picture that differs with ``name``: a coloured ellipse at a place of its own."""
    number = sum(ord(letter) * (place + 7) for place, letter in enumerate(name))
    image = Image.new("RGB", size, (number % 251, 60, 80))
    left, top = number * 13 % 200, number * 29 % 200
    ImageDraw.Draw(image).ellipse(
        (left, top, left + 90, top + 70), fill=(200, number * 7 % 256, number * 3 % 256)
    )
    return image


def show_and_ask(doc: dict[str, Any]) -> list[dict[str, Any]]:
    """Media first, then the question."""
    images = [{"type": "image", "url": draw(name)} for name in doc.get("media", ())]
    return [{"role": "user", "content": [*images, {"type": "text", "text": doc["question"]}]}]


def questions(count: int, images: int = 1) -> list[dict[str, Any]]:
    """Documents whose questions differ in length and share pictures in pairs."""
    return [
        {
            "sample_id": f"s{i:02d}",
            "media": [f"image-{i // 2}-{k}.png" for k in range(images)],
            "question": "Where is the polyp, and "
            + "how large is it, and " * (i * 5 % 4)
            + f"what colour {i}?",
        }
        for i in range(count)
    ]


def texts(results: list[Any]) -> list[str]:
    """The texts of generation results."""
    return [result.text for result in results]
