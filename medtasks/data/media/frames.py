"""Video frames at inference time: one open reader, one bounded cache, each frame decoded once per item."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.core.cache import RecentlyUsed
from medtasks.data.media.images import pixel_bytes
from medtasks.data.media.video import VideoReader

if TYPE_CHECKING:
    from PIL.Image import Image


class FrameStore:
    """An LRU cache of decoded frames with at most ``max_bytes`` of pixels; thread-safe.

    The rounds of a streaming item show growing parts of one video: the reader stays open and continues where the
    previous round ended, and caches frames on the way that other rounds of the item will need. ``decoded``
    counts the frames that came out of the decoder.
    """

    def __init__(self, max_bytes: int = 512 * 2**20) -> None:
        self._held: RecentlyUsed[tuple[Path, int], Image] = RecentlyUsed(max_bytes, pixel_bytes)
        self._reader: VideoReader | None = None
        self._decoded_before = 0
        self._lock = threading.Lock()

    @property
    def decoded(self) -> int:
        """Frames that came out of the decoder so far, shown or not."""
        return self._decoded_before + (self._reader.decoded if self._reader else 0)

    @property
    def held_bytes(self) -> int:
        """Bytes of the pixels in the cache."""
        return self._held.nbytes

    def load(
        self, path: Path, keyframes: tuple[int, ...], timestamps: Sequence[int], also: Sequence[int] = ()
    ) -> list[Image]:
        """The frames of ``path`` at ``timestamps``, in that order, RGB. Callers must not change them.

        ``keyframes`` are the timestamps at which decoding can begin, ``also`` those of frames that other rounds of the
        same item will need; those on the way are kept.

        Raises:
            MediaError: a frame cannot be decoded.
        """
        with self._lock:
            cached = {pts: self._held.get((path, pts)) for pts in set(timestamps)}
            found = {pts: picture for pts, picture in cached.items() if picture is not None}
            missing = {pts for pts in timestamps if pts not in found}
            if missing:
                first, last = min(missing), max(missing)
                passed = {pts for pts in also if first <= pts <= last and (path, pts) not in self._held}
                for pts, picture in self._open(path, keyframes).read(sorted(missing | passed)):
                    if pts in missing:
                        found[pts] = picture
                    self._held.add((path, pts), picture)
                    self._held.trim([(path, pts)])
            return [found[pts] for pts in timestamps]

    def close(self) -> None:
        """Close the open video and drop all frames."""
        with self._lock:
            self._close_reader()
            self._held.clear()

    def _open(self, path: Path, keyframes: tuple[int, ...]) -> VideoReader:
        if self._reader is None or self._reader.path != path:
            self._close_reader()
            self._reader = VideoReader(path, keyframes)
        return self._reader

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._decoded_before += self._reader.decoded
            self._reader.close()
            self._reader = None


_DEFAULT = FrameStore()


def default_frames() -> FrameStore:
    """The store that all tasks of this process share."""
    return _DEFAULT
