"""The index of a video, read from its packets without decoding: which stream it is, and when each
frame is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from medtasks.core.errors import MediaError
from medtasks.core.files import MAX_PIXELS, check_regular
from medtasks.core.text import one_line
from medtasks.data.media.formats import HEAD, foreign_video
from medtasks.data.media.images import VideoFacts

_END = 2
"""Seconds without pictures at the end of a video that are not taken for a cut file."""

_FORMATS = "asf,avi,flv,ivf,matroska,mov,mpeg,mpegts,mxf,nut,ogg,webm,wtv"
"""Containers with timestamps. No raw streams or animated pictures, and no playlists or scripts,
which FFmpeg would follow to other files or URLs.
"""

_ANY_ORDER = frozenset(("h264", "hevc", "vvc"))
"""Codecs whose frames may be stored in any order, so that times cannot be worked out from the order
in the file.
"""

_MOST_BITS = 14
"""Bits per value up to which a pixel format states which value is white; 16 bits may hold values of
fewer.
"""


@dataclass(frozen=True)
class VideoIndex:
    """Facts about a video that need no decoding: the timestamps of all frames, increasing, and of
    those at which decoding can begin; the time in the container, in seconds, that is 0; ``cut`` is
    whether the file ends before the video does; ``stream`` is the number of the stream, None for
    the first video stream.
    """

    time_base: Fraction
    pts: tuple[int, ...]
    keyframes: tuple[int, ...]
    zero: Fraction
    cut: bool
    stream: int | None = None

    @property
    def times(self) -> list[Fraction]:
        """When each frame is shown, in seconds after the beginning of the container's streams (see
        :func:`_zero`).
        """
        return [pts * self.time_base - self.zero for pts in self.pts]

    @property
    def facts(self) -> VideoFacts:
        """What prepared data keep of the index."""
        return VideoFacts(
            time_base=str(self.time_base),
            first=self.pts[0],
            frames=len(self.pts),
            keyframes=self.keyframes,
            stream=self.stream,
        )


def open_container(path: Path) -> Any:
    """The file as PyAV's container; metadata may be in any encoding."""
    import av

    check_regular(path)
    # torchvision may have PyAV pass on FFmpeg's messages: a decoding thread then waits for Python's
    # lock, which whoever closes the video holds while it waits for that thread
    av.logging.set_level(None)
    # as `options`, PyAV crashes on containers that show their streams late, such as MPEG-PS and FLV
    options = {"protocol_whitelist": "file", "format_whitelist": _FORMATS}
    return av.open(str(path.absolute()), metadata_errors="replace", container_options=options)


def video_stream(container: Any, number: int | None) -> Any:
    """The stream of this number, or the first video stream."""
    return container.streams.video[0] if number is None else container.streams[number]


def read_index(path: Path) -> VideoIndex:
    """The index of the video in ``path``: of several video streams the one that players show.

    Raises:
        MediaError: the file is not a video that can be read, or its frames have no distinct
            timestamps of their own: their order would be a guess.
    """
    try:
        with open_container(path) as container:
            return _read_index(path, container)
    except MediaError:
        raise
    except Exception as error:  # PyAV raises errors of many kinds on damaged bytes
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> MediaError:
    foreign = foreign_video(_head(path))
    if foreign is not None:
        return MediaError(
            f"{path}: is {foreign.name}, which is not supported as a video; {foreign.fix}."
        )
    return MediaError(
        f"{path}: not a complete video ({reason_of(error)}); fetch or copy the file again."
    )


def reason_of(error: Exception) -> str:
    """What FFmpeg says, without its number and the path."""
    return one_line(getattr(error, "strerror", None) or str(error)) or type(error).__name__


def _head(path: Path) -> bytes:
    """The first bytes of a file, none of one that cannot be read."""
    with suppress(OSError):
        check_regular(path)  # a named pipe would block
        with path.open("rb") as stream:
            return stream.read(HEAD)
    return b""


@dataclass
class _Track:
    """A video stream with what its packets say."""

    stream: Any
    pts: list[int] = field(default_factory=list)
    keyframes: list[int] = field(default_factory=list)
    packets: int = 0
    undated: int = 0  # number of the first frame without a timestamp

    def add(self, packet: Any) -> None:
        self.packets += 1
        if packet.pts is None:
            self.undated = self.undated or self.packets
        elif not packet.is_discard:  # before the edit list's start: never shown
            self.pts.append(packet.pts)
            if packet.is_keyframe:
                self.keyframes.append(packet.pts)

    @property
    def rank(self) -> tuple[bool, bool, int, int]:
        """The higher, the more likely players show the stream: it moves, is the default, is large,
        has many frames.
        """
        from av.stream import Disposition

        default = bool(self.stream.disposition & Disposition.default)
        return self.packets > 1, default, self.stream.width * self.stream.height, self.packets


