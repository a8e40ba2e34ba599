"""Videos by PyAV: an index of presentation timestamps, decoding of exactly the requested frames, and verification.

Frames are named by presentation timestamps (pts) in the stream's time base, so constant and variable frame rates are
treated alike and nothing is rounded.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle
import signal
import subprocess
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from medtasks.core.cache import RecentlyUsed
from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PIXELS, check_regular, file_sha256, file_state
from medtasks.data.media.images import KnownMedia, MediaEntry, VideoFacts, pixel_bytes, unreadable_as_media_error

if TYPE_CHECKING:
    from PIL.Image import Image


_END = 2


@dataclass(frozen=True)
class VideoIndex:
    """Facts about a video that need no decoding: the timestamps of all frames, increasing, and of those at which
    decoding can begin; ``cut`` is whether the file ends before the video does."""

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


def read_index(path: Path) -> VideoIndex:
    """The index of the video in ``path``, read from its packets. Raises :class:`MediaError`, also for frames without
    distinct timestamps: their order would be a guess."""
    pts: list[int] = []
    keyframes: list[int] = []
    packets = 0
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
            announced = int(stream.frames or 0)
            length = None if container.duration is None else Fraction(container.duration, 1_000_000)
            start = Fraction(container.start_time or 0, 1_000_000)
            alone = len(container.streams) == 1
            time_base = Fraction(stream.time_base)
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
    except MediaError:
        raise
    except Exception as error:  # PyAV raises errors of many kinds on damaged bytes
        raise MediaError(f"{path}: not a complete video ({error}); fetch or copy the file again.") from error
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
class VideoReader:
    """An open video that decodes forward, and jumps to a keyframe only if that saves decoding; for one thread at a
    time. ``decoded`` counts frames that came out of the decoder."""

    path: Path
    keyframes: tuple[int, ...]
    decoded: int = 0
    _container: Any = field(default=None, repr=False)
    _frames: Iterator[Any] = field(default=iter(()), repr=False)
    _position: int | None = None  # timestamp of the newest frame that came out of the decoder

    def close(self) -> None:
        if self._container is not None:
            self._container.close()
        self._container, self._frames, self._position = None, iter(()), None

    def read(self, timestamps: Sequence[int]) -> Iterator[tuple[int, Image]]:
        """Timestamp and RGB picture of each frame in ``timestamps`` (increasing), one at a time, rotated as the
        container prescribes. Raises :class:`MediaError` for a frame that cannot be decoded whole, or is not where the
        index says."""
        from PIL import Image

        # PyAV gives counter-clockwise degrees in -180..180, and so does Pillow's transpose
        turns = {90: Image.Transpose.ROTATE_90, 180: Image.Transpose.ROTATE_180, 270: Image.Transpose.ROTATE_270}
        for pts in timestamps:
            try:
                frame = self._frame(pts, "AUTO")
            except MediaError:  # several threads report an error some frames early, depending on the machine
                frame = self._frame(pts, "NONE")
            try:
                picture: Image.Image = frame.to_image()
            except Exception as error:  # the scaler's errors have no common base class
                raise MediaError(
                    f"{self.path}: the frame with timestamp {pts} cannot be converted ({error})."
                ) from error
            turn = int(frame.rotation) % 360
            if turn and turn not in turns:
                raise MediaError(
                    f"{self.path}: is rotated by {turn} degrees, expected a multiple of 90; convert it to MP4."
                )
            yield pts, picture.transpose(turns[turn]) if turn else picture

    def _frame(self, pts: int, threads: str) -> Any:
        number = bisect_right(self.keyframes, pts)
        keyframe = self.keyframes[number - 1] if number else None
        try:
            behind = self._position is None or self._position >= pts
            if behind or (keyframe is not None and keyframe > (self._position or 0)):
                self._jump(pts, keyframe, threads)
            for frame in self._frames:
                self.decoded += 1
                if frame.pts is None or (self._position is not None and frame.pts <= self._position):
                    raise MediaError(f"{self.path}: decoded frames are not in order of time; convert it to MP4.")
                self._position = frame.pts
                if frame.pts == pts and frame.is_corrupt:
                    raise MediaError(f"{self.path}: the frame with timestamp {pts} is damaged.")
                if frame.pts == pts:
                    return frame
                if frame.pts > pts:
                    break
            raise MediaError(f"{self.path}: the frame with timestamp {pts} cannot be decoded (it is missing).")
        except MediaError:
            self.close()
            raise
        except Exception as error:  # as in `read_index`
            self.close()
            raise MediaError(f"{self.path}: the frame with time stamp {pts} cannot be decoded ({error}).") from error

    def _jump(self, pts: int, keyframe: int | None, threads: str) -> None:
        """Go to the keyframe before ``pts``, or to the start if the container cannot seek exactly."""
        at_start = keyframe is None or keyframe == self.keyframes[0]
        if self._container is None or at_start:
            self._open(threads)
        if at_start:
            return
        stream = self._container.streams.video[0]
        self._container.seek(keyframe, stream=stream, backward=True)
        self._frames, self._position = self._container.decode(stream), None
        first = next(self._frames, None)
        if first is not None and first.pts is not None and first.pts <= pts and first.key_frame:
            self._frames = chain([first], self._frames)
        else:
            self.decoded += first is not None
            self._open(threads)

    def _open(self, threads: str) -> None:
        self.close()
        self._container = _container(self.path)
        stream = self._container.streams.video[0]
        stream.codec_context.options = _LARGEST
        stream.thread_type = threads
        self._frames = self._container.decode(stream)


class FrameStore:
    """An LRU cache of decoded frames; thread-safe. The rounds of a streaming item show growing parts of one video: the
    reader stays open and continues where the previous round ended."""

    def __init__(self, max_bytes: int = 512 * 2**20) -> None:
        self.held: RecentlyUsed[tuple[Path, int], Image] = RecentlyUsed(max_bytes, pixel_bytes)
        self.decoded = 0
        self._reader = VideoReader(Path(), ())
        self._lock = threading.Lock()

    def load(
        self, path: Path, keyframes: tuple[int, ...], timestamps: Sequence[int], also: Sequence[int] = ()
    ) -> list[Image]:
        """The frames of ``path`` at ``timestamps``, in that order, RGB, not to be changed. ``also`` are timestamps of
        frames that other rounds of the same item will need; those on the way are kept."""
        with self._lock:
            cached = {pts: self.held.get((path, pts)) for pts in set(timestamps)}
            found = {pts: picture for pts, picture in cached.items() if picture is not None}
            missing = cached.keys() - found.keys()
            if missing:
                first, last = min(missing), max(missing)
                passed = {pts for pts in also if first <= pts <= last and (path, pts) not in self.held}
                if self._reader.path != path:
                    self._reader.close()
                    self._reader = VideoReader(path, keyframes)
                before = self._reader.decoded
                for pts, picture in self._reader.read(sorted(missing | passed)):
                    if pts in missing:
                        found[pts] = picture
                    self.held.add((path, pts), picture)
                    self.held.trim([(path, pts)])
                self.decoded += self._reader.decoded - before
            return [found[pts] for pts in timestamps]

    def clear(self) -> None:
        """Close the open video and drop all frames."""
        with self._lock:
            self._reader.close()
            self.held.clear()


FRAMES = FrameStore()  # shared by all tasks of this process


class KnownVideo(KnownMedia):
    """A video's entry, with its first good frame's size, and the bad ones of the frames of digest ``wanted``."""

    wanted: str
    bad: tuple[int, ...]


def scan_video(
    file: Path, name: str, index: VideoIndex, timestamps: Iterable[int], known: KnownVideo | None = None
) -> KnownVideo:
    """Decode the frames of ``file`` at ``timestamps``; its entry is called ``name``. ``known``, the result of an
    interrupted pass, is returned if file and frames are still the same."""
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
    with closing(VideoReader(file, index.keyframes)) as reader:
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


T = TypeVar("T")

_SERVE = "import sys; sys.path[:] = sys.argv[1:]; from medtasks.data.media.video import serve; serve()"
_IDLE: list[subprocess.Popen[bytes]] = []
"""Children that wait for a call; each ends when its standard input does."""


@atexit.register
def _end_children() -> None:
    for process in _IDLE:
        process.communicate()


class Crashed(Exception):
    """The child ended during a call; the message has the signal or the exit code."""


def call_in_child(function: Callable[..., T], *arguments: Any) -> T:
    """``function(*arguments)``, all of which are pickled; what it raises is raised here. Thread-safe. Not
    `concurrent.futures`: its children outlive a parent that is killed, and import the main module again."""
    while _IDLE:
        process = _IDLE.pop()
        if process.poll() is None:  # one that was killed while it waited says nothing about the next file
            break
    else:
        command = [sys.executable, "-c", _SERVE, *sys.path]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        pickle.dump((function, arguments), process.stdin)
        process.stdin.flush()
        error, result = pickle.load(process.stdout)
    except (EOFError, BrokenPipeError) as ended:
        code = process.wait()
        raise Crashed(signal.strsignal(-code) if code < 0 else f"exit code {code}") from ended
    except BaseException:
        process.kill()  # its next answer would be that to this call
        raise
    _IDLE.append(process)
    if error is not None:
        raise error
    answer: T = result
    return answer


def serve() -> None:
    """Answer calls until standard input ends, also because the parent was killed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets it, too
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # decoders may print
    while True:
        try:
            function, arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer: tuple[Exception | None, Any] = (None, function(*arguments))
        except Exception as error:
            answer = (error, None)
        pickle.dump(answer, answers)
        answers.flush()
