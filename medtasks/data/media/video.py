"""Videos by PyAV: decoding of exactly the requested frames, and verification.

Frames are named by presentation timestamps (pts) in the stream's time base, so constant and
variable frame rates are treated alike and nothing is rounded.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.core.cache import RecentlyUsed
from medtasks.core.errors import MediaError, MissingExtraError
from medtasks.core.files import MAX_PIXELS, file_sha256, file_state
from medtasks.data.media.frame_geometry import frame_as_rgb, turn_of, with_square_pixels
from medtasks.data.media.images import (
    KnownMedia,
    MediaEntry,
    VideoFacts,
    pixel_bytes,
    unreadable_as_media_error,
)
from medtasks.data.media.video_index import VideoIndex, open_container, reason_of, video_stream

if TYPE_CHECKING:
    from PIL.Image import Image


_LARGEST = {"max_pixels": str(MAX_PIXELS)}
"""FFmpeg's option that refuses larger frames."""


@dataclass
class VideoReader:
    """An open video that decodes forward, and jumps to a keyframe only if that saves decoding.

    It is for one thread at a time. ``decoded`` counts frames that came out of the decoder.
    """

    path: Path
    keyframes: tuple[int, ...]
    stream: int | None = None  # as `VideoFacts.stream`
    decoded: int = 0
    _container: Any = field(default=None, repr=False)
    _frames: Iterator[Any] = field(default=iter(()), repr=False)
    # timestamp of the newest frame that came out of the decoder
    _position: int | None = None

    def close(self) -> None:
        """Close the file; the next frame opens it again."""
        if self._container is not None:
            self._container.close()
        self._container = None
        self._frames = iter(())
        self._position = None

    def read(self, timestamps: Sequence[int]) -> Iterator[tuple[int, Image]]:
        """Yield timestamp and RGB picture of each frame in ``timestamps`` (increasing).

        Pictures are as players show them: with square pixels, turned and mirrored as the container
        prescribes.

        Raises:
            MediaError: a frame cannot be decoded whole, or is not where the index says.
        """
        for pts in timestamps:
            try:
                frame = self._frame_at(pts, "AUTO")
            except MediaError:
                # several threads report an error some frames early, depending on the machine
                frame = self._frame_at(pts, "NONE")
            try:
                yield pts, self._as_players_show(frame)
            except MediaError:
                raise
            except Exception as error:  # the scaler's errors have no common base class
                raise MediaError(
                    f"{self.path}: the frame with timestamp {pts} cannot be converted ({error})."
                ) from error

    def _as_players_show(self, frame: Any) -> Image:
        """The frame in RGB, with square pixels, turned and mirrored as the container prescribes."""
        name = str(self.path)
        picture = frame_as_rgb(frame, name)
        picture = with_square_pixels(picture, self._stream.sample_aspect_ratio, name)
        turn = turn_of(frame, name)
        return picture if turn is None else picture.transpose(turn)

    def _frame_at(self, pts: int, threads: str) -> Any:
        """The decoded frame with timestamp ``pts``; closes the video if that fails."""
        try:
            keyframe = self._keyframe_before(pts)
            is_behind = self._position is None or self._position >= pts
            if is_behind or (keyframe is not None and keyframe > (self._position or 0)):
                self._jump(pts, keyframe, threads)
            return self._decode_until(pts)
        except (MediaError, MissingExtraError):
            self.close()
            raise
        except Exception as error:  # as in `read_index`
            self.close()
            raise MediaError(
                f"{self.path}: the frame with timestamp {pts} cannot be decoded "
                f"({reason_of(error)})."
            ) from error

    def _keyframe_before(self, pts: int) -> int | None:
        """The timestamp of the last keyframe that is not later than ``pts``."""
        number = bisect_right(self.keyframes, pts)
        return self.keyframes[number - 1] if number else None

    def _decode_until(self, pts: int) -> Any:
        """Decode forward up to the frame with timestamp ``pts``, and return it."""
        for frame in self._frames:
            self.decoded += 1
            if frame.pts is None or (self._position is not None and frame.pts <= self._position):
                raise MediaError(
                    f"{self.path}: decoded frames are not in order of time; convert it to MP4."
                )
            self._position = frame.pts
            if frame.pts == pts and frame.is_corrupt:
                raise MediaError(f"{self.path}: the frame with timestamp {pts} is damaged.")
            if frame.pts == pts:
                return frame
            if frame.pts > pts:
                break
        raise MediaError(
            f"{self.path}: the frame with timestamp {pts} cannot be decoded (it is missing)."
        )

    def _jump(self, pts: int, keyframe: int | None, threads: str) -> None:
        """Go to ``keyframe``, or to the start if the container cannot seek exactly."""
        at_start = keyframe is None or keyframe == self.keyframes[0]
        if self._container is None or at_start:
            self._open(threads)
        if at_start:
            return
        self._container.seek(keyframe, stream=self._stream, backward=True)
        self._frames = self._container.decode(self._stream)
        self._position = None
        first = next(self._frames, None)
        if first is not None and first.pts is not None and first.pts <= pts and first.key_frame:
            self._frames = chain([first], self._frames)
            return
        if first is not None:
            self.decoded += 1
        self._open(threads)

    def _open(self, threads: str) -> None:
        """Open the file at its start; ``threads`` is FFmpeg's threading mode."""
        self.close()
        self._container = open_container(self.path)
        self._stream.codec_context.options = _LARGEST
        self._stream.thread_type = threads
        self._frames = self._container.decode(self._stream)

    @property
    def _stream(self) -> Any:
        """The video stream of the open file."""
        return video_stream(self._container, self.stream)


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


