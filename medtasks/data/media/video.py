"""Videos by PyAV: an index of presentation timestamps, decoding of exactly the requested frames, and verification.

Frames are named by presentation timestamps (pts) in the stream's time base, as in the container, so constant and
variable frame rates are treated alike and nothing is rounded.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PIXELS, check_regular, file_sha256, file_state
from medtasks.data.media.images import KnownMedia, MediaEntry, VideoFacts, unreadable_as_media_error

if TYPE_CHECKING:
    from PIL.Image import Image

_END = 2
"""Seconds by which a container's length may exceed its last frame's time before it counts as cut off."""


@dataclass(frozen=True)
class VideoIndex:
    """Facts about a video that need no decoding.

    ``pts`` are the timestamps of all frames, increasing; ``keyframes`` those at which decoding can begin;
    ``cut`` is whether the file ends before the video does.
    """

    time_base: Fraction
    pts: tuple[int, ...]
    keyframes: tuple[int, ...]
    cut: bool

    @property
    def times(self) -> list[Fraction]:
        """Presentation times in seconds, the first frame's being 0."""
        return [(pts - self.pts[0]) * self.time_base for pts in self.pts]


_FORMATS = "asf,avi,flv,gif,ivf,m4v,matroska,mov,mpeg,mpegts,mpegvideo,mxf,nut,ogg,webm,wtv"
"""Containers with frames of their own; no playlists or scripts, which FFmpeg would follow to other files or URLs."""


_LARGEST = {"max_pixels": str(MAX_PIXELS)}


def _container(path: Path) -> Any:
    """The file as PyAV's container; metadata may be in any encoding."""
    import av

    check_regular(path)
    # torchvision may have PyAV pass on FFmpeg's messages: a decoding thread then waits for Python's lock, which whoever
    # closes the video holds while it waits for that thread
    av.logging.set_level(None)
    # as `options`, PyAV crashes on containers that show their streams late, such as MPEG-PS and FLV
    options = {"protocol_whitelist": "file", "format_whitelist": _FORMATS}
    return av.open(str(path.absolute()), metadata_errors="replace", container_options=options)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """The container and its first video stream; whatever FFmpeg and PyAV raise becomes a MediaError."""
    try:
        with _container(path) as container:
            if not container.streams.video:
                raise MediaError(f"{path}: has no video stream; fetch or copy the file again.")
            stream = container.streams.video[0]
            if stream.codec_context is None:
                raise MediaError(f"{path}: its frames are in a format that FFmpeg cannot decode; convert it to MP4.")
            if stream.width * stream.height > MAX_PIXELS:
                raise MediaError(
                    f"{path}: frames of {stream.width:,} × {stream.height:,} pixels exceed the limit of {MAX_PIXELS:,}"
                    "; make them smaller."
                )
            yield container, stream
    except MediaError:
        raise
    except Exception as error:  # PyAV raises errors of many kinds on damaged bytes
        raise MediaError(f"{path}: not a complete video ({error}); fetch or copy the file again.") from error


def read_index(path: Path) -> VideoIndex:
    """The index of the video in ``path``, read from its packets.

    Raises:
        MediaError: the file is missing, not a video, has no frames, or frames without distinct timestamps (their
            order would be a guess).
    """
    pts: list[int] = []
    keyframes: list[int] = []
    with _opened(path) as (container, stream):
        announced = int(stream.frames or 0)
        length = None if container.duration is None else Fraction(container.duration, 1_000_000)
        start = Fraction(container.start_time or 0, 1_000_000)
        alone = len(container.streams) == 1
        time_base = Fraction(stream.time_base)
        packets = 0
        for packet in container.demux(stream):
            if packet.size == 0:
                continue
            packets += 1
            if packet.pts is None:
                raise MediaError(f"{path}: frame {len(pts) + 1} has no timestamp; convert it to MP4.")
            if packet.is_discard:  # before the edit list's start: never shown
                continue
            pts.append(packet.pts)
            if packet.is_keyframe:
                keyframes.append(packet.pts)
    if not pts:
        raise MediaError(f"{path}: not a complete video (it has no frames); fetch or copy the file again.")
    if len(set(pts)) < len(pts):
        raise MediaError(f"{path}: several frames have the same timestamp; convert it to MP4.")
    pts.sort()
    last = pts[-1] * time_base - start
    # an audio track may outlast the pictures, so the container's duration counts only without one
    gap = max((after - before for before, after in pairwise(pts)), default=0)
    short = alone and length is not None and length > last + _END + gap * time_base
    return VideoIndex(time_base, tuple(pts), tuple(sorted(keyframes)), packets < announced or short)


