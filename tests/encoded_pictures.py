"""Picture files written byte by byte, or by an encoder, for values that Pillow does not write."""

from __future__ import annotations

import io
import struct
import zlib
from fractions import Fraction
from typing import Any

import av
import numpy as np
from PIL import Image

GREY, COLOUR, GREY_ALPHA, COLOUR_ALPHA = 0, 2, 4, 6
"""Colour types of PNG."""

RAMP = np.tile(np.linspace(0, 1, 64), (16, 1))
"""Values from 0 to 1, from left to right."""


def ramp(highest: int) -> np.ndarray:
    """A ramp of 16-bit values from 0 to ``highest``."""
    return np.round(RAMP * highest).astype(np.uint16)


def saved(picture: Image.Image | np.ndarray, kind: str, **options: Any) -> bytes:
    """The file that Pillow writes."""
    stream = io.BytesIO()
    image = Image.fromarray(picture) if isinstance(picture, np.ndarray) else picture
    image.save(stream, kind, **options)
    return stream.getvalue()


def png(values: np.ndarray, colour_type: int = GREY, bits: int = 16, **chunks: bytes) -> bytes:
    """A PNG file of these values, rows of packed bytes if ``bits`` are fewer than 8, with further
    chunks by name.
    """
    stored = values.astype(">u2") if bits == 16 else values.astype(np.uint8)
    height, width = stored.shape[0], stored.shape[1] * (8 // bits if bits < 8 else 1)
    rows = b"".join(b"\0" + row.tobytes() for row in stored)
    header = struct.pack(">IIBBBBB", width, height, bits, colour_type, 0, 0, 0)
    parts = [
        _chunk(b"IHDR", header),
        *(_chunk(name.encode(), data) for name, data in chunks.items()),
    ]
    parts += [_chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def jpeg2000(values: np.ndarray, bits: int) -> bytes:
    """A JPEG 2000 file of grey values with this precision, without loss."""
    height, width = values.shape
    encoder = av.codec.CodecContext.create("jpeg2000", "w")
    encoder.width, encoder.height, encoder.time_base = width, height, Fraction(1, 25)
    encoder.pix_fmt = f"gray{bits}le"
    encoder.options = {"pred": "dwt53"}
    frame = av.VideoFrame(width, height, encoder.pix_fmt)
    plane = frame.planes[0]
    padded = np.zeros((height, plane.line_size // 2), dtype="<u2")
    padded[:, :width] = values
    plane.update(padded.tobytes())
    frame.pts = 0
    return b"".join(bytes(packet) for packet in [*encoder.encode(frame), *encoder.encode(None)])


def tiff_12_bit(values: np.ndarray) -> bytes:
    """A TIFF file with 12 bits per value, two values in three bytes."""
    height, width = values.shape
    packed = bytearray()
    for first, second in values.reshape(-1, 2).tolist():
        packed += bytes((first >> 4, (first & 15) << 4 | second >> 8, second & 255))
    short, long = 3, 4
    tags = [
        (256, long, width),
        (257, long, height),
        (258, short, 12),
        (259, short, 1),
        (262, short, 1),
    ]
    tags += [(273, long, 8), (277, short, 1), (278, long, height), (279, long, len(packed))]
    directory = struct.pack("<H", len(tags))
    for tag, kind, value in tags:
        directory += struct.pack("<HHII", tag, kind, 1, value)
    return (
        struct.pack("<2sHI", b"II", 42, 8 + len(packed))
        + bytes(packed)
        + directory
        + struct.pack("<I", 0)
    )
