"""Images for vision judges: loaded when the request is sent, reduced, and added as message parts."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MediaError

if TYPE_CHECKING:
    from PIL.Image import Image

JPEG_QUALITY = 95


@dataclass(frozen=True)
class ImageSource:
    """An image that is loaded on demand.

    Args:
        key: hash that identifies the image in the verdict's key.
        load: returns the image in RGB; called in another thread, once per attempt.
    """

    key: str
    load: Callable[[], Image]


def user_message(text: str, images: Sequence[ImageSource], side: int) -> dict[str, Any]:
    """The user's message: ``images`` as JPEG in their order, then ``text``; without images ``text`` alone.

    Images whose longer side has more than ``side`` pixels are reduced to that (Lanczos).

    Raises:
        MediaError: an image cannot be loaded; names its key.
    """
    if not images:
        return {"role": "user", "content": text}
    shown = [{"type": "image_url", "image_url": {"url": _data_url(image, side)}} for image in images]
    return {"role": "user", "content": [*shown, {"type": "text", "text": text}]}


def _data_url(source: ImageSource, side: int) -> str:
    from PIL.Image import Resampling

    stream = io.BytesIO()
    try:
        image = source.load()
        longest = max(image.size)
        if longest > side:
            width, height = (max(1, round(length * side / longest)) for length in image.size)
            image = image.resize((width, height), Resampling.LANCZOS)
        image.save(stream, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    except Exception as error:  # loaders read files, archives and videos, which fail in many ways
        raise MediaError(
            f"image {source.key[:16]} cannot be shown to the judge: {error or type(error).__name__}"
        ) from (error)
    return f"data:image/jpeg;base64,{base64.b64encode(stream.getvalue()).decode('ascii')}"
