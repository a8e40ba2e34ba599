"""Images: strict decoding, a bounded cache, and the index that verifies every file once."""

from __future__ import annotations

import hashlib
import io
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from medtasks.errors import MediaError

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["ImageCache", "MediaEntry", "decode_image", "default_cache", "index_media", "load_image"]

NAMED = 10
_DECODING = threading.Lock()


class MediaEntry(BaseModel):
    """One verified file: path below the media root (POSIX), size in bytes, SHA-256, width and height in pixels."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: str
    bytes: int
    sha256: str
    width: int
    height: int


def decode_image(data: bytes, name: str) -> Image:
    """Decode ``data`` completely, apply its EXIF orientation, and return it as RGB, 8 bits a channel.

    A truncated file is refused even where ``PIL.ImageFile.LOAD_TRUNCATED_IMAGES`` is set, as lmms-eval sets it:
    a grey half of a radiograph must not pass for a radiograph. 16-bit grey is scaled to 8 bits.

    Raises:
        MediaError: the bytes are no whole image; names the file.
    """
    from PIL import Image, ImageFile, ImageOps

    try:
        with _DECODING:  # the switch is global to Pillow, so it is turned under a lock and turned back
            lenient, ImageFile.LOAD_TRUNCATED_IMAGES = ImageFile.LOAD_TRUNCATED_IMAGES, False
            try:
                opened = Image.open(io.BytesIO(data))
                opened.load()
            finally:
                ImageFile.LOAD_TRUNCATED_IMAGES = lenient
        image = ImageOps.exif_transpose(opened)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise MediaError(f"{name}: not a whole image ({error}); fetch or copy the file again.") from error
    if image.mode.startswith("I") or image.mode == "F":
        image = image.point(lambda value: value / 257).convert("L")
    return image.convert("RGB")


def load_image(path: Path) -> Image:
    """The image in the file ``path``, decoded as :func:`decode_image` says.

    Raises:
        MediaError: the file is missing, unreadable, or no whole image.
    """
    return decode_image(_read(path), str(path))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise MediaError(f"{path}: cannot be read ({error.strerror or error}); restore the file.") from error


class ImageCache:
    """Decoded images, least recently used first to go, holding at most ``max_bytes`` of pixels; thread-safe.

    Questions about one image stand together, so each image is decoded once although the cache is bounded.
    """

    def __init__(self, max_bytes: int = 512 * 2**20) -> None:
        self._max_bytes = max_bytes
        self._held: OrderedDict[Path, Image] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0

    def load(self, path: Path) -> Image:
        """The image of ``path``, from the cache or decoded now. Callers must not change it.

        Raises:
            MediaError: as :func:`load_image`.
        """
        with self._lock:
            if path in self._held:
                self.hits += 1
                self._held.move_to_end(path)
                return self._held[path]
            self.misses += 1
            image = load_image(path)
            self._held[path] = image
            self._bytes += _pixels_bytes(image)
            while self._bytes > self._max_bytes and len(self._held) > 1:
                _, dropped = self._held.popitem(last=False)
                self._bytes -= _pixels_bytes(dropped)
            return image


def _pixels_bytes(image: Image) -> int:
    return image.width * image.height * 3


_DEFAULT = ImageCache()


def default_cache() -> ImageCache:
    """The cache that all tasks of this process share."""
    return _DEFAULT


def index_media(
    root: Path,
    paths: Iterable[str],
    *,
    workers: int = 0,
    known: Mapping[str, MediaEntry] | None = None,
    done: Callable[[MediaEntry], None] | None = None,
) -> tuple[list[MediaEntry], dict[str, MediaError]]:
    """Decode every file once; return the entries sorted by path, and the errors of the files that failed.

    Args:
        root: folder that ``paths`` are relative to.
        workers: threads; 0 means as many as there are processors, at most 8.
        known: entries of an earlier, interrupted pass; where the size still agrees the file is not read again.
        done: called in this thread with each new entry, in the order of paths.
    """
    import os

    wanted = sorted(set(paths))
    known = known or {}

    def index(path: str) -> MediaEntry | MediaError:
        entry = known.get(path)
        file = root / path
        try:
            if entry is not None and file.stat().st_size == entry.bytes:
                return entry
            data = _read(file)
            image = decode_image(data, str(file))
        except OSError as error:
            return MediaError(f"{file}: cannot be read ({error.strerror}); restore the file.")
        except MediaError as error:
            return error
        digest = hashlib.sha256(data).hexdigest()
        return MediaEntry(path=path, bytes=len(data), sha256=digest, width=image.width, height=image.height)

    entries: list[MediaEntry] = []
    errors: dict[str, MediaError] = {}
    with ThreadPoolExecutor(max_workers=workers or min(8, os.cpu_count() or 1)) as pool:
        for path, result in zip(wanted, pool.map(index, wanted), strict=True):
            if isinstance(result, MediaError):
                errors[path] = result
                continue
            entries.append(result)
            if done is not None:
                done(result)
    return entries, errors