def _read_index(path: Path, container: Any) -> VideoIndex:
    tracks = {stream.index: _Track(stream) for stream in _moving(path, container)}
    streams = [track.stream for track in tracks.values()]
    for packet in container.demux(streams):
        if packet.size:
            tracks[packet.stream.index].add(packet)
    track = max(tracks.values(), key=lambda track: track.rank)
    _check_stream(path, container, track)
    pts = sorted(track.pts)
    time_base = Fraction(track.stream.time_base)
    is_first = track.stream.index == container.streams.video[0].index
    return VideoIndex(
        time_base=time_base,
        pts=tuple(pts),
        keyframes=tuple(sorted(track.keyframes)),
        zero=_zero(container, pts[0] * time_base),
        cut=track.packets < int(track.stream.frames or 0) or _is_short(container, pts, time_base),
        stream=None if is_first else track.stream.index,
    )


def _moving(path: Path, container: Any) -> list[Any]:
    """The video streams that are no covers or thumbnails."""
    from av.stream import Disposition

    pictures = Disposition.attached_pic | Disposition.timed_thumbnails
    videos = container.streams.video
    moving = [stream for stream in videos if not stream.disposition & pictures]
    if not moving:
        held = "sound" if container.streams.audio else "no sound"
        held += " and a cover picture" if videos else ""
        raise MediaError(
            f"{path}: has {held}, but no video stream; fetch or copy the video itself."
        )
    if all(stream.codec_context is None for stream in moving):
        raise MediaError(
            f"{path}: its frames are in a format that FFmpeg cannot decode; convert it to MP4."
        )
    return [stream for stream in moving if stream.codec_context is not None]


def _check_stream(path: Path, container: Any, track: _Track) -> None:
    stream, context = track.stream, track.stream.codec_context
    if stream.width * stream.height > MAX_PIXELS:
        raise MediaError(
            f"{path}: frames of {stream.width:,} × {stream.height:,} pixels exceed the limit of {MAX_PIXELS:,}; make "
            "them smaller."
        )
    bits = (
        max((component.bits for component in context.format.components), default=0)
        if context.format
        else 0
    )
    if bits > _MOST_BITS:
        raise MediaError(
            f"{path}: its values have {bits} bits, and nothing says which of them are black and white; scale the "
            "values that should be to 0 and 255, and convert it to MP4 with 8 bits per channel."
        )
    if container.format.name == "avi" and context.name in _ANY_ORDER and context.has_b_frames:
        raise MediaError(
            f"{path}: its frames have no timestamps of their own ({context.name} with B-frames in AVI), so they would "
            "be shown at wrong times; convert it to MP4 (ffmpeg -i IN.avi OUT.mp4)."
        )
    if track.undated:
        raise MediaError(f"{path}: frame {track.undated} has no timestamp; convert it to MP4.")
    if not track.pts:
        raise MediaError(
            f"{path}: not a complete video (it has no frames); fetch or copy the file again."
        )
    if len(set(track.pts)) < len(track.pts):
        raise MediaError(f"{path}: several frames have the same timestamp; convert it to MP4.")


def _zero(container: Any, first: Fraction) -> Fraction:
    """The time in the container that is 0, ``first`` being that of the first frame: where its first
    stream begins, sound included, as in players. Sound before the container's own 0 is never played
    (it primes the decoder), and AVI has no times, so there all streams begin together.
    """
    if container.format.name == "avi":
        return first
    sound = [
        stream.start_time * Fraction(stream.time_base)
        for stream in container.streams.audio
        if stream.start_time is not None
    ]
    return min(first, max(Fraction(0), min(sound, default=first)))


def _is_short(container: Any, pts: Sequence[int], time_base: Fraction) -> bool:
    """Whether the pictures end before the container says; only of one without sound, which may
    outlast them.
    """
    if len(container.streams) > 1 or container.duration is None:
        return False
    length = Fraction(container.duration, 1_000_000)
    last = pts[-1] * time_base - Fraction(container.start_time or 0, 1_000_000)
    gap = max((after - before for before, after in pairwise(pts)), default=0)
    return length > last + _END + gap * time_base
