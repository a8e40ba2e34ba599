"""Chat messages with opened pictures."""

from __future__ import annotations

import math
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from PIL import Image

from medtasks.core.errors import DataError, MediaError
from medtasks.data.media.images import read_picture
from medtasks.data.media.pictures import decode_image
from medtasks.data.media.pixel_values import as_rgb

from ._settings import GeneratingArguments

Part: TypeAlias = dict[str, Any]
Messages: TypeAlias = list[dict[str, Any]]
"""Chat messages as templates take them.

Their contents are lists of parts with a ``text``, an ``image``, or a ``video`` (its frames) with
``times`` in seconds.
"""


def read_messages(
    messages: Messages, arguments: GeneratingArguments, *, native_video: bool = False
) -> Messages:
    """Open the pictures of messages: PIL images or file paths under ``url`` (or ``image``).

    With ``native_video``, neighbouring image parts with a ``time`` become one video; a lone one
    stays an image.

    Raises:
        DataError: a part has another type; a video must be given as frames.
        MediaError: an image is missing, cannot be decoded, or has values that `as_rgb` refuses.
    """
    opened: Messages = []
    for message in _with_system_prompt(messages, arguments.system_prompt):
        parts: list[Part] = []
        visible = _visible_parts(message["content"], blind=arguments.blind)
        for is_timed, group in groupby(visible, key=lambda part: native_video and "time" in part):
            neighbours = list(group)
            opened_parts = [_opened_part(part, arguments) for part in neighbours]
            if is_timed and len(neighbours) > 1:
                times = [float(part["time"]) for part in neighbours]
                frames = [part["image"] for part in opened_parts]
                opened_parts = [{"type": "video", "video": frames, "times": times}]
            parts += opened_parts
        opened.append({"role": message["role"], "content": parts})
    return opened


def _with_system_prompt(messages: Messages, system_prompt: str | None) -> Messages:
    """The messages, with ``system_prompt`` as their only system message if there is one."""
    if not system_prompt:
        return messages
    conversation = [message for message in messages if message["role"] != "system"]
    return [{"role": "system", "content": system_prompt}, *conversation]


def _visible_parts(content: str | list[Part], *, blind: bool) -> list[Part]:
    """The parts of a message's content; only its text if ``blind``."""
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not blind:
        return parts
    return [part for part in parts if part["type"] == "text"]


def media_in(messages: Messages, kind: str) -> list[Part]:
    """The parts that are an ``image``, or a ``video``."""
    media: list[Part] = []
    for message in messages:
        media.extend(part for part in message["content"] if part["type"] == kind)
    return media


def _opened_part(part: Part, arguments: GeneratingArguments) -> Part:
    """A part with its picture opened, as RGB and within the limits of pixels."""
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    if part["type"] != "image":
        raise DataError(
            f"A message has a part of type {part['type']!r}, but only text and images are "
            "accepted; give a video as its frames."
        )
    image = part.get("url", part.get("image"))
    if isinstance(image, str):
        image = decode_image(read_picture(Path(image)), image)
    if not isinstance(image, Image.Image):
        raise MediaError(
            f"An image part is {type(image).__name__}, expected a PIL image or a file path."
        )
    if image.mode != "RGB" or image.has_transparency_data:
        image = as_rgb(image, "An image of a message")
    return {
        "type": "image",
        "image": fit_pixels(image, arguments.min_pixels, arguments.max_pixels),
    }


def fit_pixels(image: Image.Image, least: int | None, most: int | None) -> Image.Image:
    """Scale ``image`` (bicubic) to at least and at most so many pixels; None sets no limit.

    The aspect ratio is kept as far as whole pixels allow.
    """
    width, height = image.size
    pixels = width * height
    if most is not None and pixels > most:
        scale = math.sqrt(most / pixels)
        # A side is at least one pixel; the other must then be shorter.
        short = max(1, math.floor(min(width, height) * scale))
        long = max(1, min(math.floor(max(width, height) * scale), most // short))
        size = (long, short) if width >= height else (short, long)
    elif least is not None and pixels < least:
        scale = math.sqrt(least / pixels)
        size = (math.ceil(width * scale), math.ceil(height * scale))
    else:
        return image
    return image.resize(size, Image.Resampling.BICUBIC)
