"""Images of files: a bounded cache, and the index that verifies every file once."""

from __future__ import annotations

import functools
import hashlib
import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.core.cache import RecentlyUsed
from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PICTURE_BYTES, file_state, read_regular
from medtasks.core.schema import Frozen
from medtasks.data.media.pictures import decode_image, is_uniform
from medtasks.data.progress import Progress

if TYPE_CHECKING:
    from PIL.Image import Image


class VideoFacts(Frozen):
    """The facts that are needed to read frames of a video.

    ``time_base`` is in seconds (a fraction), and timestamps are in units of it. ``stream`` is the
    number of the stream, None for the first video stream.
    """

    time_base: str
    first: int
    frames: int
    keyframes: tuple[int, ...]
    stream: int | None = None


class MediaEntry(Frozen):
    """One verified file.

    ``path`` is below the media root (POSIX); width and height are in pixels.
    """

    path: str
    bytes: int
    sha256: str
    width: int
    height: int
    video: VideoFacts | None = None


class KnownMedia(Frozen):
    """An entry with its file's state (`medtasks.core.files.file_state`).

    A file whose state has changed is read again. ``uniform`` is whether all pixels of the picture
    are equal.
    """

    entry: MediaEntry
    state: tuple[int, ...]
    uniform: bool = False


@dataclass(frozen=True)
class MediaIndex:
    """The result of verifying files.

    ``entries`` are those of whole files in the order of their paths, ``errors`` those of the other
    files by path, and ``uniform`` the paths of pictures whose pixels are all equal.
    """

    entries: Sequence[MediaEntry] = ()
    errors: Mapping[str, MediaError] = field(default_factory=dict)
    uniform: Sequence[str] = ()


@dataclass
class EncodedPicture:
    """An image file that is decoded where its picture is needed.

    Its bytes are about a tenth of those of the pixels.
    """

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
    """A pool of ``workers`` threads; 0 is one per processor, at most 8.

    An error in the block cancels the calls that wait.
    """
    pool = ThreadPoolExecutor(max_workers=workers or min(8, os.cpu_count() or 1))
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


class ImageCache:
    """An LRU cache of decoded images; thread-safe.

    Questions about one image are adjacent, so each is decoded once although the cache is small.
    ``misses`` counts the calls that decoded an image.
    """

    def __init__(self, max_bytes: int = 64 * 2**20) -> None:
        """Keep at most ``max_bytes`` of images, except those of one document."""
        self._held: RecentlyUsed[Path, Image] = RecentlyUsed(max_bytes, pixel_bytes)
        self._lock = threading.Lock()
        self.misses = 0

    def load(self, path: Path, together: Collection[Path] = ()) -> Image:
        """The image of ``path``, not to be changed.

        ``together`` are the images of the same document. They stay even if they exceed
        ``max_bytes``: the next question is probably about them, too.
        """
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
        """Drop all images."""
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
    verified: Iterable[KnownMedia] = (),
    write: Callable[[KnownMedia], None] | None = None,
    progress: Progress | None = None,
) -> MediaIndex:
    """Verify files below ``root``: each is decoded once.

    The result does not depend on ``workers`` (:func:`decoding_threads`). ``verified`` entries of an
    earlier, interrupted pass are used unless the file has changed; ``write`` gets all others.
    """
    earlier = {media.entry.path: media for media in verified}
    verify = functools.partial(_verified_or_error, root, earlier)
    names = sorted(set(paths))
    entries: list[MediaEntry] = []
    errors: dict[str, MediaError] = {}
    uniform: list[str] = []
    with decoding_threads(workers) as pool:
        outcomes = pool.map(verify, names)
        for number, (name, outcome) in enumerate(zip(names, outcomes, strict=True), start=1):
            if isinstance(outcome, MediaError):
                errors[name] = outcome
            else:
                entries.append(outcome.entry)
                if outcome.uniform:
                    uniform.append(name)
                if write is not None and outcome != earlier.get(name):
                    write(outcome)
            if progress is not None:
                progress(number, len(names))
    return MediaIndex(entries, errors, uniform)


def _verified_or_error(
    root: Path, earlier: Mapping[str, KnownMedia], path: str
) -> KnownMedia | MediaError:
    """The entry of the picture ``path`` below ``root``, or the error that it cannot be used."""
    try:
        return _verified(root, path, earlier.get(path))
    except MediaError as error:
        return error


def _verified(root: Path, path: str, earlier: KnownMedia | None) -> KnownMedia:
    """The entry of the picture ``path`` below ``root``.

    The picture is decoded unless the file is still in the state of the ``earlier`` entry.
    """
    file = root / path
    with unreadable_as_media_error(file):
        status = file.stat()
    if earlier is not None and earlier.state == file_state(status):
        return earlier
    data = read_picture(file)
    image = decode_image(data, str(file))
    digest = hashlib.sha256(data).hexdigest()
    entry = MediaEntry(
        path=path, bytes=len(data), sha256=digest, width=image.width, height=image.height
    )
    return KnownMedia(entry=entry, state=file_state(status), uniform=is_uniform(image))
