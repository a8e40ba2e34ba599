"""The message with a rubric's prompt and the images that its judge sees."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from medtasks.core.errors import MediaError

if TYPE_CHECKING:
    from PIL.Image import Image

JPEG_QUALITY = 95


class ImageSource(NamedTuple):
    """An image for a judge.

    ``key`` is its hash, for the verdict's key. ``load`` returns it in RGB; it is called in another
    thread, once per attempt.
    """

    key: str
    load: Callable[[], Image]


def user_message(text: str, images: Sequence[ImageSource], side: int) -> dict[str, Any]:
    """The user's message: ``images`` in their order, then ``text``; without images the text alone.

    Images are JPEG, reduced to ``side`` pixels (Lanczos).
    """
    if not images:
        return {"role": "user", "content": text}
    content: list[dict[str, Any]] = []
    for source in images:
        data = base64.b64encode(_jpeg(source, side)).decode("ascii")
        content.append(
            {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{data}"}}
        )
    content.append({"type": "text", "text": text})
    return {"role": "user", "content": content}


def _jpeg(source: ImageSource, side: int) -> bytes:
    """The image as a JPEG file of at most ``side`` pixels in each direction.

    Raises:
        MediaError: the image cannot be loaded or encoded.
    """
    from PIL.Image import Resampling

    stream = io.BytesIO()
    try:
        image = source.load().copy()  # the loader's may be shared
        image.thumbnail((side, side), Resampling.LANCZOS, reducing_gap=None)
        image.save(stream, "JPEG", quality=JPEG_QUALITY, subsampling=0)
    except Exception as error:  # loaders read files, archives and videos, which fail in many ways
        why = error or type(error).__name__
        raise MediaError(f"image {source.key[:16]} cannot be shown to the judge: {why}") from error
    return stream.getvalue()
