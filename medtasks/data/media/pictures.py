"""Pictures: strict decoding of files, as RGB of 8 bits per channel."""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PIXELS
from medtasks.core.text import one_line
from medtasks.data.media.formats import foreign_picture
from medtasks.data.media.pixel_values import as_rgb, pixel_values_in

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""Formats that Pillow itself decodes; others start programs (EPS), or contain pictures of several
sizes (ICO).
"""

_BEGINNINGS: Mapping[bytes, str] = {
    b"BM": "BMP",
    b"GIF8": "GIF",
    b"\xff\xd8\xff": "JPEG",
    b"\0\0\0\x0cjP": "JPEG 2000",
    b"\xff\x4f\xff\x51": "JPEG 2000",
    b"\x89PNG": "PNG",
    b"II*\0": "TIFF",
    b"MM\0*": "TIFF",
    b"II+\0": "TIFF",
    b"RIFF": "WebP",
}
"""First bytes of files of these formats."""


# Pillow warns about parts of a file that nobody sees, such as unreadable metadata, and of its own
# limit of pixels
warnings.filterwarnings("ignore", module=r"PIL\.")


def decode_image(data: bytes, name: str) -> Image:
    """The whole picture in the file ``data`` as RGB of 8 bits per channel.

    It is upright by its EXIF orientation. A truncated file is refused even if Pillow is lenient: a
    half-grey radiograph must not pass for a whole one.

    Raises:
        MediaError: the bytes are not a complete picture of a known format, are several pictures,
            have more than `MAX_PIXELS` pixels, or have values that `as_rgb` refuses.
    """
    if not data:
        raise MediaError(
            f"{name}: not a complete image (the file is empty); fetch or copy the file again."
        )
    with _decoding_errors(data, name):
        return _decoded(data, name)


def _decoded(data: bytes, name: str) -> Image:
    """The picture in ``data``, upright, as RGB; raises Pillow's own errors, too."""
    from PIL import Image, ImageOps

    with _STRICT_DECODING:
        picture = Image.open(io.BytesIO(data), formats=FORMATS)
        _refuse_size(picture, name)
        _refuse_several(picture, name)
        values = pixel_values_in(picture, data)
        picture.load()
    ImageOps.exif_transpose(picture, in_place=True)
    return as_rgb(picture, name, values)


@contextmanager
def _decoding_errors(data: bytes, name: str) -> Iterator[None]:
    """Turn errors of decoding the file ``data`` into a :class:`MediaError`."""
    from PIL import Image, UnidentifiedImageError

    try:
        yield
    except MediaError:
        raise
    except UnidentifiedImageError as error:
        raise MediaError(_unidentified(data, name)) from error
    except Image.DecompressionBombError as error:
        raise MediaError(
            f"{name}: has more pixels than the limit of {MAX_PIXELS:,}; make it smaller."
        ) from error
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged bytes
        reason = one_line(str(error)) or type(error).__name__
        raise MediaError(
            f"{name}: not a complete image ({reason}); fetch or copy the file again."
        ) from error


class _StrictDecoding:
    """A context manager in which Pillow refuses truncated files; lmms-eval makes it lenient.

    Pillow's setting is one for all threads: it is restored when the last of them leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0  # inside the context
        self._setting_before = False

    def __enter__(self) -> None:
        from PIL import ImageFile

        with self._lock:
            if self._threads == 0:
                self._setting_before = ImageFile.LOAD_TRUNCATED_IMAGES
            ImageFile.LOAD_TRUNCATED_IMAGES = False
            self._threads += 1

    def __exit__(self, *_: object) -> None:
        from PIL import ImageFile

        with self._lock:
            self._threads -= 1
            if self._threads == 0:
                ImageFile.LOAD_TRUNCATED_IMAGES = self._setting_before


_STRICT_DECODING = _StrictDecoding()


def _refuse_size(picture: Image, name: str) -> None:
    """Refuse pictures of more than `MAX_PIXELS` pixels before they are decoded."""
    if picture.width * picture.height > MAX_PIXELS:
        raise MediaError(
            f"{name}: {picture.width:,} × {picture.height:,} pixels exceed the limit of "
            f"{MAX_PIXELS:,}; make it smaller."
        )


def _refuse_several(picture: Image, name: str) -> None:
    """Refuse animations and files of several pages, of which a model would see only the first."""
    count = _number_of_pictures(picture)
    if count > 1:
        raise MediaError(
            f"{name}: holds {count:,} pictures (an animation or several pages), which is not "
            "supported; save the one to be shown as a file of its own."
        )


def _number_of_pictures(picture: Image) -> int:
    """The number of pictures in a file that viewers show."""
    if picture.format == "TIFF":
        return _full_size_pages(picture)
    if picture.format == "MPO":  # a JPEG with previews beside its picture, which no viewer shows
        return 1
    return getattr(picture, "n_frames", 1)


_SUBFILE_TYPE = 254
"""A TIFF tag: what the page is."""
_REDUCED_OR_MASK = 0b101
"""The bits of this tag that are set if the page is a preview or a mask."""


def _full_size_pages(picture: Image) -> int:
    """The number of pages of a TIFF file that are neither previews nor masks of others."""
    count = 1
    for page in range(1, getattr(picture, "n_frames", 1)):
        picture.seek(page)
        tags = getattr(picture, "tag_v2", {})
        is_preview_or_mask = bool(tags.get(_SUBFILE_TYPE, 0) & _REDUCED_OR_MASK)
        if not is_preview_or_mask:
            count += 1
    if picture.tell():
        picture.seek(0)
    return count


def _unidentified(data: bytes, name: str) -> str:
    """The message about a file that Pillow cannot open, with the format that its bytes indicate."""
    foreign = foreign_picture(data)
    if foreign is not None:
        return f"{name}: is {foreign.name}, not a picture that can be read; {foreign.fix}."
    for beginning, format_name in _BEGINNINGS.items():
        if data.startswith(beginning):
            return (
                f"{name}: not a complete image ({format_name} whose header is damaged or of a "
                "rare kind); fetch or copy the file again, or convert it to PNG with 8 bits per "
                "channel."
            )
    return f"{name}: not a complete image (unknown format); fetch or copy the file again."


def is_uniform(picture: Image) -> bool:
    """Whether all pixels of an RGB picture are equal.

    Such a picture was probably decoded wrongly, or never written.
    """
    corner = picture.getpixel((0, 0))
    middle = picture.getpixel((picture.width // 2, picture.height // 2))
    if corner != middle:  # as in most pictures: their other pixels are not read
        return False
    return all(low == high for low, high in picture.getextrema())  # type: ignore[misc]
