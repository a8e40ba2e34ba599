"""Formats of files that are given as pictures or videos and are neither, with the fix for each."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEAD = 512
"""Bytes from the beginning of a file that :func:`foreign_format` looks at."""


@dataclass(frozen=True)
class ForeignFormat:
    """A format that is recognised and not read.

    ``name`` has an article; ``begins`` matches the first bytes of its files.
    """

    name: str
    begins: re.Pattern[bytes]
    fix: str


def _foreign(name: str, begins: bytes, fix: str) -> ForeignFormat:
    """A format whose files begin with a match of the pattern ``begins``, in any case."""
    return ForeignFormat(name, re.compile(begins, re.DOTALL | re.IGNORECASE), fix)


_AS_PICTURE = "convert it to PNG or JPEG"
_TO_MP4 = "convert it to MP4 with its frame rate (ffmpeg -r RATE -i IN OUT.mp4)"

_NEITHER = (
    _foreign(
        "a DICOM file",
        rb".{128}DICM",
        "export what is to be shown as PNG or JPEG, or a video as MP4",
    ),
    _foreign("a NIfTI file", rb".{344}(?:n\+1|ni1)\0", "export the slice to be shown as PNG"),
    _foreign(
        "a pointer of Git LFS", rb"version https://git-lfs", "fetch its content (git lfs pull)"
    ),
    _foreign(
        "a pointer of git-annex",
        rb"(?:\.\./)*(?:\.git)?/annex/objects/",
        "fetch its content (git annex get)",
    ),
    _foreign(
        "a web page",
        rb"\s*<(?:!doctype html|html)",
        "fetch the file again, logged in if its host asks for it",
    ),
    _foreign("a gzip file", rb"\x1f\x8b", "unpack it"),
    _foreign("a ZIP archive", rb"PK\x03\x04", "unpack it"),
    _foreign("a PDF file", rb"%PDF", "export the picture in it as PNG"),
    _foreign("a PostScript file", rb"%!PS", _AS_PICTURE),
    _foreign("an SVG drawing", rb"\s*(?:<\?xml.{,300}?)?<svg\b", _AS_PICTURE),
    _foreign("a NumPy array", rb"\x93NUMPY", "save it as PNG, or its frames as MP4"),
    _foreign("an HDF5 file", rb"\x89HDF", "export what is to be shown as PNG or MP4"),
    _foreign("a HEIC picture", rb".{4}ftyp(?:hei[cfmsx]|hev[cx]|mif1|msf1)", _AS_PICTURE),
    _foreign("an AVIF picture", rb".{4}ftypavi[fs]", _AS_PICTURE),
    _foreign("a JPEG XL picture", rb"\xff\x0a|\0\0\0\x0cJXL ", _AS_PICTURE),
    _foreign("a Photoshop file", rb"8BPS", _AS_PICTURE),
    _foreign("an icon", rb"\0\0[\x01\x02]\0", _AS_PICTURE),
)

_VIDEOS = (
    _foreign(
        "a video", rb".{4}ftyp|RIFF.{4}AVI |\x1aE\xdf\xa3|\0\0\x01\xba|FLV\x01", "give a picture"
    ),
    _foreign("a raw video stream", rb"\0\0\0?\x01", "give a picture"),
)

_NO_VIDEO_FILES = (
    _foreign(
        "a picture or an animation",
        rb"GIF8|\x89PNG|RIFF.{4}WEBP|\xff\xd8\xff|BM",
        "convert it to MP4",
    ),
    _foreign(
        "a raw video stream without timestamps",
        rb"\0\0\0?\x01(?!\xba)|YUV4MPEG2|\x12\0\x0a",
        _TO_MP4,
    ),
    _foreign("a raw DV stream", rb"\x1f\x07\0\x3f", _TO_MP4),
    _foreign("a playlist", rb"#EXTM3U|ffconcat", "give the video itself"),
)


def foreign_picture(head: bytes) -> ForeignFormat | None:
    """The format of a file given as a picture, by its first bytes; None if not recognised."""
    return _first_match((*_NEITHER, *_VIDEOS), head)


def foreign_video(head: bytes) -> ForeignFormat | None:
    """The format of a file given as a video, by its first bytes; None if not recognised."""
    return _first_match((*_NO_VIDEO_FILES, *_NEITHER), head)


def _first_match(formats: tuple[ForeignFormat, ...], head: bytes) -> ForeignFormat | None:
    """The first of ``formats`` whose files begin like ``head``."""
    for candidate in formats:
        if candidate.begins.match(head[:HEAD]):
            return candidate
    return None
