"""Images: strict decoding, a bounded cache, and the index that verifies every file once."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.core.cache import RecentlyUsed
from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PICTURE_BYTES, MAX_PIXELS, file_state, read_regular
from medtasks.core.schema import Frozen

if TYPE_CHECKING:
    from PIL.Image import Image


class VideoFacts(Frozen):
    """What is needed to read frames: the time base in seconds (a fraction), and timestamps in units of it."""

    time_base: str
    first: int
    frames: int
    keyframes: tuple[int, ...]


class MediaEntry(Frozen):
    """One verified file: path below the media root (POSIX), size in bytes, width and height in pixels."""

    path: str
    bytes: int
    sha256: str
    width: int
    height: int
    video: VideoFacts | None = None


class KnownMedia(Frozen):
    """An entry with its file's state (`medtasks.core.files.file_state`); a changed file is read again."""

    entry: MediaEntry
    state: tuple[int, ...]


_FORMATS = ("BMP", "GIF", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""Formats that Pillow itself decodes; others start programs (EPS), or contain pictures of several sizes (ICO)."""


_STRICT_LOCK = threading.Lock()
_STRICT = {"threads": 0, "before": False}  # threads that decode strictly, and Pillow's setting before the first of them


@contextmanager
def _strict_decoding() -> Iterator[None]:
    """Refuse truncated files although lmms-eval makes Pillow lenient, in all threads until the last of them leaves."""
    from PIL import ImageFile

    with _STRICT_LOCK:
        if not _STRICT["threads"]:
            _STRICT["before"] = ImageFile.LOAD_TRUNCATED_IMAGES
        ImageFile.LOAD_TRUNCATED_IMAGES = False
        _STRICT["threads"] += 1
    try:
        yield
    finally:
        with _STRICT_LOCK:
            _STRICT["threads"] -= 1
            if not _STRICT["threads"]:
                ImageFile.LOAD_TRUNCATED_IMAGES = bool(_STRICT["before"])


def decode_image(data: bytes, name: str) -> Image:
    """Decode ``data`` completely, apply its EXIF orientation, and return it as RGB, 8 bits per channel. A truncated
    file is refused even if Pillow is lenient: a half-grey radiograph must not pass for a whole one. 16-bit grey is
    scaled.

    Raises:
        MediaError: the bytes are not a complete image of a known format, or it has more than `MAX_PIXELS` pixels.
    """
    import numpy as np
    from PIL import Image, ImageOps, UnidentifiedImageError

    if not data:
        raise MediaError(f"{name}: not a complete image (the file is empty); fetch or copy the file again.")
    try:
        with _strict_decoding():
            opened = Image.open(io.BytesIO(data), formats=_FORMATS)
            if opened.width * opened.height > MAX_PIXELS:
                raise MediaError(
                    f"{name}: {opened.width:,} × {opened.height:,} pixels exceed the limit of {MAX_PIXELS:,}; "
                    "make it smaller."
                )
            opened.load()
        image = ImageOps.exif_transpose(opened)
        if image.mode.startswith("I") or image.mode == "F":
            values = np.asarray(image) // 257  # integer division: floats would take 8 bytes a pixel
            image = Image.fromarray(np.clip(values, 0, 255).astype(np.uint8))
        return image.convert("RGB")
    except MediaError:
        raise
    except UnidentifiedImageError as error:
        raise MediaError(f"{name}: not a complete image (unknown format); fetch or copy the file again.") from error
    except Exception as error:  # Pillow's decoders raise errors of many kinds on damaged bytes
        raise MediaError(f"{name}: not a complete image ({error}); fetch or copy the file again.") from error


@dataclass
class EncodedPicture:
    """An image file that is decoded where its picture is needed: its bytes are a tenth of the pixels'."""

    name: str
    data: bytes

    @functools.cached_property
    def image(self) -> Image:
        """The picture, decoded once; raises :class:`MediaError` as :func:`decode_image`."""
        return decode_image(self.data, self.name)


def read_picture(path: Path) -> bytes:
    """The content of an image file; raises :class:`MediaError`."""
    with unreadable_as_media_error(path):
        return read_regular(path, MAX_PICTURE_BYTES)


@contextmanager
def unreadable_as_media_error(path: Path) -> Iterator[None]:
    """Turn errors of reading ``path`` into a :class:`MediaError`."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = getattr(error, "strerror", None) or error
        raise MediaError(f"{path}: cannot be read ({reason}); restore the file.") from error


@contextmanager
def decoding_threads(workers: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of ``workers`` threads, 0 for one per processor, at most 8; an error in the block cancels what waits."""
    pool = ThreadPoolExecutor(max_workers=workers or min(8, os.cpu_count() or 1))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


class ImageCache:
    """An LRU cache of decoded images; thread-safe. Questions about one image are adjacent, so each is decoded once
    although the cache is small. ``misses`` counts the calls that decoded an image."""

    def __init__(self, max_bytes: int = 64 * 2**20) -> None:
        self._held: RecentlyUsed[Path, Image] = RecentlyUsed(max_bytes, pixel_bytes)
        self._lock = threading.Lock()
        self.misses = 0

    def load(self, path: Path, together: Collection[Path] = ()) -> Image:
        """The image of ``path``, not to be changed. ``together`` are the images of the same document, which stay even
        if they exceed ``max_bytes``: the next question is probably about them, too."""
        with self._lock:  # also while decoding, so that no image is decoded twice
            image = self._held.get(path)
            if image is not None:
                return image
            self.misses += 1
            image = decode_image(read_picture(path), str(path))
            self._held.add(path, image)
            self._held.trim([path, *together])
            return image

    def clear(self) -> None:
        with self._lock:
            self._held.clear()


def pixel_bytes(image: Image) -> int:
    """Bytes of an RGB image in memory; Pillow pads each pixel to four."""
    return image.width * image.height * 4


IMAGES = ImageCache()  # shared by all tasks of this process


def index_media(
    root: Path,
    paths: Iterable[str],
    *,
    workers: int = 0,
    known: Iterable[KnownMedia] = (),
    write: Callable[[KnownMedia], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[list[MediaEntry], dict[str, MediaError]]:
    """Decode every file below ``root`` once: the entries of whole ones, in order, and the errors of others, by path.

    The result does not depend on ``workers`` (:func:`decoding_threads`). ``known`` entries of an earlier, interrupted
    pass are used unless the file has changed; ``write`` gets all others.
    """
    before = {media.entry.path: media for media in known}

    def indexed(path: str) -> KnownMedia | MediaError:
        file, earlier = root / path, before.get(path)
        try:
            with unreadable_as_media_error(file):
                status = file.stat()
            if earlier is not None and earlier.state == file_state(status):
                return earlier
            data = read_picture(file)
            image = decode_image(data, str(file))
        except MediaError as error:
            return error
        digest = hashlib.sha256(data).hexdigest()
        entry = MediaEntry(path=path, bytes=len(data), sha256=digest, width=image.width, height=image.height)
        return KnownMedia(entry=entry, state=file_state(status))

    names = sorted(set(paths))
    entries, errors = [], {}
    with decoding_threads(workers) as pool:
        for number, (name, media) in enumerate(zip(names, pool.map(indexed, names), strict=True), start=1):
            if isinstance(media, MediaError):
                errors[name] = media
                continue
            entries.append(media.entry)
            if write is not None and before.get(name) != media:
                write(media)
            if progress is not None:
                progress(number, len(names))
    return entries, errors