class KnownVideo(KnownMedia):
    """A video's entry, whose size is that of the first frame that can be decoded.

    ``wanted`` is a digest of the timestamps that were requested, and ``bad`` are those of the
    frames that cannot be decoded.
    """

    wanted: str
    bad: tuple[int, ...]


@dataclass(frozen=True)
class _DecodedFrames:
    """The size of the frames of a video, and the timestamps of those that cannot be decoded."""

    size: tuple[int, int]
    damaged: tuple[int, ...]


def scan_video(
    file: Path,
    name: str,
    index: VideoIndex,
    timestamps: Iterable[int],
    verified: KnownVideo | None = None,
) -> KnownVideo:
    """Verify a video by decoding its frames at ``timestamps``; its entry is called ``name``.

    ``verified``, the result of an interrupted pass, is returned if file and frames are the same.

    Raises:
        MediaError: the file cannot be read, or none of the frames can be decoded.
    """
    increasing = sorted(set(timestamps))
    digest = hashlib.sha256(repr(increasing).encode()).hexdigest()
    with unreadable_as_media_error(file):
        status = file.stat()
        state = file_state(status)
        if verified is not None and verified.state == state and verified.wanted == digest:
            return verified
        checksum = file_sha256(file)
    frames = _decode_each(file, index, increasing)
    width, height = frames.size
    entry = MediaEntry(
        path=name,
        bytes=status.st_size,
        sha256=checksum,
        width=width,
        height=height,
        video=index.facts,
    )
    return KnownVideo(entry=entry, state=state, wanted=digest, bad=frames.damaged)


def _decode_each(file: Path, index: VideoIndex, timestamps: Sequence[int]) -> _DecodedFrames:
    """Decode the frames at ``timestamps`` (increasing), one at a time.

    Raises:
        MediaError: none of them can be decoded; the error is that of the first one.
    """
    size: tuple[int, int] | None = None
    damaged: list[int] = []
    first_error: MediaError | None = None
    with closing(VideoReader(file, index.keyframes, index.stream)) as reader:
        for pts in timestamps:
            try:
                _, picture = next(reader.read([pts]))
            except MediaError as error:
                damaged.append(pts)
                if first_error is None:
                    first_error = error
            else:
                if size is None:
                    size = picture.size
    if size is None:
        raise first_error or MediaError(f"{file}: no frame is requested.")
    return _DecodedFrames(size, tuple(damaged))
