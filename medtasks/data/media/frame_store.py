"""The cache of decoded frames, for items that show parts of one video again and again."""

from __future__ import annotations

import threading
from collections.abc import Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from medtasks.core.cache import RecentlyUsed
from medtasks.data.media.images import VideoFacts, pixel_bytes
from medtasks.data.media.video_reader import VideoReader

if TYPE_CHECKING:
    from PIL.Image import Image


class FrameStore:
    """An LRU cache of decoded frames; thread-safe.

    The rounds of a streaming item show growing parts of one video: the reader stays open and
    continues where the previous round ended.
    """

    def __init__(self, max_bytes: int = 512 * 2**20) -> None:
        """Keep at most ``max_bytes`` of frames."""
        self.held: RecentlyUsed[tuple[Path, int], Image] = RecentlyUsed(max_bytes, pixel_bytes)
        self.decoded = 0
        self._reader = VideoReader(Path(), ())
        self._lock = threading.Lock()

    def load(
        self, path: Path, video: VideoFacts, timestamps: Sequence[int], also: Sequence[int] = ()
    ) -> list[Image]:
        """The frames of ``path`` at ``timestamps``, in that order, RGB, not to be changed.

        ``also`` are timestamps of frames that other rounds of the same item will need; those that
        decoding passes are kept, too.
        """
        with self._lock:
            frames: dict[int, Image] = {}
            for pts in set(timestamps):
                cached = self.held.get((path, pts))
                if cached is not None:
                    frames[pts] = cached
            missing = set(timestamps) - frames.keys()
            if missing:
                frames |= self._decode(path, video, missing, also)
            return [frames[pts] for pts in timestamps]

    def _decode(
        self, path: Path, video: VideoFacts, missing: Set[int], also: Sequence[int]
    ) -> dict[int, Image]:
        """Decode the frames at ``missing``; keep them, and those of ``also`` on the way."""
        first, last = min(missing), max(missing)
        on_the_way: set[int] = set()
        for pts in also:
            if first <= pts <= last and (path, pts) not in self.held:
                on_the_way.add(pts)
        if self._reader.path != path:
            self._reader.close()
            self._reader = VideoReader(path, video.keyframes, video.stream)
        decoded_before = self._reader.decoded
        frames: dict[int, Image] = {}
        for pts, picture in self._reader.read(sorted(missing | on_the_way)):
            if pts in missing:
                frames[pts] = picture
            self.held.add((path, pts), picture)
            self.held.trim([(path, pts)])
        self.decoded += self._reader.decoded - decoded_before
        return frames

    def clear(self) -> None:
        """Close the open video and drop all frames."""
        with self._lock:
            self._reader.close()
            self.held.clear()


FRAMES = FrameStore()  # shared by all tasks of this process
