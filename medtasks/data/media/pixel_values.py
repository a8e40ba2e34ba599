"""What the pixel values of pictures mean, and their form as RGB of 8 bits per channel.

A value of more than 8 bits needs a decision: which value is black, and which is white. Where the
file states it (sBIT in PNG, 12 bits in TIFF, the precision of JPEG 2000, the maximum of PGM), the
statement is followed; values that use the whole range of 16 bits are scaled. All others are
refused, because any choice of ours would change what the picture shows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MediaError

if TYPE_CHECKING:
    from PIL.Image import Image


WHITE_16_BITS = 2**16 - 1
"""White in 16 bits."""


@dataclass(frozen=True)
class PixelValues:
    """The statements of a file about its values, as Pillow delivers them.

    ``bits`` is their number in the file; ``white`` is the value that is white, None if that is not
    stated.
    """

    bits: int = 8
    white: int | None = None
    signed: bool = False
    zero_is_white: bool = False


def pixel_values_in(picture: Image, data: bytes) -> PixelValues:
    """The statements of the file ``data`` about its values; ``picture`` is not loaded yet."""
    read_statements = _STATEMENTS.get(picture.format or "")
    if read_statements is None:
        return PixelValues()
    return read_statements(picture, data)


_GREY = 0  # a colour type of PNG


def _png_values(picture: Image, data: bytes) -> PixelValues:
    """The statements of a PNG file; a transparent value in ``picture`` is scaled like its
    pixels.
    """
    bits, colour_type = data[24], data[25]  # of the header chunk, which comes first
    transparent = picture.info.get("transparency")
    # Pillow scales pixels to 8 bits, and leaves the transparent one as it is stored
    if isinstance(transparent, int) and bits in (2, 4):
        picture.info["transparency"] = transparent * 255 // (2**bits - 1)
    if isinstance(transparent, tuple) and bits == 16:
        picture.info["transparency"] = tuple(value >> 8 for value in transparent)
    significant = _png_chunk(data, b"sBIT")
    if colour_type == _GREY and bits == 16 and significant and 0 < significant[0] < 16:
        return PixelValues(bits, white=2 ** significant[0] - 1)
    return PixelValues(bits)


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


def _tiff_values(picture: Image, _: bytes) -> PixelValues:
    """The statements of a TIFF file, in its tags."""
    tags = getattr(picture, "tag_v2", {})
    bits = max(tags.get(_BITS_PER_SAMPLE, (1,)))
    zero_is_white = bits == 16 and tags.get(_PHOTOMETRIC) == 0  # Pillow inverts those of fewer bits
    return PixelValues(
        bits,
        white=2**bits - 1 if 8 < bits < 16 else None,
        signed=_SIGNED_INTEGER in tags.get(_SAMPLE_FORMAT, ()),
        zero_is_white=zero_is_white,
    )


_CODESTREAM = b"\xff\x4f\xff\x51"
"""The first markers of a JPEG 2000 codestream."""
_SIZES_TO_PRECISION = 42
"""Bytes from the codestream's first marker to the precision of its first component."""


def _jpeg2000_values(_: Image, data: bytes) -> PixelValues:
    """The statements of a JPEG 2000 file: the number of bits less one, and a bit for the sign."""
    precision = data[data.index(_CODESTREAM) + _SIZES_TO_PRECISION]
    bits = (precision & 0x7F) + 1
    # Pillow shifts grey values up to 16 bits
    white = (2**bits - 1) << (16 - bits) if 8 < bits < 16 else None
    return PixelValues(bits, white, signed=bool(precision & 0x80))


_PPM_HEADER = re.compile(
    rb"P[2356]\s+(?:#[^\n]*\n\s*)*\d+\s+(?:#[^\n]*\n\s*)*\d+\s+(?:#[^\n]*\n\s*)*(?P<white>\d+)"
)


def _ppm_values(_: Image, data: bytes) -> PixelValues:
    """The statements of a PPM or PGM file: its header names the value that is white."""
    header = _PPM_HEADER.match(data)
    if header is None:  # of one bit, or of floats
        return PixelValues()
    white = int(header["white"])
    # Pillow scales values to 8 bits, or to 16 for grey of more than 8
    return PixelValues(white.bit_length(), white=None if white == WHITE_16_BITS else WHITE_16_BITS)


_STATEMENTS: Mapping[str, Callable[[Image, bytes], PixelValues]] = {
    "JPEG2000": _jpeg2000_values,
    "PNG": _png_values,
    "PPM": _ppm_values,
    "TIFF": _tiff_values,
}
"""Formats with values of more than 8 bits."""


def as_rgb(picture: Image, name: str, values: PixelValues | None = None) -> Image:
    """The picture as RGB of 8 bits per channel, transparency on white, as viewers show it.

    ``values`` are the statements of its file; by default, the mode of ``picture`` is followed.

    Raises:
        MediaError: its values need a decision: they are signed, of 32 bits, floating-point, or of
            16 bits of which they use a part.
    """
    grey_16 = picture.mode.startswith("I;16")
    values = values or PixelValues(bits=16 if grey_16 else 8)
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
    """The error of a picture that does not say which of its values are black and white."""
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
        return low in (0, WHITE_16_BITS)
    return high >= 2**15 and high - low >= 2**12


def _reduced_to_8_bits(picture: Image, name: str, values: PixelValues) -> Image:
    """Grey values of 16 bits as 8; ``LA`` if one of them is transparent."""
    import numpy as np
    from PIL import Image

    stored = np.asarray(picture).astype(np.uint32)
    low, high = int(stored.min()), int(stored.max())
    if values.white is None and not _uses_range(low, high):
        raise _needs_decision(name, "16-bit", (low, high))
    # PNG says that values are scaled to the whole range even if fewer bits are significant; not all
    # writers do it
    white = values.white if values.white is not None and high <= values.white else WHITE_16_BITS
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
    """The picture as RGB, its transparent parts on white."""
    from PIL import Image

    layer = picture.convert("RGBA")
    lowest_alpha = layer.getchannel("A").getextrema()[0]
    if lowest_alpha == 255:
        return layer.convert("RGB")
    white = Image.new("RGBA", layer.size, "white")
    return Image.alpha_composite(white, layer).convert("RGB")