@dataclass
class VideoReader(AbstractContextManager["VideoReader"]):
    """An open video that decodes forward, and jumps to a keyframe only if that saves decoding.

    ``decoded`` counts frames that came out of the decoder. Use it as a context manager, from one thread at a time.

    A decoder with several threads reports an error some frames early, depending on the machine; so a frame that failed
    is tried again with one thread.
    """

    path: Path
    keyframes: tuple[int, ...]
    decoded: int = 0
    _container: Any = field(default=None, repr=False)
    _frames: Iterator[Any] | None = field(default=None, repr=False)
    _position: int | None = None  # timestamp of the newest frame that came out of the decoder
    _threads: str = "AUTO"

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; reading reopens it."""
        if self._container is not None:
            self._container.close()
        self._container, self._frames, self._position = None, None, None

    def read(self, timestamps: Sequence[int]) -> Iterator[tuple[int, Image]]:
        """Timestamp and RGB picture of each frame in ``timestamps`` (increasing), one at a time, in that order.

        Raises:
            MediaError: a frame cannot be decoded whole, or is not where the index says; names the file and the frame's
                timestamp.
        """
        for pts in timestamps:
            yield pts, _picture(self._frame(pts), self.path)

    def _frame(self, pts: int) -> Any:
        try:
            return self._seek(pts)
        except MediaError:
            self._threads = "NONE"
        try:
            return self._seek(pts)
        finally:
            self._threads = "AUTO"

    def _seek(self, pts: int) -> Any:
        try:
            keyframe = self._keyframe(pts)
            behind = self._position is None or self._position >= pts
            if behind or (keyframe is not None and keyframe > (self._position or 0)):
                self._jump(pts)
            return self._forward_to(pts)
        except MediaError:
            self.close()
            raise
        except Exception as error:  # as in `_opened`
            self.close()
            raise MediaError(f"{self.path}: the frame with time stamp {pts} cannot be decoded ({error}).") from error

    def _keyframe(self, pts: int) -> int | None:
        """The last keyframe that is not later than ``pts``."""
        number = bisect_right(self.keyframes, pts)
        return self.keyframes[number - 1] if number else None

    def _open(self) -> None:
        self.close()
        self._container = _container(self.path)
        stream = self._container.streams.video[0]
        stream.codec_context.options = _LARGEST
        stream.thread_type = self._threads
        self._frames = self._container.decode(stream)

    def _jump(self, pts: int) -> None:
        """Go to the keyframe before ``pts``, or to the start if the container cannot seek exactly."""
        keyframe = self._keyframe(pts)
        if self._container is None or keyframe is None or keyframe == self.keyframes[0]:
            self._open()
        if keyframe is None or keyframe == self.keyframes[0]:
            return
        stream = self._container.streams.video[0]
        self._container.seek(keyframe, stream=stream, backward=True)
        self._frames, self._position = self._container.decode(stream), None
        first = next(self._frames, None)
        self.decoded += first is not None
        if first is None or first.pts is None or first.pts > pts or not first.key_frame:
            self._open()
            return
        self._frames = chain([first], self._frames)
        self.decoded -= 1

    def _forward_to(self, pts: int) -> Any:
        assert self._frames is not None
        for frame in self._frames:
            self.decoded += 1
            if frame.pts is None or (self._position is not None and frame.pts <= self._position):
                raise MediaError(f"{self.path}: decoded frames are not in order of time; convert it to MP4.")
            self._position = frame.pts
            if frame.pts == pts:
                if frame.is_corrupt:
                    raise MediaError(f"{self.path}: the frame with timestamp {pts} is damaged.")
                return frame
            if frame.pts > pts:
                break
        raise MediaError(f"{self.path}: the frame with timestamp {pts} cannot be decoded (it is missing).")


def _picture(frame: Any, path: Path) -> Image:
    """The frame as RGB, rotated as the container prescribes."""
    from PIL import Image

    try:
        picture: Image.Image = frame.to_image()
    except Exception as error:  # the scaler's errors have no common base class
        raise MediaError(f"{path}: the frame with timestamp {frame.pts} cannot be converted ({error}).") from error
    turn = int(frame.rotation) % 360
    if turn == 0:
        return picture
    # PyAV gives counter-clockwise degrees in -180..180, and so does Pillow's transpose
    turns = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}
    if turn not in turns:
        raise MediaError(f"{path}: is rotated by {turn} degrees, expected a multiple of 90; convert it to MP4.")
    return picture.transpose(turns[turn])


class KnownVideo(KnownMedia):
    """A video's entry, whose size is that of the first good frame, and its bad frames among those tried.

    ``wanted`` is a digest of the timestamps that were tried.
    """

    wanted: str
    bad: tuple[int, ...]


def scan_video(
    file: Path, name: str, index: VideoIndex, timestamps: Iterable[int], known: KnownVideo | None = None
) -> KnownVideo:
    """Decode the frames ``wanted`` of ``file``, whose entry is called ``name``.

    ``known`` is the result of an interrupted pass; it is returned if file and frames are still the same.

    Raises:
        MediaError: the file cannot be read, or none of the frames can be decoded.
    """
    stamps = sorted(set(timestamps))
    digest = hashlib.sha256(repr(stamps).encode()).hexdigest()
    with unreadable_as_media_error(file):
        status = file.stat()
        if known is not None and (known.state, known.wanted) == (file_state(status), digest):
            return known
        checksum = file_sha256(file)
    size: tuple[int, int] | None = None
    bad: list[int] = []
    failed: MediaError | None = None
    with VideoReader(file, index.keyframes) as reader:
        for pts in stamps:
            try:
                _, picture = next(reader.read([pts]))
            except MediaError as error:
                failed = failed or error
                bad.append(pts)
            else:
                size = size or picture.size
    if size is None:
        raise failed or MediaError(f"{file}: no frame is requested.")
    entry = MediaEntry(
        path=name,
        bytes=status.st_size,
        sha256=checksum,
        width=size[0],
        height=size[1],
        video=VideoFacts(
            time_base=str(index.time_base), first=index.pts[0], frames=len(index.pts), keyframes=index.keyframes
        ),
    )
    return KnownVideo(entry=entry, state=file_state(status), wanted=digest, bad=tuple(bad))
