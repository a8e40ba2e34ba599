"""Pictures: strict decoding of files, and the one function by which every picture becomes RGB of 8
bits per channel.

A value of more than 8 bits needs a decision: which value is black, and which is white. Where the
file states it (sBIT in PNG, 12 bits in TIFF, the precision of JPEG 2000, the maximum of PGM), the
statement is followed; values that use the whole range of 16 bits are scaled. All others are
refused, because any choice of ours would change what the picture shows.
"""

from __future__ import annotations

import io
import re
import struct
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PIXELS
from medtasks.core.text import one_line
from medtasks.data.media.formats import foreign_picture

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

_FULL = 2**16 - 1
"""White in 16 bits."""

# Pillow warns about parts of a file that nobody sees, such as unreadable metadata, and of its own
# limit of pixels
warnings.filterwarnings("ignore", module=r"PIL\.")


def decode_image(data: bytes, name: str) -> Image:
    """The whole picture in the file ``data`` as RGB of 8 bits per channel.

    It is upright by its EXIF orientation. A truncated file is refused even if Pillow is lenient: a
    half-grey radiograph must not pass for a whole one.

    Raises:
        MediaError: the bytes are not a complete picture of a known format, are several pictures,
            have more than `MAX_PIXELS` pixels, or have values that :func:`as_rgb` refuses.
    """
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not data:
        raise MediaError(
            f"{name}: not a complete image (the file is empty); fetch or copy the file again."
        )
    try:
        with _STRICT_DECODING:
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
            _refuse_size(picture, name)
            _refuse_several(picture, name)
            values = _values_in(picture, data)
            picture.load()
        ImageOps.exif_transpose(picture, in_place=True)
        return as_rgb(picture, name, values)
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
    """A context manager in which Pillow refuses truncated files, although lmms-eval makes it
    lenient. Pillow's setting is one for all threads: it is restored when the last of them leaves.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads = 0
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
        count += not tags.get(_SUBFILE_TYPE, 0) & _REDUCED_OR_MASK
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


@dataclass(frozen=True)
class Values:
    """The statements of a file about its values, as Pillow delivers them.

    ``bits`` is their number in the file; ``white`` is the value that is white, None if that is not
    stated.
    """

    bits: int = 8
    white: int | None = None
    signed: bool = False
    zero_is_white: bool = False


def _values_in(picture: Image, data: bytes) -> Values:
    """The statements of the file ``data`` about its values; ``picture`` is not loaded yet."""
    read_statements = _STATEMENTS.get(picture.format or "")
    if read_statements is None:
        return Values()
    return read_statements(picture, data)


_GREY = 0  # a colour type of PNG


def _png_values(picture: Image, data: bytes) -> Values:
    bits, colour_type = data[24], data[25]
    transparent = picture.info.get("transparency")
    # Pillow scales pixels to 8 bits, and leaves the transparent one as it is stored
    if isinstance(transparent, int) and bits in (2, 4):
        picture.info["transparency"] = transparent * 255 // (2**bits - 1)
    if isinstance(transparent, tuple) and bits == 16:
        picture.info["transparency"] = tuple(value >> 8 for value in transparent)
    significant = _png_chunk(data, b"sBIT")
    if colour_type == _GREY and bits == 16 and significant and 0 < significant[0] < 16:
        return Values(bits, white=2 ** significant[0] - 1)
    return Values(bits)


def _png_chunk(data: bytes, kind: bytes) -> bytes | None:
    """The content of the first chunk of this kind before the pixels, if there is one."""
    position = 8
    while position + 8 <= len(data):
        length, chunk_kind = struct.unpack(">I4s", data[position : position + 8])
        if chunk_kind == kind:
            return data[position + 8 : position + 8 + length]
        if chunk_kind == b"IDAT":
            return None
        position += 12 + length
    return None


# TIFF tags
_BITS_PER_SAMPLE = 258
_PHOTOMETRIC = 262
_SAMPLE_FORMAT = 339

_SIGNED_INTEGER = 2
"""A value of the tag `_SAMPLE_FORMAT`."""


def _tiff_values(picture: Image, _: bytes) -> Values:
    tags = getattr(picture, "tag_v2", {})
    bits = max(tags.get(_BITS_PER_SAMPLE, (1,)))
    zero_is_white = bits == 16 and tags.get(_PHOTOMETRIC) == 0  # Pillow inverts those of fewer bits
    return Values(
        bits,
        white=2**bits - 1 if 8 < bits < 16 else None,
        signed=_SIGNED_INTEGER in tags.get(_SAMPLE_FORMAT, ()),
        zero_is_white=zero_is_white,
    )


_CODESTREAM = b"\xff\x4f\xff\x51"
"""The first markers of a JPEG 2000 codestream."""
_SIZES_TO_PRECISION = 42
"""Bytes from the codestream's first marker to the precision of its first component."""


def _jpeg2000_values(_: Image, data: bytes) -> Values:
    precision = data[data.index(_CODESTREAM) + _SIZES_TO_PRECISION]
    bits = (precision & 0x7F) + 1
    # Pillow shifts grey values up to 16 bits
    white = (2**bits - 1) << (16 - bits) if 8 < bits < 16 else None
    return Values(bits, white, signed=bool(precision & 0x80))


