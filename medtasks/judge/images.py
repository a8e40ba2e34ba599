"""Images for vision judges: read when the request is sent, resized, and added as message parts."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from medtasks.errors import MediaError

if TYPE_CHECKING:
    from PIL.Image import Image

JPEG_QUALITY = 95
_SENT_AS_THEY_ARE = {"PNG": ("RGB", "L", "RGBA", "LA", "P"), "JPEG": ("RGB", "L")}  # formats and their modes
_ORIENTATION = 0x0112  # EXIF tag
_Loaded: TypeAlias = "bytes | Image"


@dataclass(frozen=True)
class ImageSource:
    """An image that is loaded on demand.

    Args:
        key: hash that identifies the image in the verdict's key.
        load: returns the file's bytes or the decoded image; called in another thread, once per attempt.
    """

    key: str
    load: Callable[[], _Loaded]


def user_message(text: str, images: Sequence[ImageSource], side: int) -> dict[str, Any]:
    """The user's message: ``images`` in their order, then ``text``; without images ``text`` alone.

    A PNG or JPEG file whose longer side has at most ``side`` pixels is sent unchanged. Everything else is rotated
    upright, reduced to ``side`` if it is larger (Lanczos), and sent as PNG if it was PNG, else as JPEG.

    Raises:
        MediaError: an image cannot be loaded or decoded; names its key.
    """
    if not images:
        return {"role": "user", "content": text}
    shown = [{"type": "image_url", "image_url": {"url": _data_url(image, side)}} for image in images]
    return {"role": "user", "content": [*shown, {"type": "text", "text": text}]}


def _data_url(source: ImageSource, side: int) -> str:
    try:
        kind, data = _encoded(source.load(), source.key, side)
    except Exception as error:  # loaders read files, archives and videos, which fail in many ways
        raise MediaError(
            f"image {source.key[:16]} cannot be shown to the judge: {error or type(error).__name__}"
        ) from (error)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(data).decode('ascii')}"


def _encoded(loaded: _Loaded, name: str, side: int) -> tuple[str, bytes]:
    """Format and bytes of the image to send."""
    from PIL import Image

    kind = "JPEG"
    if isinstance(loaded, bytes):
        from medtasks.data.media.images import decode_image

        image = decode_image(loaded, name)  # in full, even if the bytes are sent: the file may be truncated
        with Image.open(io.BytesIO(loaded)) as opened:
            fits = max(opened.size) <= side and not opened.getexif().get(_ORIENTATION, 1) > 1
            if fits and opened.mode in _SENT_AS_THEY_ARE.get(opened.format or "", ()):
                return str(opened.format), loaded
            kind = "PNG" if opened.format == "PNG" else kind
    elif loaded.mode.startswith(("I", "F")):
        raise MediaError(f"it has mode {loaded.mode}, expected 8 bits per channel")
    else:
        image = loaded.convert("RGB")
    stream = io.BytesIO()
    options = {"quality": JPEG_QUALITY, "subsampling": 0} if kind == "JPEG" else {}
    _within(image, side).save(stream, kind, **options)
    return kind, stream.getvalue()


def _within(image: Image, side: int) -> Image:
    from PIL import Image as Images

    longest = max(image.size)
    if longest <= side:
        return image
    width, height = (max(1, round(length * side / longest)) for length in image.size)
    return image.resize((width, height), Images.Resampling.LANCZOS)