_PPM_HEADER = re.compile(
    rb"P[2356]\s+(?:#[^\n]*\n\s*)*\d+\s+(?:#[^\n]*\n\s*)*\d+\s+(?:#[^\n]*\n\s*)*(?P<white>\d+)"
)


def _ppm_values(_: Image, data: bytes) -> Values:
    header = _PPM_HEADER.match(data)
    if header is None:  # of one bit, or of floats
        return Values()
    white = int(header["white"])
    # Pillow scales values to 8 bits, or to 16 for grey of more than 8
    return Values(white.bit_length(), white=None if white == _FULL else _FULL)


_STATEMENTS: Mapping[str, Callable[[Image, bytes], Values]] = {
    "JPEG2000": _jpeg2000_values,
    "PNG": _png_values,
    "PPM": _ppm_values,
    "TIFF": _tiff_values,
}
"""Formats with values of more than 8 bits."""


def as_rgb(picture: Image, name: str, values: Values | None = None) -> Image:
    """The picture as RGB of 8 bits per channel, transparency on white, as viewers show it.

    ``values`` are the statements of its file; by default, the mode of ``picture`` is followed.

    Raises:
        MediaError: its values need a decision: they are signed, of 32 bits, floating-point, or of
            16 bits of which they use a part.
    """
    grey_16 = picture.mode.startswith("I;16")
    values = values or Values(bits=16 if grey_16 else 8)
    if picture.mode == "F":
        raise _needs_decision(name, "floating-point", _extrema(picture))
    if values.signed:
        raise _needs_decision(name, "signed", _extrema(picture))
    if grey_16 or (picture.mode == "I" and (values.bits == 16 or values.white)):
        picture = _reduced_to_8_bits(picture, name, values)
    elif picture.mode == "I":
        raise _needs_decision(name, "32-bit", _extrema(picture))
    elif values.bits == 16 and values.white is None:
        _refuse_part_of_range(picture, name)
    if picture.has_transparency_data:
        return _on_white(picture)
    return picture.convert("RGB")


def _extrema(picture: Image) -> tuple[float, float]:
    """The lowest and the highest value of all channels."""
    extrema: Any = picture.getextrema()
    if len(picture.getbands()) == 1:
        low, high = extrema
        return low, high
    return min(low for low, _ in extrema), max(high for _, high in extrema)


def _needs_decision(name: str, kind: str, extrema: tuple[float, float]) -> MediaError:
    low, high = extrema
    return MediaError(
        f"{name}: its {kind} values run from {low:,} to {high:,}, and nothing says which of them "
        "are black and white; scale the values that should be to 0 and 255, and save it with "
        "8 bits per channel."
    )


def _uses_range(low: int, high: int) -> bool:
    """Whether 16-bit values fill so much of their range that they must have been scaled to it.

    That is, they reach the upper half, and span more than 16 of the levels that 8 bits have. A
    picture that is all black or all white counts as scaled.
    """
    if low == high:
        return low in (0, _FULL)
    return high >= 2**15 and high - low >= 2**12


def _reduced_to_8_bits(picture: Image, name: str, values: Values) -> Image:
    """Grey values of 16 bits as 8; ``LA`` if one of them is transparent."""
    import numpy as np
    from PIL import Image

    stored = np.asarray(picture).astype(np.uint32)
    low, high = int(stored.min()), int(stored.max())
    if values.white is None and not _uses_range(low, high):
        raise _needs_decision(name, "16-bit", (low, high))
    # PNG says that values are scaled to the whole range even if fewer bits are significant; not all
    # writers do it
    white = values.white if values.white is not None and high <= values.white else _FULL
    reduced = stored * 255 // white  # in integers: floats would take 8 bytes a pixel
    if values.zero_is_white:
        reduced = 255 - reduced
    grey = Image.fromarray(reduced.astype(np.uint8))
    transparent = picture.info.get("transparency")
    if transparent is None:
        return grey
    opaque = Image.fromarray(np.where(stored == transparent, 0, 255).astype(np.uint8))
    return Image.merge("LA", (grey, opaque))


def _refuse_part_of_range(picture: Image, name: str) -> None:
    """Refuse colours of 16 bits per channel if they use only a part of the range.

    Pillow keeps their high bytes.
    """
    low_byte, high_byte = _extrema(picture.convert("RGB"))
    low, high = int(low_byte) * 257, int(high_byte) * 257
    if not _uses_range(low, high):
        raise _needs_decision(name, "16-bit", (low, high))


def _on_white(picture: Image) -> Image:
    from PIL import Image

    layer = picture.convert("RGBA")
    lowest_alpha = layer.getchannel("A").getextrema()[0]
    if lowest_alpha == 255:
        return layer.convert("RGB")
    white = Image.new("RGBA", layer.size, "white")
    return Image.alpha_composite(white, layer).convert("RGB")


def is_uniform(picture: Image) -> bool:
    """Whether all pixels of an RGB picture are equal.

    They are in a picture that was decoded wrongly, or never written.
    """
    corner = picture.getpixel((0, 0))
    middle = picture.getpixel((picture.width // 2, picture.height // 2))
    if corner != middle:  # as in most pictures: their other pixels are not read
        return False
    return all(low == high for low, high in picture.getextrema())  # type: ignore[misc]
